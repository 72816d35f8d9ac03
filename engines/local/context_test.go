package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// reader writes a model that reads 4096 tokens.
func reader(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reader.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{Seed: 21, Context: 4096}); err != nil {
		t.Fatal(err)
	}
	return path
}

func compressed(t testing.TB, c local.Compression) local.Compressed {
	t.Helper()
	if c.Out == "" {
		c.Out = filepath.Join(t.TempDir(), "corpus.context")
	}
	if c.Task == "" {
		c.Task = "Answer questions about numbers."
	}
	if c.Documents == nil {
		c.Documents = []local.Document{{Name: "a.txt", Text: text(1, 300)}, {Name: "b.txt", Text: text(2, 200)}}
	}
	if c.Notes == "" {
		c.Notes = "1 2 3 4 5 6 7 8 9"
	}
	r, err := local.Compress(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// behind asks behind a context.
func behind(name, text string, tokens int, more ...any) engines.Request {
	req := ask("", text, tokens)
	req.Extra = extra(append([]any{"ignore_eos", true, "context", name}, more...)...)
	return req
}

// logits are those before each token of an answer.
func logits(t testing.TB, e *local.Engine, req engines.Request, answer string) (all []float32) {
	t.Helper()
	if _, err := e.Score(context.Background(), req, answer, func(_ int, l []float32) { all = append(all, l...) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestContextOfAllTokens: if all of a corpus is kept, answers are those with the documents in the system prompt, bit for bit.
func TestContextOfAllTokens(t *testing.T) {
	model := reader(t)
	for documents := range 3 {
		c := local.Compression{Model: model, Budget: "100%", Format: "f32"}
		system := "Read the documents below. The task: Answer questions about numbers.\n\n"
		for i := range documents + 1 {
			d := local.Document{Name: fmt.Sprint(i), Text: text(i, 150+3*i)}
			c.Documents = append(c.Documents, d)
			system += d.Text + "\n\n"
		}
		r := compressed(t, c)
		e := open(t, 200, local.Config{Model: model, Contexts: map[string]string{"corpus": r.File}})
		plain := ask("", "What is 3?", 1)
		plain.Messages = slices.Insert(plain.Messages, 0, engines.Message{Role: engines.System, Content: system})
		want, got := logits(t, e, plain, "12 34 56"), logits(t, e, behind("corpus", "What is 3?", 1), "12 34 56")
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%d documents: other logits", documents+1)
		}
		all := generate(t, e, plain).Usage.PromptTokens
		if u := generate(t, e, behind("corpus", "What is 3?", 1)).Usage; u.PromptTokens != all || u.CachedTokens < r.Slots {
			t.Errorf("%d documents: usage %+v, of the whole chat %d tokens", documents+1, u, all)
		}
		if info := e.Contexts(); len(info) != 1 || info[0].Slots != r.Slots || info[0].Documents != documents+1 ||
			info[0].Task != "Answer questions about numbers." {
			t.Errorf("%+v", info)
		}
	}
}

// TestContextIsShared: requests share a context, and behind it what requests with the same salt share. Clear and Forget leave it.
func TestContextIsShared(t *testing.T) {
	model := reader(t)
	first := compressed(t, local.Compression{Model: model})
	second := compressed(t, local.Compression{Model: model, Notes: "7 7 7 8 8 8"})
	e := open(t, 300, local.Config{Model: model, Contexts: map[string]string{"one": first.File, "two": second.File}})
	question := text(5, 100)
	want := map[string]string{}
	check := func(name, salt string, behindIt bool) {
		t.Helper()
		r := generate(t, e, behind(name, question, 8, "cache_salt", salt))
		if cached := r.Usage.CachedTokens - first.Slots; r.Usage.PromptTokens < first.Slots+100 || behindIt != (cached > 0) || cached < 0 {
			t.Errorf("%s, salt %q: %+v", name, salt, r.Usage)
		}
		if want[name] == "" {
			want[name] = r.Text
		}
		if r.Text != want[name] {
			t.Errorf("%s, salt %q: %q, want %q", name, salt, r.Text, want[name])
		}
	}
	check("one", "", false)
	check("one", "", true)
	check("two", "", false)
	check("one", "a", false)
	check("one", "b", false)
	check("one", "a", true)
	check("two", "a", false)
	if r := generate(t, e, ask("", question, 8)); r.Usage.CachedTokens != 0 {
		t.Errorf("without a context %+v", r.Usage)
	}
	for _, empty := range []func(){e.Clear, func() { _ = e.Forget("a") }} {
		empty()
		check("one", "a", false)
		check("one", "", false)
		check("two", "", false)
		check("one", "", true)
	}
	if want["one"] == want["two"] {
		t.Log("both contexts have the same answer") // of a model of random weights
	}
}

// TestContextUnderPressure: requests that take each other's room get the answers that they get alone.
func TestContextUnderPressure(t *testing.T) {
	model := reader(t)
	r := compressed(t, local.Compression{Model: model})
	alone := open(t, 300, local.Config{Model: model, Contexts: map[string]string{"c": r.File}})
	tight := open(t, r.Slots/16+14, local.Config{Model: model, Running: 4, Contexts: map[string]string{"c": r.File}})
	var group sync.WaitGroup
	for i := range 6 {
		req := behind("c", text(i, 30), 90)
		if i%3 == 2 {
			req = ask("", text(i, 30), 90)
		}
		want := generate(t, alone, req).Text
		group.Go(func() {
			for range 3 {
				if got := generate(t, tight, req).Text; got != want {
					t.Errorf("request %d: %q, want %q", i, got, want)
				}
			}
		})
	}
	group.Wait()
	if s := tight.Stats(); s.Preemptions == 0 || s.UsedBlocks != r.Slots/16 {
		t.Errorf("%+v", s)
	}
}

// TestContextRoom: a prompt or a context that is too long is refused, and the error has the numbers.
func TestContextRoom(t *testing.T) {
	model := reader(t)
	r := compressed(t, local.Compression{Model: model})
	e := open(t, r.Slots/16+5, local.Config{Model: model, Contexts: map[string]string{"c": r.File}})
	if e.Context() != 80 {
		t.Errorf("behind nothing there is room for %d tokens, want 80", e.Context())
	}
	room, err := e.Room("c")
	if err != nil {
		t.Fatal(err)
	}
	prompt := e.TokenizeBare(text(3, 400))
	request := engines.Request{Extra: extra("context", "c", "ignore_eos", true)}
	request.MaxTokens = 10
	if got, err := e.GenerateTokens(t.Context(), request, prompt[:room-10], nil); err != nil || got.Usage.OutputTokens != 10 {
		t.Errorf("%+v, error %v", got.Usage, err)
	}
	if _, err := e.GenerateTokens(t.Context(), request, prompt[:room-9], nil); !errors.Is(err, engines.ErrRefused) ||
		!strings.Contains(err.Error(), fmt.Sprint(r.Slots+80)) {
		t.Errorf("error %v", err)
	}
	if err := e.Check(request, prompt[:room-9]); !errors.Is(err, engines.ErrRefused) {
		t.Errorf("error %v of a check", err)
	}
	if _, err := local.Open(local.Config{
		Model: model, CacheBytes: int64((r.Slots/16 + 1) * pageBytes),
		Contexts: map[string]string{"c": r.File},
	}); !errors.Is(
		err,
		local.ErrCacheTooSmall,
	) {
		t.Errorf("error %v of a cache that the context fills", err)
	}
}

func TestContextRefused(t *testing.T) {
	model := reader(t)
	r := compressed(t, local.Compression{Model: model})
	e := open(t, 200, local.Config{Model: model, Contexts: map[string]string{"manual": r.File}})
	for _, run := range []func(engines.Request) error{
		func(q engines.Request) error { _, err := e.Generate(t.Context(), q, nil); return err },
		func(q engines.Request) error { _, err := e.Score(t.Context(), q, "1", nil); return err },
		func(q engines.Request) error {
			_, err := e.GenerateTokens(t.Context(), q, []int32{1, 2}, nil)
			return err
		},
		func(q engines.Request) error { return e.Check(q, []int32{1, 2}) },
	} {
		if err := run(behind("other", "a", 1)); !errors.Is(err, engines.ErrRefused) ||
			!strings.Contains(err.Error(), `context "other": not loaded; there are ["manual"]`) {
			t.Errorf("error %v", err)
		}
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	data, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, data[:len(data)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]local.Config{
		`context "c": ` + r.File + ": model tiny llama (identity ": {Model: tiny(t), Contexts: map[string]string{"c": r.File}},
		"damaged": {Model: model, Contexts: map[string]string{"c": damaged}},
		"no such": {Model: model, Contexts: map[string]string{"c": damaged + "x"}},
		"empty":   {Model: model, Contexts: map[string]string{"": r.File}},
	} {
		if _, err := local.Open(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := local.InspectContext(damaged); err == nil {
		t.Error("a damaged file is no error")
	}
}

// TestContextEvents: events have no slot of a context, and what is behind one under another salt; the disk tier has none of it.
func TestContextEvents(t *testing.T) {
	model, dir := reader(t), t.TempDir()
	r := compressed(t, local.Compression{Model: model})
	book := newLedger()
	salts := map[string]bool{}
	e := open(
		t,
		200,
		local.Config{Model: model, CacheDir: dir, Contexts: map[string]string{"c": r.File}, OnCache: func(events []kvevents.Event) {
			book.cache(slices.DeleteFunc(slices.Clone(events), func(e kvevents.Event) bool { return e.Medium != "" }))
			for _, e := range events {
				if e.Kind == kvevents.Stored && e.Parent.IsZero() {
					salts[string(e.Salt)] = true
				}
				if slices.Contains(e.Tokens, -1) {
					t.Errorf("%+v", e)
				}
			}
		}},
	)
	req := behind("c", text(1, 200), 4)
	req.ID = "x"
	var lost []contextpilot.Event
	defer e.Subscribe(func(events ...contextpilot.Event) {
		lost = append(lost, slices.DeleteFunc(slices.Clone(events), func(e contextpilot.Event) bool { return e.Kind == contextpilot.Served })...)
	})()
	generate(t, e, req)
	if s := e.Stats(); s.ResidentRequests != 1 || len(lost) > 0 {
		t.Errorf("%+v; lost %+v", s, lost)
	}
	e.Clear()
	if len(lost) != 2 || lost[0].Request != "x" || lost[0].Kind != contextpilot.Gone {
		t.Errorf("after Clear, lost %+v", lost)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s.Disk.Written != 0 {
		t.Errorf("%d blocks behind a context are in files", s.Disk.Written)
	}
	if len(book.faults) > 0 || book.cleared != 1 || len(salts) != 1 || salts[""] {
		t.Errorf("%v; %d blocks, salts %v", book.faults, len(book.blocks), salts)
	}
}

// corpus is documents of about so many tokens each.
func corpus(n, tokens int) []local.Document {
	all := make([]local.Document, n)
	for i := range all {
		all[i] = local.Document{Name: fmt.Sprintf("%02d.txt", i), Text: fmt.Sprintf("number %d: %s", i, text(i, tokens))}
	}
	return all
}

// TestByDocument: when one of 20 documents changes, the slots of the others stay as they are, and a twentieth of the work is done.
func TestByDocument(t *testing.T) {
	testkit.NotUnderRace(t)
	model, out := reader(t), filepath.Join(t.TempDir(), "corpus")
	c := local.Compression{Model: model, Out: out, ByDocument: true, Documents: corpus(20, 400), Notes: text(3, 100)}
	first := compressed(t, c)
	slots := func() map[string]string {
		f, err := contextfile.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for i, p := range f.Parts {
			all[p.Sources[0].Name] = string(slices.Concat(f.Pages(i)...))
		}
		return all
	}
	before := slots()
	if first.Parts != 21 || first.Reused != 0 || len(before) != 21 || !first.ByDocument {
		t.Fatalf("%+v", first)
	}
	c.Documents = slices.Clone(c.Documents)
	c.Documents[7].Text = "another: " + text(9, 400)
	again := compressed(t, c)
	after := slots()
	for name := range before {
		if same := before[name] == after[name]; same == (name == "07.txt") {
			t.Errorf("%q is as before: %v", name, same)
		}
	}
	share := float64(again.Computed) / float64(first.Computed)
	t.Logf("%d of %d tokens computed: %.3f", again.Computed, first.Computed, share)
	if again.Reused != 19 || share > 0.08 {
		t.Errorf("%d parts of the earlier file, %.3f of the tokens", again.Reused, share)
	}
	fresh := c
	fresh.Out = filepath.Join(t.TempDir(), "fresh")
	compressed(t, fresh)
	if x, y := read(t, out), read(t, fresh.Out); x != y {
		t.Error("with an earlier file it is another one than without")
	}
	c.Notes = "5"
	if r := compressed(t, c); r.Reused != 0 {
		t.Errorf("with other notes %d parts stay", r.Reused)
	}
	e := open(t, 300, local.Config{Model: model, Contexts: map[string]string{"c": out}})
	if r := generate(t, e, behind("c", "1?", 3)); r.Usage.CachedTokens != first.Slots {
		t.Errorf("%+v", r.Usage)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
