package tree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot/internal/tree"
)

// model is the index as a list of requests and their paths, and for every prefix of a path its length and when it
// was last used. Slow, and easy to check by reading.
type model struct {
	capacity, max int
	reqs          []*modelReq // in order of arrival
	tokens        map[string]int
	part          map[string]bool // only the beginning is resident
	used          map[string]int
	sure          map[string]bool // an answered request passed through
	clock         int
	inserts       int
	forgotten     []string
}

type modelReq struct {
	id     string
	path   []string // prefixes, the last is where it ends
	served bool
	moved  bool // does not end any more where it was sent to
	sure   int  // tokens of its path that were sure when it was inserted
	since  int  // inserts when it was inserted or, once served, answered
}

func newModel(capacity, limit int) *model {
	return &model{
		capacity: capacity, max: limit, tokens: map[string]int{}, part: map[string]bool{}, used: map[string]int{},
		sure: map[string]bool{},
	}
}

// prefixes names every prefix of a path.
func prefixes(path []tree.Elem) (out []string) {
	name := ""
	for _, e := range path {
		name += fmt.Sprintf("/%d", e.Key)
		out = append(out, name)
	}
	return out
}

func parent(name string) string { return name[:strings.LastIndexByte(name, '/')] }

func (m *model) find(id string) *modelReq {
	for _, r := range m.reqs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// sweep drops the prefixes that no request passes through.
func (m *model) sweep() {
	live := map[string]bool{}
	for _, r := range m.reqs {
		for _, p := range r.path {
			live[p] = true
		}
	}
	maps.DeleteFunc(m.tokens, func(p string, _ int) bool { return !live[p] })
	maps.DeleteFunc(m.part, func(p string, _ bool) bool { return !live[p] })
	maps.DeleteFunc(m.sure, func(p string, _ bool) bool { return !live[p] })
	maps.DeleteFunc(m.used, func(p string, _ int) bool { return !live[p] })
}

func (m *model) remove(id string) bool {
	r := m.find(id)
	if r == nil {
		return false
	}
	m.reqs = slices.DeleteFunc(m.reqs, func(x *modelReq) bool { return x == r })
	m.forgotten = append(m.forgotten, id)
	m.sweep()
	return true
}

func (m *model) insert(id string, path []tree.Elem) (steps, resident int) {
	m.remove(id)
	names := prefixes(path)
	certain := 0
	for steps < len(names) && m.has(names[steps]) {
		n := names[steps]
		resident += m.tokens[n]
		if m.sure[n] {
			certain = resident
		}
		if m.part[n] { // there in part
			delete(m.part, n)
			delete(m.sure, n)
			for _, r := range slices.Clone(m.reqs) {
				if r.path[len(r.path)-1] == n {
					m.shorten(r, len(r.path)-1)
				}
			}
			break
		}
		steps++
	}
	for i, n := range names[steps:] {
		m.tokens[n] = int(path[steps+i].Tokens)
	}
	m.inserts++
	m.reqs = append(m.reqs, &modelReq{id: id, path: names, sure: certain, since: m.inserts})
	m.touch(names)
	m.fit()
	for m.max > 0 && len(m.reqs) > m.max {
		m.remove(m.reqs[0].id)
	}
	return steps, resident
}

func (m *model) leaf(name string) bool {
	for n := range m.tokens {
		if parent(n) == name {
			return false
		}
	}
	return true
}

func (m *model) has(name string) bool { _, ok := m.tokens[name]; return ok }

func (m *model) touch(names []string) {
	for _, n := range slices.Backward(names) {
		m.clock++
		m.used[n] = m.clock
	}
}

func (m *model) total() (n int) {
	for _, t := range m.tokens {
		n += t
	}
	return n
}

// fit drops the least recently used prefix, as often as needed; requests that end there end one step earlier.
func (m *model) fit() {
	for m.capacity > 0 && m.total() > m.capacity {
		oldest := ""
		for n, at := range m.used {
			if oldest == "" || at < m.used[oldest] {
				oldest = n
			}
		}
		for _, r := range slices.Clone(m.reqs) {
			if i := slices.Index(r.path, oldest); i >= 0 {
				if i != len(r.path)-1 {
					panic("the least recently used prefix is not an end")
				}
				m.shorten(r, i)
			}
		}
	}
}

func (m *model) shorten(r *modelReq, n int) {
	r.moved = r.moved || n < len(r.path)
	r.path = r.path[:n]
	if n == 0 {
		m.remove(r.id)
	}
	m.sweep()
}

func (m *model) shrink(id string, tokens int) bool {
	r := m.find(id)
	if r == nil {
		return false
	}
	n, sum := 0, 0
	for n < len(r.path) && sum+m.tokens[r.path[n]] <= tokens {
		sum += m.tokens[r.path[n]]
		n++
	}
	// What lies within counts from the end: an end without tokens at the border stays.
	if n < len(r.path) && sum < tokens {
		part, others := r.path[n], false
		for _, x := range m.reqs {
			others = others || x != r && slices.Contains(x.path, part)
		}
		if !others {
			m.shorten(r, n+1)
			r.moved = true
			m.tokens[part] = tokens - sum
			m.part[part] = true
			return true
		}
	}
	m.shorten(r, n)
	return true
}

func (m *model) extend(id string, tokens int) {
	r := m.find(id)
	if r == nil {
		return
	}
	end := r.path[len(r.path)-1]
	if !m.leaf(end) || r.moved {
		return
	}
	m.tokens[end] += tokens
	m.fit()
}

func (m *model) serve(id string) (fresh, ok bool) {
	r := m.find(id)
	if r == nil || r.served {
		return false, r != nil
	}
	r.served, r.since = true, m.inserts
	for _, p := range r.path {
		m.sure[p] = true
	}
	return true, true
}

func (m *model) resend(id string) (tokens int, ok bool) {
	r := m.find(id)
	if r == nil {
		return 0, false
	}
	m.inserts++
	m.reqs = append(slices.DeleteFunc(m.reqs, func(x *modelReq) bool { return x == r }), r)
	if r.served {
		r.since = m.inserts
	}
	m.touch(r.path)
	return m.resident(id)
}

// contradict shortens what was answered before the request was inserted and leaves its path behind tokens.
func (m *model) contradict(id string, tokens int) (contradicted bool, cut int) {
	r := m.find(id)
	if r == nil || r.served || r.sure <= tokens {
		return false, 0
	}
	stay := map[string]bool{}
	for _, x := range slices.Clone(m.reqs) {
		common, depth := 0, 0
		for common < min(len(x.path), len(r.path)) && x.path[common] == r.path[common] {
			depth += m.tokens[x.path[common]]
			common++
		}
		if common == 0 || depth <= tokens {
			continue // leaves the path before
		}
		for _, p := range x.path[common:] {
			if x.served && x.since >= r.since {
				stay[p] = true
			} else if !stay[p] {
				delete(m.sure, p)
			}
		}
		if x.served && x.since < r.since && common < len(x.path) {
			m.shorten(x, common)
			cut++
		}
	}
	for p := range stay {
		m.sure[p] = true
	}
	return true, cut
}

func (m *model) resident(id string) (n int, ok bool) {
	r := m.find(id)
	if r == nil {
		return 0, false
	}
	for _, p := range r.path {
		n += m.tokens[p]
	}
	return n, true
}

// image lists the prefixes of a tree with their lengths.
func image(t *tree.Tree) map[string]int {
	out := map[string]int{}
	var walk func(n tree.Node, name string)
	walk = func(n tree.Node, name string) {
		kids := t.Children(nil, n)
		if len(kids) != t.Fanout(n) {
			panic(fmt.Sprintf("%q has %d children, Fanout says %d", name, len(kids), t.Fanout(n)))
		}
		for _, k := range kids {
			name := fmt.Sprintf("%s/%d", name, t.Key(k))
			out[name] = t.Depth(k) - t.Depth(n)
			walk(k, name)
		}
	}
	walk(tree.Root, "")
	return out
}

func drawPath(t *rapid.T) []tree.Elem {
	keys := rapid.SliceOfN(rapid.Uint64Range(1, 5), 1, 5).Draw(t, "path")
	out := make([]tree.Elem, len(keys))
	for i, k := range keys {
		out[i] = tree.Elem{Key: k, Tokens: int32(k*7) % 11}
		if rapid.IntRange(0, 9).Draw(t, "not counted") == 0 {
			out[i].Tokens = 0
		}
	}
	return out
}

// requests that the model test uses; enough for a node whose children are found by table.
const requests = 30

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SampledFrom([]int{0, 0, 20, 60}).Draw(t, "capacity")
		limit := rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "max requests")
		wide := rapid.Bool().Draw(t, "wide")
		var forgotten []string
		x := tree.New(capacity, limit, func(id string) { forgotten = append(forgotten, id) })
		m := newModel(capacity, limit)
		id := func(t *rapid.T) string { return fmt.Sprint("r", rapid.IntRange(0, requests-1).Draw(t, "id")) }
		same := func(t *rapid.T, what string, got, want any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-model +tree):\n%s", what, diff)
			}
		}
		type pair [2]any
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				id, path := id(t), drawPath(t)
				if wide {
					path[0] = tree.Elem{Key: rapid.Uint64Range(1, 40).Draw(t, "one of many"), Tokens: 1}
				}
				s1, r1 := x.Insert(id, path)
				s2, r2 := m.insert(id, path)
				same(t, "steps, resident", pair{s1, r1}, pair{s2, r2})
			},
			"remove": func(t *rapid.T) { id := id(t); same(t, "removed", x.Remove(id), m.remove(id)) },
			"shrink": func(t *rapid.T) {
				id, n := id(t), rapid.IntRange(-1, 40).Draw(t, "tokens")
				same(t, "shrunk", x.Shrink(id, n), m.shrink(id, n))
			},
			"extend": func(t *rapid.T) {
				id, n := id(t), rapid.IntRange(0, 9).Draw(t, "tokens")
				x.Extend(id, n)
				m.extend(id, n)
			},
			"serve": func(t *rapid.T) {
				id := id(t)
				fresh, ok := x.Serve(id)
				fresh2, ok2 := m.serve(id)
				same(t, "fresh, ok", pair{fresh, ok}, pair{fresh2, ok2})
			},
			"resend": func(t *rapid.T) {
				id := id(t)
				n, ok := x.Resend(id)
				n2, ok2 := m.resend(id)
				same(t, "resident, live", pair{n, ok}, pair{n2, ok2})
			},
			"contradict": func(t *rapid.T) {
				id, n := id(t), rapid.IntRange(-1, 30).Draw(t, "tokens")
				c1, n1 := x.Contradict(id, n)
				c2, n2 := m.contradict(id, n)
				same(t, "contradicted, cut", pair{c1, n1}, pair{c2, n2})
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					x.Clear()
					slices.Sort(forgotten[len(m.forgotten):])
					var all []string
					for _, r := range m.reqs {
						all = append(all, r.id)
					}
					m.forgotten = append(m.forgotten, slices.Sorted(slices.Values(all))...)
					m.reqs = nil
					m.sweep()
				}
			},
			"": func(t *rapid.T) {
				if err := x.Check(); err != nil {
					t.Fatal(err)
				}
				same(t, "prefixes", image(x), m.tokens)
				same(t, "requests, nodes, tokens", []int{x.Len(), x.Nodes(), x.Tokens()}, []int{len(m.reqs), len(m.tokens), m.total()})
				for i := range requests {
					id := fmt.Sprint("r", i)
					n, ok := x.Resident(id)
					n2, ok2 := m.resident(id)
					same(t, "resident "+id, pair{n, ok}, pair{n2, ok2})
					served, ok := x.Served(id)
					if r := m.find(id); r != nil {
						same(t, "served "+id, []any{served, ok}, []any{r.served, true})
					}
				}
				// Requests that leave in one step may do so in any order.
				slices.Sort(forgotten)
				slices.Sort(m.forgotten)
				same(t, "forgotten", forgotten, m.forgotten)
			},
		})
	})
}
