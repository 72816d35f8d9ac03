package kvstore

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// machine runs a store beside a plain picture of it, which knows blocks by all tokens up to their last, as text.
type machine struct {
	store *Store
	open  []*Sequence
	// pinned are prefixes that sequences may have; pins is how many there were.
	pinned []*Prefix
	pins   byte
	// prefixes are those that sequences were begun behind.
	prefixes map[*Sequence][32]byte
	// resident is what events say is there; order are those of them that no sequence uses, the one unused longest first.
	resident map[string]bool
	blocks   map[kvevents.Hash]block
	order    []string
	// below is what the tier has; pages are what must be in each page.
	below   map[ID][]float32
	pages   map[ID][]float32
	loads   []ID                   // that were begun
	inTier  map[kvevents.Hash]bool // events say that the tier has it
	refuses bool                   // the tier would rather not
	shared  map[*Sequence]int      // of private sequences: the first tokens, whose pages were found
	closed  map[*Sequence]bool     // sequences that take no more tokens
}

func (m *machine) Has(id ID) bool { return m.asked(id) && m.below[id] != nil && !m.refuses }

func (*machine) Medium() string { return Disk }

func (m *machine) Wants(id ID) bool { return m.asked(id) && m.below[id] == nil && !m.refuses }

// asked: the tier is never asked for what stands behind a prefix.
func (m *machine) asked(id ID) bool {
	if id.Salt != root("") && id.Salt != root("salt") {
		panic("the tier is asked for a page behind a prefix")
	}
	return true
}

// Pin makes a prefix, whose pages have numbers of their own.
func (m *machine) Pin(t *rapid.T) {
	if len(m.pinned) == 2 {
		t.Skip("enough prefixes")
	}
	m.pins++
	id := [32]byte{m.pins}
	pages := make([]gpu.Page, rapid.IntRange(1, 2).Draw(t, "pages"))
	for i := range pages {
		pages[i] = gpu.HostPage(make([]float32, PageTokens))
		for j := range pages[i].Host {
			pages[i].Host[j] = pinnedValue(id, i*PageTokens+j)
		}
	}
	before := m.store.Stats()
	x := m.store.Pin(id, pages)
	if room := len(pages) <= before.Capacity-before.Used; room != (x != nil) {
		t.Fatalf("pin %d pages of %d, %d are in use: %v", len(pages), before.Capacity, before.Used, x != nil)
	}
	if x != nil {
		m.pinned = append(m.pinned, x)
	}
}

// pinnedValue is what a slot of a prefix has.
func pinnedValue(id [32]byte, slot int) float32 { return -float32(1000*int(id[0]) + slot) }

// own are a sequence's tokens behind its prefix.
func own(q *Sequence) []int32 { return q.tokens[q.prefix*PageTokens:] }

// block is a block that an event reported.
type block struct {
	salt   string
	tokens []int32 // all up to its last
}

// streams are the texts that all sequences are pieces of, so that they meet in many ways.
func streams() [][]int32 {
	all := make([][]int32, 3)
	for i := range all {
		for j := range int32(6 * PageTokens) {
			token := j
			if int(j) >= 2*PageTokens*i { // they part after 0, 2 and 4 pages
				token += 1000 * int32(i)
			}
			all[i] = append(all[i], token)
		}
	}
	return all
}

func (m *machine) init(t *rapid.T) {
	m.store = New(rapid.IntRange(4, 14).Draw(t, "capacity"), floats(PageTokens), m)
	m.below, m.pages = map[ID][]float32{}, map[ID][]float32{}
	m.inTier, m.prefixes = map[kvevents.Hash]bool{}, map[*Sequence][32]byte{}
	m.shared, m.closed = map[*Sequence]int{}, map[*Sequence]bool{}
	m.resident, m.blocks = map[string]bool{}, map[kvevents.Hash]block{}
}

func key(salt string, tokens []int32) string { return fmt.Sprint(salt, tokens) }

// value is what the "model" computes for the last of tokens: it depends on all of them.
func value(salt string, tokens []int32) float32 {
	h := fnv.New32()
	fmt.Fprint(h, salt, tokens)
	return float32(h.Sum32() >> 10) // with room for a fraction
}

