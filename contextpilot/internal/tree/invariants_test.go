//go:build invariants

package tree

import (
	"strings"
	"testing"
)

// The next change reports what the tree does wrong.
func TestShadowTells(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		spoil func(x *Tree)
	}{
		"key":     {"is not in the tree", func(x *Tree) { x.nodes.at(2).key++ }},
		"tokens":  {"tokens", func(x *Tree) { x.tokens++ }},
		"depth":   {"tokens at", func(x *Tree) { x.nodes.at(1).depth--; x.nodes.at(2).depth-- }},
		"served":  {"served a", func(x *Tree) { x.reqs.at(1).state |= served }},
		"sure":    {"sure block", func(x *Tree) { x.nodes.at(1).fan |= sure }},
		"certain": {"sure of a", func(x *Tree) { x.reqs.at(1).sure++ }},
		"end":     {"remove", func(x *Tree) { x.remove(x.find("c")) }},
		"order":   {"order of use", func(x *Tree) { x.touch(Node(2)) }},
		"dropped": {"dropped", func(x *Tree) { x.dropped++ }},
	} {
		t.Run(name, func(t *testing.T) {
			x := New(1000, 0, nil)
			var broken []string
			x.shadow.fail = func(message string) { broken = append(broken, message) }
			x.Insert("a", []Elem{{1, 10}, {2, 10}, {3, 10}})
			x.Insert("b", []Elem{{1, 10}, {4, 10}})
			x.Insert("c", []Elem{{1, 10}, {5, 10}})
			if broken != nil {
				t.Fatal(broken)
			}
			c.spoil(x)
			x.Remove("c")
			if !strings.Contains(strings.Join(broken, "\n"), c.want) {
				t.Errorf("broken %q, want %q", broken, c.want)
			}
		})
	}
}
