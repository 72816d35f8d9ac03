package membench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// golden is the SHA-256 of the data of seed 1 as JSON.
const golden = "9b58e68af855912b70ebd59cb45b1c15dc34de85ebdd06935110d1f5b4405a93"

func generate(t *testing.T, opts Options) *Data {
	t.Helper()
	return testkit.Must(Generate(opts))(t)
}

func bytesOf(t *testing.T, data *Data) []byte {
	t.Helper()
	return testkit.Must(json.Marshal(data))(t)
}

func TestSameSeedSameBytes(t *testing.T) {
	first := bytesOf(t, generate(t, Options{Seed: 1}))
	if string(first) != string(bytesOf(t, generate(t, Options{Seed: 1}))) {
		t.Error("one seed gives two results")
	}
	if sum := sha256.Sum256(first); hex.EncodeToString(sum[:]) != golden {
		t.Errorf("the data of seed 1 are %x: a change of patterns or generator makes older figures incomparable", sum)
	}
}

// Different seeds share a few facts at most, as texts.
func TestSeedsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range generate(t, Options{Seed: 1, Users: 1}).Cases {
		for _, q := range c.First {
			seen[q.Needs[0]] = true
		}
	}
	same, all := 0, map[string]bool{}
	for _, q := range generate(t, Options{Seed: 2, Users: 1}).Cases[0].First {
		if !all[q.Needs[0]] && seen[q.Needs[0]] {
			same++
		}
		all[q.Needs[0]] = true
	}
	if len(all) < 50 || same*5 > len(all) {
		t.Errorf("%d of %d facts are the same with another seed", same, len(all))
	}
}

// The first question of each pattern has no content stem in common with the fact or the update, whatever the values.
func TestPatterns(t *testing.T) {
	s, err := newStems()
	if err != nil {
		t.Fatal(err)
	}
	all := texts().Patterns
	if len(all) < 120 {
		t.Errorf("%d patterns, want at least 120", len(all))
	}
	topics, asked := map[string]bool{}, map[string]string{}
	for _, p := range all {
		if topics[p.Topic] {
			t.Errorf("two patterns have the topic %s", p.Topic)
		}
		topics[p.Topic] = true
		questions := p.Questions
		if len(questions) < 2 {
			t.Errorf("%s: %d questions, want at least 2", p.Topic, len(questions))
		}
		for _, q := range questions {
			if other := asked[q]; other != "" {
				t.Errorf("%s and %s both ask %q", p.Topic, other, q)
			}
			asked[q] = p.Topic
		}
		values := slices.Compact(slices.Sorted(slices.Values(p.Values)))
		if n := len(values); n < 2 || n != len(p.Values) {
			t.Errorf("%s: values %q", p.Topic, p.Values)
		}
		for _, text := range []string{p.Fact, p.Update} {
			if text != "" && strings.Count(text, "{v}") != 1 {
				t.Errorf("%s: %q has not one {v}", p.Topic, text)
			}
			for _, v := range values {
				if both := s.shared(questions[0], strings.ReplaceAll(text, "{v}", v)); text != "" && len(both) > 0 {
					t.Errorf("%s: %q shares %q with %q (%s)", p.Topic, questions[0], both, text, v)
				}
			}
		}
	}
}

func TestGenerated(t *testing.T) {
	for seed := range uint64(5) {
		data := generate(t, Options{Seed: seed})
		if 2*data.Disjoint < data.Pairs || data.Pairs == 0 {
			t.Errorf("seed %d: %d of %d pairs have no content stem in common, want half at least", seed, data.Disjoint, data.Pairs)
		}
		if len(data.Cases) != DefaultUsers {
			t.Errorf("seed %d: %d users", seed, len(data.Cases))
		}
		for i := range data.Cases {
			checkCase(t, &data.Cases[i])
		}
	}
}

func checkCase(t *testing.T, c *Case) {
	t.Helper()
	said := map[string]bool{}
	for _, s := range c.Statements {
		if said[s.Text] {
			t.Errorf("%s says twice %q", c.User, s.Text)
		}
		said[s.Text] = true
	}
	answered := map[string]string{} // question → fact
	facts := map[string]bool{}
	for _, q := range c.First {
		if answered[q.Text] != "" {
			t.Errorf("%s: %q and %q both answer %q", c.User, answered[q.Text], q.Needs[0], q.Text)
		}
		answered[q.Text] = q.Needs[0]
		facts[q.Needs[0]] = true
		if !said[q.Needs[0]] {
			t.Errorf("%s never said %q", c.User, q.Needs[0])
		}
	}
	if len(facts) < 50 || len(c.Statements) < len(facts)+40 || len(c.Updates) != updatesEach || len(c.Deleted) != deletedEach ||
		len(c.Turns) != DefaultTurns {
		t.Errorf("%s: %d facts, %d statements, %d updates, %d deletions, %d turns", c.User, len(facts), len(c.Statements), len(c.Updates),
			len(c.Deleted), len(c.Turns))
	}
	if len(c.Then) != len(c.First) {
		t.Errorf("%s: %d and %d questions", c.User, len(c.First), len(c.Then))
	}
	for _, q := range c.Then {
		switch old := answered[q.Text]; {
		case len(q.Needs) == 0 && !slices.Contains(c.Deleted, old):
			t.Errorf("%s: nothing answers %q", c.User, q.Text)
		case q.Old != "" && (q.Old != old || !slices.Contains(c.Updates, q.Needs[0]) || said[q.Needs[0]]):
			t.Errorf("%s: %+v, first %q", c.User, q, old)
		case q.Old == "" && len(q.Needs) > 0 && q.Needs[0] != old:
			t.Errorf("%s: %+v, first %q", c.User, q, old)
		}
	}
	asks := 0
	for _, turn := range c.Turns {
		if len(turn.Needs) > 0 {
			asks++
			if !strings.Contains(turn.Needs[0], turn.Value) && !strings.Contains(turn.Needs[0], sentence(turn.Value)) {
				t.Errorf("%s: %q does not say %q", c.User, turn.Needs[0], turn.Value)
			}
		}
	}
	if asks < DefaultTurns/3 {
		t.Errorf("%s: %d of %d turns ask for a fact", c.User, asks, DefaultTurns)
	}
}

func TestBadOptions(t *testing.T) {
	if _, err := Generate(Options{Users: -1}); err == nil || !strings.Contains(err.Error(), "users -1") {
		t.Errorf("got %v", err)
	}
	if data := generate(t, Options{Users: 1, Turns: -1}); len(data.Cases[0].Turns) != 0 {
		t.Errorf("%d turns, want none", len(data.Cases[0].Turns))
	}
}