func (m *machine) Begin(t *rapid.T) {
	stream := rapid.SampledFrom(streams()).Draw(t, "stream")
	tokens := stream[:rapid.IntRange(1, len(stream)).Draw(t, "length")]
	looked := rapid.OneOf(rapid.Just(len(tokens)), rapid.IntRange(1, len(tokens))).Draw(t, "looked")
	salt := rapid.SampledFrom([]string{"", "", "salt"}).Draw(t, "salt")
	x := rapid.SampledFrom(append([]*Prefix{nil, nil}, m.pinned...)).Draw(t, "prefix")
	before, want := m.store.Stats(), m.prefix(x, tokens[:looked], salt)
	if got := m.store.Prefix(tokens[:looked], salt); x == nil && got != want {
		t.Fatalf("Prefix of %d tokens is %d, want %d", looked, got, want)
	}
	need := m.needs(x, tokens, looked, salt)
	first := x.Tokens()
	want += first
	tokens, looked = append(slices.Repeat([]int32{Placeholder}, first), tokens...), first+looked
	q := m.store.Begin(x, tokens, looked, salt)
	if room := need <= before.Capacity-before.Used; room != (q != nil) {
		t.Fatalf("%d pages are needed of %d, %d are in use: began %v", need, before.Capacity, before.Used, q != nil)
	}
	if q == nil {
		if after := m.store.Stats(); after != before {
			t.Fatalf("a refused sequence changed %+v to %+v", before, after)
		}
		return
	}
	if q.Computed() != want || q.Cached() != want {
		t.Fatalf("of a prefix of %d tokens, %d are computed and %d cached", want, q.Computed(), q.Cached())
	}
	m.open = append(m.open, q)
	if x != nil {
		m.prefixes[q] = x.id
	}
	m.loads = append(m.loads, m.store.Loads()...)
}

// BeginPrivate makes a sequence whose own pages hold something else than exact sequences compute, or one that only holds pages.
func (m *machine) BeginPrivate(t *rapid.T) {
	stream := rapid.SampledFrom(streams()).Draw(t, "stream")
	tokens := stream[:rapid.IntRange(1, len(stream)).Draw(t, "length")]
	shared := rapid.IntRange(0, len(tokens)).Draw(t, "shared")
	salt := rapid.SampledFrom([]string{"", "", "salt"}).Draw(t, "salt")
	holds := rapid.Bool().Draw(t, "holds")
	before, want, need := m.store.Stats(), 0, pagesFor(len(tokens))
	if holds {
		shared = len(tokens)
	}
	used := 0
	for n := PageTokens; n <= shared && m.resident[key(salt, tokens[:n])]; n += PageTokens {
		want = n
		if m.store.index[m.hash(tokens[:n], salt)].refs > 0 {
			used++
		}
	}
	var q *Sequence
	if holds {
		need = want / PageTokens
		q = m.store.Attach(tokens, salt)
	} else {
		q = m.store.BeginPrivate(tokens, shared, salt)
	}
	if room := need-used <= before.Capacity-before.Used; room != (q != nil) {
		t.Fatalf("%d pages are needed of %d, %d are in use: began %v", need-used, before.Capacity, before.Used, q != nil)
	}
	if q == nil {
		if after := m.store.Stats(); after != before {
			t.Fatalf("a refused sequence changed %+v to %+v", before, after)
		}
		return
	}
	if q.Computed() != want || len(q.Pages()) != need {
		t.Fatalf("%d tokens are found, %d pages, want %d and %d", q.Computed(), len(q.Pages()), want, need)
	}
	m.open = append(m.open, q)
	m.shared[q], m.closed[q] = want, holds
}

// hash is the hash of the last of whole pages.
func (m *machine) hash(tokens []int32, salt string) Hash {
	hash := root(salt)
	for n := 0; n < len(tokens); n += PageTokens {
		hash = chain(hash, tokens[n:n+PageTokens])
	}
	return hash
}

