package embed

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// Progress says how far one call of EmbedDocuments has come, in texts.
type Progress struct{ Done, Total int }

// reported calls report after each batch.
type reported struct {
	batched
	report func(Progress)
}

var _ Named = reported{}

// Reported returns an embedder that gives inner at most size texts at a time, as [Batched] does, and calls report when a
// call of EmbedDocuments begins and after each batch, by the goroutine that called it. It is safe for concurrent use if
// inner and report are.
func Reported(inner Embedder, size int, report func(Progress)) Embedder {
	return reported{batched{inner, max(size, 1)}, report}
}

// EmbedDocuments embeds batch by batch.
func (r reported) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) > 0 {
		r.report(Progress{Total: len(texts)})
	}
	return r.each(ctx, texts, func(done int) { r.report(Progress{done, len(texts)}) })
}

// barWidth is the length of a bar, in characters.
const barWidth = 30

// Bar returns a function for [Reported] that draws a bar on w, one line that is drawn over again. It draws nothing if w is
// no terminal, so that logs stay clean. It is for one call at a time.
func Bar(w io.Writer) func(Progress) {
	file, ok := w.(*os.File)
	if !ok {
		return func(Progress) {}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(Progress) {}
	}
	return func(p Progress) { p.draw(w) }
}

func (p Progress) draw(w io.Writer) {
	if p.Total == 0 {
		return
	}
	full := barWidth * p.Done / p.Total
	_, _ = fmt.Fprintf(w, "\rembedding [%s%s] %d of %d texts", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), p.Done, p.Total)
	if p.Done == p.Total {
		_, _ = fmt.Fprintln(w)
	}
}
