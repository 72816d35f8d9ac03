package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// chats is a scorer that keeps what it is asked.
type chats struct{ asked [][]engines.Message }

func (*chats) Name() string { return "chats" }

func (c *chats) Generate(_ context.Context, req engines.Request, _ int) (string, error) {
	c.asked = append(c.asked, req.Messages)
	return "", nil
}

// docs/quality.md says how much of plain's tokens the engine computes of the prompts of its evaluation. Which tokens are in the cache
// does not depend on what the model knows, so that a tiny one does.
func TestLayouts(t *testing.T) {
	if testing.Short() {
		t.Skip("computes 10,000 prompts")
	}
	testkit.NotUnderRace(t)
	rows, err := eval.Generate(eval.Options{Rows: 2000, K: 5, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	arms := evaluated(t)
	all := &chats{}
	outcomes, err := (&eval.Run{Rows: rows, Arms: arms, Scorer: all, System: eval.DefaultSystem, MaxTokens: 1}).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := make([][][]engines.Message, len(arms))
	for _, o := range outcomes {
		messages := map[string][]engines.Message{} // arms with the same messages asked once
		for i, a := range o.Arms {
			if messages[a.Prompt] == nil {
				messages[a.Prompt], all.asked = all.asked[0], all.asked[1:]
			}
			sent[i] = append(sent[i], messages[a.Prompt])
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "quality.md"))
	if err != nil {
		t.Fatal(err)
	}
	plain := 0
	for i, names := range []string{"plain", "`default`", "`most-reuse`", "`safe`", "references only"} {
		computed := prefilled(t, sent[i])
		if i == 0 {
			plain = computed
			continue
		}
		share := fmt.Sprintf("%.1f %%", 100*float64(computed)/float64(plain))
		t.Logf("%s: %d tokens computed, %s of plain's", names, computed, share)
		if !says(string(page), names, share) {
			t.Errorf("docs/quality.md does not say that %s computes %s of plain's tokens", names, share)
		}
	}
}

// evaluated are the arms of docs/load/quality.sh.
func evaluated(t *testing.T) (arms []eval.Arm) {
	t.Helper()
	for _, name := range []string{eval.Plain, eval.Default} {
		arm, err := eval.ParseArm(name)
		if err != nil {
			t.Fatal(err)
		}
		arms = append(arms, arm)
	}
	kept := filepath.Join("..", "..", "docs", "load", "quality")
	for _, name := range []string{"most-reuse", filepath.Join(kept, "best-last.json"), filepath.Join(kept, "as-retrieved.json")} {
		profile, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		arms = append(arms, eval.Arm{Name: profile.Name, Profile: profile})
	}
	return arms
}

// prefilled is how many tokens of prompts an engine computes that begins with an empty cache and gives nothing up.
func prefilled(t *testing.T, chats [][]engines.Message) (computed int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(file, tinymodel.Options{
		Seed: 1, Context: 8192, Layers: 1, Hidden: 32, Heads: 2, KVHeads: 1,
		FFN: 32,
	}); err != nil {
		t.Fatal(err)
	}
	e, err := local.Open(local.Config{Model: file, CacheBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, messages := range chats {
		r := generate(t, e, engines.Request{Messages: messages, MaxTokens: 1})
		computed += r.Usage.PromptTokens - r.Usage.CachedTokens
	}
	if n := e.Stats().Evictions; n > 0 {
		t.Errorf("%d blocks were given up", n)
	}
	return computed
}

// says reports whether a page has a row of a table that begins with a name and has a cell.
func says(page, name, cell string) bool {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| "+name+" |") && strings.Contains(line, "| "+cell+" |") {
			return true
		}
	}
	return false
}