// Assemble puts part of a private sequence in place, as if it had been copied.
func (m *machine) Assemble(t *rapid.T) {
	i := slices.IndexFunc(m.open, func(q *Sequence) bool { return q.private && q.Computed() < len(q.Tokens()) })
	if i < 0 {
		t.Skip("none is private")
	}
	q := m.open[i]
	n := rapid.IntRange(1, len(q.Tokens())-q.Computed()).Draw(t, "tokens")
	m.compute(t, q, n, map[*float32]bool{})
	cached, computed := q.Cached(), rapid.IntRange(0, n).Draw(t, "computed")
	q.Assembled(q.Computed()+n, computed)
	if q.Cached() != cached+n-computed {
		t.Fatalf("%d tokens are cached, want %d", q.Cached(), cached+n-computed)
	}
}

// content is what must be at token i of a sequence: in private pages, what no other has.
func (m *machine) content(q *Sequence, i int) float32 {
	v := value(q.salt, own(q)[:i+1-q.prefix*PageTokens])
	if shared, private := m.shared[q]; private && i >= shared {
		v += 0.5
	}
	return v
}

// Load ends a load, in any order: with the page, or without.
func (m *machine) Load(t *rapid.T) {
	if len(m.loads) == 0 {
		t.Skip("no load")
	}
	i := rapid.IntRange(0, len(m.loads)-1).Draw(t, "which")
	id := m.loads[i]
	m.loads = slices.Delete(m.loads, i, i+1)
	if rapid.IntRange(0, 3).Draw(t, "damaged") == 0 {
		delete(m.below, id)
		m.store.Vanished(id.Page)
	}
	if memory := m.below[id]; memory != nil {
		m.store.Loaded(id.Page, memory)
	} else {
		m.store.NotLoaded(id.Page)
	}
}

// Save saves a page, or fails.
func (m *machine) Save(t *rapid.T) {
	u, ok := m.store.NextUnsaved(make([]float32, PageTokens))
	if !ok {
		t.Skip("nothing to save")
	}
	if want := m.pages[u.ID]; !slices.Equal(u.Memory, want) {
		t.Fatalf("the page to save has %v, want %v", u.Memory, want)
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") > 0 {
		m.below[u.ID] = u.Memory
		m.store.Saved(u)
	}
}

// Vanish takes a page out of the tier.
func (m *machine) Vanish(t *rapid.T) {
	if len(m.below) == 0 {
		t.Skip("nothing is in the tier")
	}
	ids := slices.SortedFunc(maps.Keys(m.below), func(a, b ID) int { return bytes.Compare(a.Page[:], b.Page[:]) })
	id := rapid.SampledFrom(ids).Draw(t, "page")
	delete(m.below, id)
	m.store.Vanished(id.Page)
}

func (m *machine) Refuse(t *rapid.T) { m.refuses = rapid.Bool().Draw(t, "refuses") }

// prefix is vLLM's rule: whole blocks from the first on, and never the last token. Of blocks that were loaded events may not report yet.
func (m *machine) prefix(x *Prefix, tokens []int32, salt string) int {
	n, hash := 0, x.root(salt)
	for n+PageTokens <= len(tokens)-1 {
		hash = chain(hash, tokens[n:n+PageTokens])
		p := m.store.index[hash]
		if loaded := p != nil && p.computed && p.unreported != nil; !loaded && !m.resident[key(x.Salt(salt), tokens[:n+PageTokens])] {
			break
		}
		n += PageTokens
	}
	return n
}

// needs is how many pages a sequence takes that no other uses now.
func (m *machine) needs(x *Prefix, tokens []int32, looked int, salt string) int {
	need, hash := pagesFor(len(tokens)), x.root(salt)
	for n := PageTokens; n < looked; n += PageTokens {
		hash = chain(hash, tokens[n-PageTokens:n])
		p := m.store.index[hash]
		if p == nil {
			break
		}
		if p.refs > 0 {
			need--
		}
	}
	return need
}

