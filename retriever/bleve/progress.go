package bleve

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Progress says how far indexing has come.
type Progress struct {
	Done, Total int    // files
	Path        string // of the file that was done last; "" before the first
}

const (
	barWidth = 30
	// redrawAfter bounds how often the bar is drawn.
	redrawAfter = 100 * time.Millisecond
)

// Bar returns a function for Options.Progress that draws a bar on w, one line that is drawn over again. It draws nothing
// if w is no terminal, so that logs stay clean.
func Bar(w io.Writer) func(Progress) {
	file, ok := w.(*os.File)
	if !ok || !isTerminal(file) {
		return func(Progress) {}
	}
	return newBar(w, time.Now)
}

func newBar(w io.Writer, now func() time.Time) func(Progress) {
	var drawn time.Time
	return func(p Progress) {
		at := now()
		if p.Total == 0 || p.Done < p.Total && at.Sub(drawn) < redrawAfter {
			return
		}
		drawn = at
		full := barWidth * p.Done / p.Total
		_, _ = fmt.Fprintf(w, "\rindexing [%s%s] %d of %d files", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), p.Done, p.Total)
		if p.Done == p.Total {
			_, _ = fmt.Fprintln(w)
		}
	}
}

// isTerminal reports whether a file is a character device, as terminals are.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
