package recorded_test

import (
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func add(t *testing.T, c *recorded.Chains[string], id, parent string, docs ...string) recorded.Deduped[string] {
	t.Helper()
	return c.Add(id, parent, docs, hint(t, "{doc_id}@{turn_number} of {source_request}"), recorded.Names(docs))
}

func hint(t *testing.T, template string) recorded.Hint {
	t.Helper()
	return testkit.Must(recorded.ParseHint(template))(t)
}

func TestChain(t *testing.T) {
	c := recorded.NewChains[string](10)
	check(t, "first turn is new", true, add(t, c, "1", "", "a", "b").IsNew)
	check(t, "second turn", recorded.Deduped[string]{
		New: []string{"c"}, Overlapping: []string{"b"}, Hints: []string{"b@1 of 1"}, Sources: map[string]string{"b": "1"},
	}, add(t, c, "2", "1", "c", "b"))
	third := add(t, c, "3", "2", "c", "a", "d")
	check(t, "third turn: sources", map[string]string{"c": "2", "a": "1"}, third.Sources)
	check(t, "third turn: hints", []string{"c@2 of 2", "a@1 of 1"}, third.Hints)
	other := add(t, c, "4", "1", "c", "a")
	check(t, "a branch does not see its sister", []string{"c"}, other.New)
	check(t, "an unknown parent begins a conversation", true, add(t, c, "5", "nobody", "a").IsNew)
}

// IDs come from clients: they may name themselves, each other, or a later turn as parent.
func TestChainCycles(t *testing.T) {
	c := recorded.NewChains[string](10)
	add(t, c, "1", "1", "a")
	check(t, "its own parent", []string{"a"}, add(t, c, "1", "1", "a", "b").Overlapping)
	add(t, c, "x", "y", "a")
	add(t, c, "y", "x", "b")
	add(t, c, "x", "y", "c")
	out := add(t, c, "z", "x", "a", "b", "c")
	check(t, "the walk ends, and every doc is there once", 3, len(out.New)+len(out.Overlapping))
	check(t, "the parent's own docs are known", "x", out.Sources["c"])
}

func TestChainLimit(t *testing.T) {
	c := recorded.NewChains[string](3)
	parent := ""
	for i := range 50 {
		id := fmt.Sprint(i)
		add(t, c, id, parent, "doc"+id)
		parent = id
	}
	out := add(t, c, "last", "49", "doc49", "doc48", "doc47", "doc46", "doc0")
	check(t, "the last three turns are remembered", []string{"doc49", "doc48", "doc47"}, out.Overlapping)
	check(t, "no less than one turn", []string{"a"}, func() []string {
		c := recorded.NewChains[string](-5)
		add(t, c, "1", "", "a")
		return add(t, c, "2", "1", "a").Overlapping
	}())
}