// Step computes parts of some sequences at a time, as the runner does.
func (m *machine) Step(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip("no sequence")
	}
	order := rapid.Permutation(m.open).Draw(t, "order")
	order = order[:rapid.IntRange(1, len(order)).Draw(t, "count")]
	parts := make([]int, len(order))
	written := map[*float32]bool{}
	for i, q := range order {
		parts[i] = q.Ready(rapid.IntRange(0, 40).Draw(t, "limit"))
		m.compute(t, q, parts[i], written)
	}
	for i, q := range order {
		if parts[i] > 0 {
			q.Advance(parts[i])
		}
	}
}

// compute looks at everything that stands in front, and writes what the sequence may compute now.
func (m *machine) compute(t *rapid.T, q *Sequence, n int, written map[*float32]bool) {
	for i := range q.Computed() + n {
		slot := &q.Pages()[i/PageTokens].Host[i%PageTokens]
		if first := q.prefix * PageTokens; i < first {
			if want := pinnedValue(m.prefixes[q], i); *slot != want || i >= q.Computed() {
				t.Fatalf("slot %d of a prefix has %g, want %g; %d tokens are computed", i, *slot, want, q.Computed())
			}
			continue
		}
		want := m.content(q, i)
		switch {
		case i >= q.Computed() && written[slot]:
			t.Fatalf("token %d is computed by two sequences at a time", i)
		case i >= q.Computed():
			*slot, written[slot] = want, true
			m.note(q, i)
		case written[slot]:
			t.Fatalf("token %d is written while others read it", i)
		case *slot != want:
			t.Fatalf("token %d of %d computed ones has %g in its page, want %g", i, q.Computed(), *slot, want)
		}
	}
}

// note keeps what must be in the page that token i fills.
func (m *machine) note(q *Sequence, i int) {
	if (i+1)%PageTokens > 0 || q.private || q.prefix > 0 {
		return
	}
	page := make([]float32, PageTokens)
	for j := range page {
		page[j] = value(q.salt, q.Tokens()[:i+2-PageTokens+j])
	}
	q.hash(i/PageTokens, q.Tokens())
	m.pages[q.id(i/PageTokens)] = page
}

func (m *machine) Append(t *rapid.T) {
	i := slices.IndexFunc(m.open, func(q *Sequence) bool { return q.Computed() == len(q.Tokens()) && !m.closed[q] })
	if i < 0 {
		t.Skip("none is computed")
	}
	q, used := m.open[i], m.store.Stats().Used
	length := len(q.Tokens())
	token := rapid.SampledFrom(streams()).Draw(t, "stream")[(length-q.prefix*PageTokens)%(6*PageTokens)]
	full := length%PageTokens == 0 && used == m.store.capacity
	if ok := q.Append(token); ok == full || len(q.Tokens()) != length+1 && ok {
		t.Fatalf("Append is %v, %d of %d pages are in use", ok, used, m.store.capacity)
	}
}

func (m *machine) Close(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip("no sequence")
	}
	i := rapid.IntRange(0, len(m.open)-1).Draw(t, "which")
	q := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	pages := slices.Clone(q.pages)
	q.Close()
	for i, p := range slices.Backward(pages) { // the last page first
		if p.indexed && p.refs == 0 && p.unreported == nil {
			m.order = append(m.order, key(q.salt, own(q)[:(i+1-q.prefix)*PageTokens]))
		}
	}
}

func (m *machine) Clear(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "really") > 0 {
		t.Skip("seldom")
	}
	m.store.Clear()
}

func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{}
		m.init(t)
		t.Repeat(map[string]func(*rapid.T){
			"Begin": m.Begin, "BeginPrivate": m.BeginPrivate, "Assemble": m.Assemble, "Step": m.Step, "Append": m.Append, "Close": m.Close,
			"Clear": m.Clear,
			"Load":  m.Load, "Save": m.Save, "Vanish": m.Vanish, "Refuse": m.Refuse, "Pin": m.Pin, "": m.Check,
		})
		for _, q := range m.open {
			q.Close()
		}
		pinned := 0
		for _, x := range m.pinned {
			pinned += len(x.pages)
		}
		if s := m.store.Stats(); s.Used != pinned {
			t.Fatalf("%d pages are in use, though all sequences are closed", s.Used)
		}
	})
}
