package demo_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/docs"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/bleve"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// config is what `ragpilot demo` runs without flags.
func config(t *testing.T) demo.Config {
	t.Helper()
	index, err := bleve.New(docs.FS, bleve.Options{Exclude: demo.NotPages()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	script, err := demo.DefaultScript()
	if err != nil {
		t.Fatal(err)
	}
	return demo.Config{
		Script: script, Search: index.Search, K: 8, Tokenizer: demo.SimTokenizer{},
		NewEngine: func() (engines.Engine, error) { return demo.NewSimulator(0), nil },
	}
}

func run(t *testing.T, c demo.Config) *demo.Result {
	t.Helper()
	return testkit.Must(demo.Run(context.Background(), c))(t)
}

func table(t *testing.T, r *demo.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := demo.WriteTable(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The figures that the README promises.
func TestGoal(t *testing.T) {
	r := run(t, config(t))
	if saving, ok := r.Saving(); !ok || saving < 0.40 {
		t.Errorf("computed prompt tokens: %.1f %% fewer (known: %v), want at least 40 %%", 100*saving, ok)
	}
	if overlap := r.Overlap(); overlap > 0.50 {
		t.Errorf("mean overlap of consecutive requests %.1f %%, want at most 50 %%", 100*overlap)
	}
	sum := demo.Sum(r.With)
	if sum.Reordered == 0 || sum.Refs == 0 {
		t.Errorf("%d requests reordered, %d references: the demonstration shows neither", sum.Reordered, sum.Refs)
	}
}

// What both sides were given to read, taken from the messages and not from the plans.
func TestSameBlocksInEveryTurn(t *testing.T) {
	r := run(t, config(t))
	text := map[string]string{}
	for _, b := range r.Blocks {
		text[b.ID] = b.Text
	}
	for _, side := range [][]demo.Sent{r.Without, r.With} {
		said := map[string]string{}
		for i, q := range r.Questions {
			said[q.User] += side[i].Text + "\n"
			got := slices.Sorted(slices.Values(slices.Concat(side[i].Full, side[i].Refs, side[i].LeftOut)))
			if want := slices.Sorted(slices.Values(q.Retrieved)); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", q.ID(), got, want)
			}
			for _, id := range q.Retrieved {
				if !strings.Contains(said[q.User], text[id]) {
					t.Errorf("%s: block %s is not in the conversation", q.ID(), id)
				}
			}
			for _, id := range side[i].Refs {
				if strings.Contains(side[i].Text, text[id]) {
					t.Errorf("%s: block %s is a reference and sent again", q.ID(), id)
				}
			}
		}
	}
}

func TestDefaultScript(t *testing.T) {
	script, err := demo.DefaultScript()
	if err != nil {
		t.Fatal(err)
	}
	turns, asked := map[string]int{}, map[string]string{}
	for _, q := range script {
		turns[q.User]++
		words := strings.ToLower(strings.Join(strings.Fields(q.Question), " "))
		if other, twice := asked[words]; twice {
			t.Errorf("%s asks what %s asked", q.ID(), other)
		}
		asked[words] = q.ID()
	}
	if len(turns) < 4 {
		t.Errorf("%d users, want at least 4", len(turns))
	}
	for user, n := range turns {
		if n < 4 {
			t.Errorf("%s asks %d questions, want at least 4", user, n)
		}
	}
}

func TestTable(t *testing.T) {
	r := run(t, config(t))
	got := table(t, r)
	if again := table(t, run(t, config(t))); again != got {
		t.Error("two runs print different tables")
	}
	golden := filepath.Join("testdata", "table.txt")
	if got != testkit.Golden(t, *update, golden, got) {
		t.Errorf("table is not %s (run with -update after a change of documentation, script or policy):\n%s", golden, got)
	}
	for _, s := range slices.Concat(r.Without, r.With) {
		n := 0
		for _, p := range s.Parts {
			n += p.Tokens
		}
		if n != s.Prompt {
			t.Errorf("parts have %d tokens, the simulator counts %d", n, s.Prompt)
		}
	}
}

// A small cache, where events about evictions arrive, and every policy.
func TestEveryPolicy(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, policy := range contextpilot.PolicyNames() {
		for _, capacity := range []int{0, 12_000} {
			c := config(t)
			c.Profile.Policy = policy
			c.NewEngine = func() (engines.Engine, error) { return demo.NewSimulator(capacity), nil }
			r := run(t, c)
			if saving, ok := r.Saving(); !ok || saving <= 0 {
				t.Errorf("%s, capacity %d: saving %.3f, known %v", policy, capacity, saving, ok)
			}
		}
	}
}

// Every profile: all blocks are shown, and parts of prompts add up with echoes, too.
func TestEveryProfile(t *testing.T) {
	for _, name := range append(profile.Names(), "echoes") {
		c := config(t)
		if name == "echoes" {
			c.Profile = profile.Profile{Top: "echoes"}
		} else {
			c.Profile = testkit.Must(profile.Load(name))(t)
		}
		r := run(t, c)
		if saving, ok := r.Saving(); !ok || saving <= 0 || r.Policy != contextpilot.DefaultPolicy {
			t.Errorf("%s: saving %.3f, known %v, policy %s", name, saving, ok, r.Policy)
		}
		echoes := 0
		for i := range r.With {
			s := &r.With[i]
			n := 0
			for _, p := range s.Parts {
				n += p.Tokens
			}
			if n != s.Prompt {
				t.Errorf("%s: parts have %d tokens, the simulator counts %d", name, n, s.Prompt)
			}
			for r := range markup.All(s.Text) {
				if r.Echo {
					echoes++
				}
			}
		}
		if name != "near" && (echoes > 0) != (name == "echoes") { // near may find that to move costs nothing
			t.Errorf("%s: %d echoes", name, echoes)
		}
	}
}

func TestEngineFails(t *testing.T) {
	tests := []struct {
		name  string
		after int
		want  error
	}{
		{"dies in the middle of an answer", 3, engines.ErrInterrupted},
		{"is not there", 0, engines.ErrUnreachable},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := config(t)
			c.NewEngine = func() (engines.Engine, error) {
				return sim.New(sim.Options{Fault: func(q engines.Request) *sim.Fault {
					if q.ID != "chen-3" {
						return nil
					}
					return &sim.Fault{After: tc.after}
				}}), nil
			}
			r, err := demo.Run(context.Background(), c)
			if r != nil || !errors.Is(err, tc.want) {
				t.Fatalf("result %v, error %v; want no result and %v", r, err, tc.want)
			}
			if !strings.Contains(err.Error(), "chen-3") {
				t.Errorf("error %q does not name the request", err)
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	broken := errors.New("no index")
	tests := []struct {
		name, want string
		change     func(*demo.Config)
	}{
		{"no questions", "no questions", func(c *demo.Config) { c.Script = nil }},
		{"no blocks asked for", "k = 0", func(c *demo.Config) { c.K = 0 }},
		{"unknown policy", "unknown policy", func(c *demo.Config) { c.Profile.Policy = "best-guess" }},
		{"retriever fails", "retrieve for ana-1: no index", func(c *demo.Config) {
			c.Search = func(context.Context, string, int) ([]contextpilot.Block, error) { return nil, broken }
		}},
		{"no engine", "no index", func(c *demo.Config) {
			c.NewEngine = func() (engines.Engine, error) { return nil, broken }
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := config(t)
			tc.change(&c)
			r, err := demo.Run(context.Background(), c)
			if r != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("result %v, error %v; want none and %q", r, err, tc.want)
			}
		})
	}
}

func TestQuestionWithoutBlocks(t *testing.T) {
	c := config(t)
	c.Script = demo.Script{{User: "a", Turn: 1, Question: "zyzzyva"}, {User: "a", Turn: 2, Question: "What is a block?"}}
	r := run(t, c)
	if n := len(r.Questions[0].Retrieved); n != 0 {
		t.Fatalf("%d blocks found", n)
	}
	if got := table(t, r); !strings.Contains(got, "none") {
		t.Errorf("table does not say that nothing was found:\n%s", got)
	}
}
