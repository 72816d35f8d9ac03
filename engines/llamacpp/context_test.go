package llamacpp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
)

// contextFiles writes two contexts for a fake, and returns their files by name.
func contextFiles(t *testing.T, f *fake, change func(n *slotnote.Note)) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := os.MkdirAll(f.traits.slotDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b"} {
		n := slotnote.Note{Parallel: len(f.slots), Type: "f16", Rest: []int32{-7}}
		for j := range 32 {
			n.Tokens = append(n.Tokens, int32(100000+1000*i+j))
		}
		file := filepath.Join(f.traits.slotDir, name+".slot")
		data, err := json.Marshal(n.Tokens)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err == nil {
			n.Bytes, n.Sum, err = slotnote.Sum(file)
		}
		if change != nil {
			change(&n)
		}
		if err == nil {
			err = slotnote.Write(file, n)
		}
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return files
}

func inContext(name, text string) engines.Request {
	req := question(text, text)
	req.Extra = map[string]json.RawMessage{"context": json.RawMessage(fmt.Sprintf("%q", name))}
	return req
}

// A context is restored once, and again only when its slot was lost; the answer is given in one piece, with what was cached.
func TestContext(t *testing.T) {
	f := diskFake(t, traits{slots: 2})
	engine, l := f.engine(func(c *llamacpp.Config) { c.Contexts = contextFiles(t, f, nil) })
	for i, step := range []struct {
		name     string
		restores int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"a", 2}, {"b", 2}, {"", 2}, {"a", 3}, {"b", 4}} {
		if step.name == "" {
			ask(t.Context(), t, engine, question("plain", words("plain", 50)))
			continue
		}
		var pieces []string
		r, err := engine.Generate(t.Context(), inContext(step.name, fmt.Sprint("question ", i)), func(piece string) error {
			pieces = append(pieces, piece)
			return nil
		})
		if err != nil || strings.Join(pieces, "|") != "yes" || r.Text != "yes" || r.Finish != "length" || r.Usage.CachedTokens < 32 ||
			!r.Usage.CachedKnown {
			t.Errorf("step %d: %+v, pieces %q, error %v", i, r, pieces, err)
		}
		if p := l.of(r.ID); p.Cached != r.Usage.CachedTokens || p.Prompt != r.Usage.PromptTokens {
			t.Errorf("step %d: predicted %+v, usage %+v", i, p, r.Usage)
		}
		if n := f.restores(); n != step.restores {
			t.Errorf("step %d: %d restores, want %d", i, n, step.restores)
		}
	}
}

// Errors name the context and what is wrong, before the server is asked.
func TestContextRefused(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(model, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	bytes, sum, err := slotnote.Sum(model)
	if err != nil {
		t.Fatal(err)
	}
	right := func(n *slotnote.Note) { n.ModelBytes, n.ModelFile = bytes, sum }
	for want, c := range map[string]struct {
		change func(n *slotnote.Note)
		extra  string
	}{
		"":                       {right, `"context":"a"`},
		"the server has another": {func(n *slotnote.Note) { n.ModelBytes, n.ModelFile = bytes, "0" }, `"context":"a"`},
		"has another one":        {func(n *slotnote.Note) { right(n); n.ModelBytes++ }, `"context":"a"`},
		"--parallel 9":           {func(n *slotnote.Note) { right(n); n.Parallel = 9 }, `"context":"a"`},
		"its checksum":           {func(n *slotnote.Note) { right(n); n.Sum = "0" }, `"context":"a"`},
		"its note says":          {func(n *slotnote.Note) { right(n); n.Bytes++ }, `"context":"a"`},
		`"c": not loaded`:        {right, `"context":"c"`},
		"context 5":              {right, `"context":5`},
		"not with cache_prompt":  {right, `"context":"a","cache_prompt":false`},
	} {
		t.Run(want, func(t *testing.T) {
			f := diskFake(t, traits{slots: 1, model: model})
			engine, _ := f.engine(func(config *llamacpp.Config) { config.Contexts = contextFiles(t, f, c.change) })
			req := question("q", "a question")
			if err := json.Unmarshal([]byte("{"+c.extra+"}"), &req.Extra); err != nil {
				t.Fatal(err)
			}
			r, err := engine.Generate(t.Context(), req, nil)
			if want == "" {
				if err != nil || r.Text != "yes" {
					t.Errorf("%+v, error %v", r, err)
				}
				return
			}
			if !errors.Is(err, engines.ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "context ") ||
				f.restores() != 0 {
				t.Errorf("error %v, %d restores", err, f.restores())
			}
			ask(t.Context(), t, engine, question("plain", "a question without one"))
		})
	}
	f := diskFake(t, traits{slots: 1})
	files := contextFiles(t, f, nil)
	if err := os.WriteFile(files["b"]+slotnote.Ending, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := llamacpp.New(llamacpp.Config{Contexts: files}); err == nil {
		t.Error("no error without a server")
	}
	for want, files := range map[string]map[string]string{`context "b"`: files, "a name is empty": {"": files["a"]}} {
		config := llamacpp.Config{Contexts: files}
		config.Server.BaseURL = f.URL
		if _, err := llamacpp.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A slot that another client has taken gives an error and no answer; the next request restores the context.
func TestContextTaken(t *testing.T) {
	f := diskFake(t, traits{slots: 1})
	engine, _ := f.engine(func(c *llamacpp.Config) { c.Contexts = contextFiles(t, f, nil) })
	ask(t.Context(), t, engine, inContext("a", "first"))
	f.mu.Lock()
	f.slots[0].tokens = []int{5, 6, 7}
	f.mu.Unlock()
	if r, err := engine.Generate(t.Context(), inContext("a", "second"), nil); err == nil || r.Text != "" ||
		!strings.Contains(err.Error(), "did not find it in slot 0") {
		t.Errorf("%+v, error %v", r, err)
	}
	if r := ask(t.Context(), t, engine, inContext("a", "third")); r.Usage.CachedTokens < 32 || f.restores() != 2 {
		t.Errorf("%+v after %d restores", r, f.restores())
	}
}
