package minilm

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Bar returns a function for [PullOptions] and [LazyOptions] that shows a download on w: a line for each step that is
// written over again if w is a terminal, and otherwise one line that it has begun. It is for one download at a time.
func Bar(w io.Writer) func(Step) {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return (&bar{out: w}).show
		}
	}
	begun := false
	return func(s Step) {
		if !begun {
			_, _ = fmt.Fprintf(w, "fetching the sentence model all-MiniLM-L6-v2, %d MB, once\n", s.Total/1e6)
		}
		begun = true
	}
}

// bar draws at most ten times a second.
type bar struct {
	out  io.Writer
	last time.Time
}

func (b *bar) show(s Step) {
	over := s.Done == s.Total
	if !over && time.Since(b.last) < 100*time.Millisecond {
		return
	}
	b.last = time.Now()
	_, _ = fmt.Fprintf(b.out, "\rsentence model: %s %d of %d MB\x1b[K", s.Name, s.Done/1e6, s.Total/1e6)
	if over {
		_, _ = fmt.Fprintln(b.out)
	}
}
