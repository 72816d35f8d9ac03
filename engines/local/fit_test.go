package local_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
)

// TestContextFit: an answer from a context says how far it is from the notes, the same whatever the cache holds and whatever else runs.
// The answer itself is that of a file that does not know the notes' attention.
func TestContextFit(t *testing.T) {
	model := reader(t)
	notes := text(9, 60)
	with := compressed(t, local.Compression{Model: model, Format: "f32", Notes: notes})
	two := compressed(t, local.Compression{Model: model, Window: 400, Notes: notes})
	files := map[string]string{
		"notes": with.File, "parts": two.File,
		"documents": compressed(
			t,
			local.Compression{Model: model, ByDocument: true, Notes: notes},
		).File, "short": compressed(t, local.Compression{Model: model}).File,
		"no notes": compressed(t, local.Compression{Model: model, Scorer: "recent"}).File,
	}
	if two.Parts < 2 {
		t.Fatalf("%d parts", two.Parts)
	}
	for _, c := range []local.Compression{{Model: model, Format: "f32", Notes: notes, Out: with.File}, {Model: model, Out: files["short"]}} {
		before, _ := os.ReadFile(c.Out)
		again := compressed(t, c)
		if after, err := os.ReadFile(c.Out); again.Reused != 1 || !bytes.Equal(after, before) || err != nil {
			t.Errorf("made once more: %d of %d parts as before, %v", again.Reused, again.Parts, err)
		}
	}
	e := open(t, 400, local.Config{Model: model, Contexts: files})
	question := text(5, 40)
	first := generate(t, e, behind("notes", question, 20))
	if first.Context == nil {
		t.Fatal("not judged")
	}
	for range 2 { // the question is in the cache
		if again := generate(t, e, behind("notes", question, 20)); *again.Context != *first.Context || again.Text != first.Text {
			t.Errorf("%v %q, first %v %q", again.Context, again.Text, first.Context, first.Text)
		}
	}
	e.Clear()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			if i%2 == 1 {
				generate(t, e, ask("", text(i, 300), 20))
			} else if beside := generate(t, e, behind("notes", question, 20)); *beside.Context != *first.Context || beside.Text != first.Text {
				t.Errorf("beside others %v %q, alone %v %q", beside.Context, beside.Text, first.Context, first.Text)
			}
		})
	}
	group.Wait()
	if more := generate(t, e, behind("notes", question, 60)); *more.Context != *first.Context { // later tokens do not count
		t.Errorf("of a longer answer %v, want %v", more.Context, first.Context)
	}
	if other := generate(t, e, behind("notes", text(6, 40), 20)); *other.Context == *first.Context {
		t.Errorf("another question has the same drift, %v", other.Context)
	}
	for name, req := range map[string]engines.Request{
		"several parts": behind("parts", question, 20), "documents by themselves": behind("documents", question, 20),
		"no notes": behind("no notes", question, 20), "short notes": behind("short", question, 20),
		"a short answer": behind("notes", question, 6), "no context": ask("", question, 20),
	} {
		if got := generate(t, e, req); got.Context != nil {
			t.Errorf("%s: %v", name, got.Context)
		}
	}
}

// TestContextFitStopped: of an answer that a text ends, as much is known as was given out.
func TestContextFitStopped(t *testing.T) {
	model := reader(t)
	e := open(
		t,
		400,
		local.Config{Model: model, Contexts: map[string]string{"notes": compressed(t, local.Compression{Model: model, Notes: text(9, 60)}).File}},
	)
	question := text(5, 40)
	seen := map[bool]bool{}
	for seed := 1; seed < 9 && len(seen) < 2; seed++ {
		whole := generate(t, e, behind("notes", question, 30, "temperature", 1, "seed", seed))
		if whole.Context == nil {
			t.Fatal("not judged")
		}
		text := []rune(whole.Text)
		for i := 0; i+2 < len(text); i++ {
			got := generate(t, e, behind("notes", question, 30, "temperature", 1, "seed", seed, "stop", string(text[i:i+2])))
			late := got.Usage.OutputTokens > 16
			if got.Usage.OutputTokens > 9 && got.Finish == "stop" { // shorter ones are not judged in any case
				seen[late] = true
				if (got.Context != nil) != late || late && *got.Context != *whole.Context {
					t.Errorf("stopped after %d tokens: %v, the whole %v", got.Usage.OutputTokens, got.Context, whole.Context)
				}
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("no answer was stopped in time: %v", seen)
	}
}

// TestContextFitIsBeyondTheNotes: what the notes' own pieces drift is taken off, and what is far above it is of another task.
func TestContextFitIsBeyondTheNotes(t *testing.T) {
	model := reader(t)
	made := compressed(t, local.Compression{Model: model, Notes: text(9, 60)})
	files := map[string]string{}
	for name, own := range map[string]float64{"as it is": 0, "calm": 10, "wild": -10} {
		f, err := contextfile.Open(made.File)
		if err != nil {
			t.Fatal(err)
		}
		f.NotesDrift += own
		files[name] = filepath.Join(t.TempDir(), "x")
		if err := contextfile.Write(files[name], f.Header, f.Pages(0)); err != nil {
			t.Fatal(err)
		}
	}
	e := open(t, 400, local.Config{Model: model, Contexts: files})
	fit := func(name string) *engines.ContextFit { return generate(t, e, behind(name, text(5, 40), 20)).Context }
	calm, plain, wild := fit("calm"), fit("as it is"), fit("wild")
	if math.Abs(plain.Drift-10-calm.Drift) > 1e-9 || math.Abs(plain.Drift+10-wild.Drift) > 1e-9 || calm.OtherTask || !wild.OtherTask {
		t.Errorf("%v, %v and %v", calm, plain, wild)
	}
}
