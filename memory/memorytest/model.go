package memorytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory"
)

// remembered is a memory as the model knows it.
type remembered struct {
	id    string
	scope memory.Scope
	text  string
	n     float64 // metadata
	rows  int     // of history
}

// model is a store that is obviously right: a list.
type model struct {
	*bench
	live []*remembered // in order of creation
	gone []*remembered
}

// checkModel runs random operations on the store and on a list and compares all that can be seen after each.
func checkModel(b *bench) {
	b.ctx = b.Context() // it is much work, on a slow machine more than patience allows; an operation that hangs ends with the test
	scopes := []memory.Scope{{User: "a"}, {User: "b"}, {User: "a", Run: "1"}, {Agent: "g"}, {User: "b", Agent: "g"}}
	words := []string{"tea", "oslo", "dog", "rain", "two"}
	rapid.Check(b.T, func(t *rapid.T) {
		if err := b.store.Reset(b.ctx); err != nil {
			t.Fatal(err)
		}
		m := &model{bench: b}
		scope := rapid.SampledFrom(scopes)
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "words"), " ")
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m.add(t, scope.Draw(t, "scope"), text.Draw(t, "text"), rapid.IntRange(0, 3).Draw(t, "n"))
			},
			"update": func(t *rapid.T) {
				if len(m.live) > 0 {
					m.update(t, rapid.SampledFrom(m.live).Draw(t, "memory"), text.Draw(t, "text"))
				}
			},
			"delete": func(t *rapid.T) {
				if len(m.live) > 0 {
					m.delete(t, rapid.SampledFrom(m.live).Draw(t, "memory"))
				}
			},
			"delete all": func(t *rapid.T) { m.deleteAll(t, scope.Draw(t, "scope")) },
			"search":     func(t *rapid.T) { m.compareSearch(t, scope.Draw(t, "scope"), text.Draw(t, "query")) },
			"":           func(t *rapid.T) { m.compare(t, scopes) },
		})
	})
}

func (m *model) find(scope memory.Scope, text string) *remembered {
	for _, r := range m.live {
		if r.scope == scope && r.text == text {
			return r
		}
	}
	return nil
}

func (m *model) add(t *rapid.T, scope memory.Scope, text string, n int) {
	changes, err := m.store.Add(m.ctx, scope, said(text), memory.AddOptions{Metadata: map[string]any{"n": n}})
	if err != nil {
		t.Fatal(err)
	}
	if m.find(scope, text) != nil {
		if len(changes) == 1 && changes[0].Event != memory.None {
			t.Fatalf("a repeat: %+v", changes)
		}
		return
	}
	if len(changes) != 1 || changes[0].Event != memory.Added || changes[0].Text != text {
		t.Fatalf("Add(%q) = %+v", text, changes)
	}
	m.live = append(m.live, &remembered{changes[0].ID, scope, text, float64(n), 1})
}

func (m *model) update(t *rapid.T, r *remembered, text string) {
	_, err := m.store.Update(m.ctx, r.id, memory.Update{Text: &text})
	if other := m.find(r.scope, text); other != nil && other != r {
		if !errors.Is(err, memory.ErrExists) {
			t.Fatalf("an update to a text that is taken = %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	r.text = text
	r.rows++
}

func (m *model) delete(t *rapid.T, r *remembered) {
	if err := m.store.Delete(m.ctx, r.id, memory.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.rows++
	m.gone = append(m.gone, r)
	m.live = slices.DeleteFunc(m.live, func(o *remembered) bool { return o == r })
}

func (m *model) deleteAll(t *rapid.T, scope memory.Scope) {
	n, err := m.store.DeleteAll(m.ctx, scope, memory.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.live = slices.DeleteFunc(m.live, func(r *remembered) bool {
		if !scope.Covers(r.scope) {
			return false
		}
		r.rows++
		m.gone = append(m.gone, r)
		n--
		return true
	})
	if n != 0 {
		t.Fatalf("DeleteAll removed %d more than the model", n)
	}
}

// compare looks at all that listing and history show.
func (m *model) compare(t *rapid.T, scopes []memory.Scope) {
	for _, scope := range scopes {
		all, err := m.store.GetAll(m.ctx, scope, memory.ListOptions{Filter: memory.Where("n", memory.OpGte, 1)})
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, r := range m.live {
			if scope.Covers(r.scope) && r.n >= 1 {
				want = append(want, fmt.Sprint(r.id, r.scope, r.text, r.n))
			}
		}
		for _, mem := range all {
			got = append(got, fmt.Sprint(mem.ID, mem.Scope, mem.Text, mem.Metadata["n"]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("GetAll(%+v): %s", scope, diff)
		}
	}
	if all := append(slices.Clone(m.live), m.gone...); len(all) > 0 {
		r := rapid.SampledFrom(all).Draw(t, "history of")
		rows, err := m.store.History(m.ctx, r.id)
		if err != nil || len(rows) != r.rows {
			t.Fatalf("%d rows of history for %q, %v; want %d", len(rows), r.text, err, r.rows)
		}
		dead := rows[len(rows)-1].Event == memory.Deleted
		if last := rows[len(rows)-1]; !dead && last.New != r.text {
			t.Fatalf("the history of %q ends with %q", r.text, last.New)
		}
	}
}

// compareSearch: what is found is the scope's, all of it without a threshold, and what has a word of the query has a lexical score.
func (m *model) compareSearch(t *rapid.T, scope memory.Scope, query string) {
	hits, err := m.store.Search(m.ctx, scope, query, 1000, memory.SearchOptions{Threshold: -1})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	got := make([]string, 0, len(hits))
	for _, r := range m.live {
		if scope.Covers(r.scope) {
			want = append(want, r.id)
		}
	}
	for _, h := range hits {
		got = append(got, h.Memory.ID)
		shares := slices.ContainsFunc(strings.Fields(query), func(w string) bool {
			return slices.Contains(strings.Fields(h.Memory.Text), w)
		})
		if shares != (h.Lexical > 0) {
			t.Fatalf("query %q, text %q, lexical score %v", query, h.Memory.Text, h.Lexical)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Fatalf("found %q, want %q", got, want)
	}
}
