//go:build invariants

package tree

import (
	"strings"
	"testing"
)

// What the tree does wrong is told by the next change.
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
			var told []string
			x.shadow.fail = func(message string) { told = append(told, message) }
			x.Insert("a", []Elem{{1, 10}, {2, 10}, {3, 10}})
			x.Insert("b", []Elem{{1, 10}, {4, 10}})
			x.Insert("c", []Elem{{1, 10}, {5, 10}})
			if told != nil {
				t.Fatal(told)
			}
			c.spoil(x)
			x.Remove("c")
			if !strings.Contains(strings.Join(told, "\n"), c.want) {
				t.Errorf("told %q, want %q", told, c.want)
			}
		})
	}
}
