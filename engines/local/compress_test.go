package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local"
)

// TestCompressShapes: corpora of all shapes have the slots that their budget says, in whole pages.
func TestCompressShapes(t *testing.T) {
	model := reader(t)
	for name, x := range map[string]struct {
		c     local.Compression
		parts int
		slots func(tokens int) int
	}{
		"joint":    {local.Compression{Documents: corpus(3, 200)}, 1, func(n int) int { return (n/16*16/4 + 8) / 16 * 16 }},
		"number":   {local.Compression{Documents: corpus(3, 200), Budget: "100"}, 1, func(int) int { return 96 }},
		"too many": {local.Compression{Documents: corpus(3, 200), Budget: "9999"}, 1, func(n int) int { return n / 16 * 16 }},
		"windows":  {local.Compression{Documents: corpus(3, 400), Window: 400, Notes: "1 2 3", Scorer: "recent"}, 0, nil},
		"short": {local.Compression{
			Documents:  []local.Document{{Text: "1"}, {Text: "2"}, {Text: text(1, 50)}, {Text: "3"}},
			ByDocument: true,
		}, 0, nil},
		"only tiny": {local.Compression{Documents: []local.Document{{Text: "1"}}}, 1, nil},
		"long":      {local.Compression{Documents: corpus(2, 700), ByDocument: true, Window: 400, Scorer: "paper"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x.c.Model = model
			r := compressed(t, x.c)
			if r.Slots%16 != 0 || r.Slots == 0 || r.Slots > r.Tokens || x.parts > 0 && r.Parts != x.parts ||
				x.slots != nil && r.Slots != x.slots(r.Tokens) {
				t.Errorf("%+v", r)
			}
			e := open(t, 300, local.Config{Model: model, Contexts: map[string]string{"c": r.File}})
			generate(t, e, behind("c", "1?", 3))
		})
	}
}

// TestCompressNotes: the model writes notes if none are given, and progress comes to its end.
func TestCompressNotes(t *testing.T) {
	c := local.Compression{
		Model:      reader(t),
		Documents:  corpus(2, 100),
		Task:       "Numbers.",
		Out:        filepath.Join(t.TempDir(), "x"),
		MaxNotes:   20,
		ByDocument: true,
	}
	last, falls := 0.0, false
	c.Progress = func(done float64) { falls, last = falls || done < last-0.2, done }
	r, err := local.Compress(t.Context(), c)
	if err != nil || r.CompressedContext.Notes != "model" || len(r.Notes) != 2 || last != 1 || falls || r.Questions() < 1 {
		t.Errorf("%+v, error %v, %.2f done", r, err, last)
	}
	again, err := local.Compress(t.Context(), c)
	if err != nil || again.Reused != 2 || again.Notes != nil {
		t.Errorf("%+v, error %v", again, err)
	}
}

func TestCompressRefused(t *testing.T) {
	model, dir := reader(t), t.TempDir()
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, []byte("not a context"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*local.Compression){
		"Model":                func(c *local.Compression) { c.Model = "" },
		"no such":              func(c *local.Compression) { c.Model = filepath.Join(dir, "none") },
		"Task":                 func(c *local.Compression) { c.Task = " " },
		"Documents":            func(c *local.Compression) { c.Documents = nil },
		`Budget "0%"`:          func(c *local.Compression) { c.Budget = "0%" },
		`Budget "101%"`:        func(c *local.Compression) { c.Budget = "101%" },
		`Budget "2.5"`:         func(c *local.Compression) { c.Budget = "2.5" },
		`Budget "NaN"`:         func(c *local.Compression) { c.Budget = "NaN" },
		`scorer "best"`:        func(c *local.Compression) { c.Scorer = "best" },
		`format "int4"`:        func(c *local.Compression) { c.Format = "int4" },
		`NotesKind "poem"`:     func(c *local.Compression) { c.NotesKind = "poem" },
		"Window 20":            func(c *local.Compression) { c.Window = 20 },
		"MaxNotes -1":          func(c *local.Compression) { c.MaxNotes = -1 },
		"room for":             func(c *local.Compression) { c.Documents, c.Budget = corpus(3, 2000), "100%" },
		"is not overwritten":   func(c *local.Compression) { c.Out = other },
		"Out: stat ":           func(c *local.Compression) { c.Out = filepath.Join(dir, "none", "x") },
		"Window 4096: the mod": func(c *local.Compression) { c.Notes = text(1, 9000) },
	} {
		c := local.Compression{Model: model, Task: "Numbers.", Documents: corpus(1, 100), Notes: "1", Out: filepath.Join(dir, "out")}
		change(&c)
		if _, err := local.Compress(t.Context(), c); err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := filepath.Join(dir, "out")
	if _, err := local.Compress(ctx, local.Compression{Model: model, Task: "x", Documents: corpus(1, 100), Notes: "1", Out: out}); !errors.Is(
		err,
		context.Canceled,
	) {
		t.Errorf("error %v after an interruption", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an interrupted call left a file")
	}
}
