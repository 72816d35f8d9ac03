package recorded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ragpilot/ragpilot/internal/paper"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

// shared is an index with the numbers of its docs, as its users keep them.
type shared struct {
	docs   recorded.Numbers[int]
	index  *recorded.Index
	serial int
}

func newShared() *shared {
	s := &shared{}
	s.index = recorded.NewIndex(paper.Options{Alpha: paper.DefaultAlpha, Hold: s.docs.Hold})
	return s
}

// reorder enters contexts of any docs and returns the orders in these; others run whenever the lock is free.
func (s *shared) reorder(t *testing.T, contexts [][]int, do func()) ([][]int, recorded.Step) {
	t.Helper()
	var keys []int
	var live []paper.Doc
	at := map[int]paper.Doc{}
	job := recorded.Job{Options: paper.Options{Alpha: paper.DefaultAlpha}, Tokens: 10}
	for _, c := range contexts {
		docs := make([]paper.Doc, len(c))
		for j, key := range c {
			if _, ok := at[key]; !ok {
				at[key] = paper.Doc(len(keys))
				n, _ := s.docs.Take(key)
				keys, live = append(keys, key), append(live, n)
			}
			docs[j] = at[key]
		}
		s.serial++
		job.Contexts, job.IDs = append(job.Contexts, docs), append(job.IDs, fmt.Sprint(s.serial))
	}
	job.Name = func(d paper.Doc) paper.Doc { return live[d] }
	st, err := s.index.Reorder(context.Background(), others{do}, job)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]int, len(contexts))
	for i, order := range st.Orders {
		for _, d := range order {
			out[i] = append(out[i], keys[d])
		}
	}
	for _, n := range live {
		s.docs.Drop(n)
	}
	return out, st
}

// An index that is shrunk whenever the lock is free answers as one that never is, and takes no more than what it holds.
func TestShrinkChangesNoAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	small, large := newShared(), newShared()
	shrink := func() { recorded.Shrink(small.index, &small.docs) }
	batch := func(n int) [][]int {
		out := make([][]int, n)
		for i := range out {
			for j := range 8 {
				out[i] = append(out[i], 1000*j+r.IntN(60*(j+1)))
				if i%2 == 1 { // matches no earlier batch, but others of this one
					out[i][j] = 1_000_000*(small.serial+1) + 100*(i%4) + j
					if j > 3 {
						out[i][j] += 1000 * i
					}
				}
			}
		}
		return out
	}
	shrunk := 0
	for round := range 60 {
		contexts := batch(1 + r.IntN(40))
		// An eviction in the middle of a batch: what was found before may be gone, and there is something to give back.
		known := small.index.Requests()
		var gone []string
		if round%3 == 2 {
			gone = known[:len(known)*9/10]
		}
		at := 1 + r.IntN(2*len(contexts)) // while places are looked for, or contexts are entered
		evict := func(s *shared, after func()) func() {
			paused := 0
			return func() {
				if paused++; paused == at {
					s.index.Evict(gone...)
				}
				after()
			}
		}
		got, a := small.reorder(t, contexts, evict(small, shrink))
		want, b := large.reorder(t, contexts, evict(large, func() {}))
		a.Stats.SearchTime, b.Stats.SearchTime = 0, 0
		a.Orders, b.Orders = nil, nil // in numbers of the batch: the same, but compared by docs
		check(t, fmt.Sprint("orders of round ", round), want, got)
		check(t, fmt.Sprint("round ", round), b, a)
		before := small.docs.Max()
		shrink()
		if small.docs.Max() < before {
			shrunk++
		}
		check(t, "requests", large.index.Requests(), small.index.Requests())
		if t.Failed() {
			t.FailNow()
		}
		if now, peak := small.docs.Len(), small.docs.Max(); peak > 64 && now < peak*3/4 {
			t.Fatalf("round %d: room for %d numbers, %d are used", round, peak, now)
		}
	}
	if shrunk == 0 {
		t.Error("nothing was ever shrunk")
	}
	for _, s := range []*shared{small, large} {
		s.index.Evict(s.index.Requests()...)
	}
	shrink()
	check(t, "docs in the end", len(large.index.Tree().Docs(0)), small.docs.Len())
	check(t, "room for nodes in the end", 1, small.index.Tree().Slots())
	if n := large.index.Tree().Slots(); n < 64 {
		t.Errorf("room for %d nodes in the index that was not shrunk: the test is too small", n)
	}
}

// A number that a request holds stays while the others move, and its place is given back afterwards.
func TestShrinkKeepsTakenNumbers(t *testing.T) {
	s := newShared()
	var held []paper.Doc
	for key := range 1000 {
		n, _ := s.docs.Take(key)
		held = append(held, n)
	}
	for _, n := range held[:999] {
		s.docs.Drop(n)
	}
	s.reorder(t, [][]int{{2000, 2001}}, func() {})
	recorded.Shrink(s.index, &s.docs)
	again, _ := s.docs.Take(999)
	check(t, "number of a doc that is held", held[999], again)
	low, _ := s.docs.Take(3000)
	if low > 2 {
		t.Errorf("a new doc has number %d, where 0 to 2 are enough", low)
	}
	got, _ := s.reorder(t, [][]int{{2001, 2000}}, func() {})
	check(t, "order", []int{2000, 2001}, got[0])
	for _, n := range []paper.Doc{held[999], again, low} {
		s.docs.Drop(n)
	}
	recorded.Shrink(s.index, &s.docs)
	check(t, "room for numbers", true, s.docs.Max() <= 64)
	check(t, "docs", 2, s.docs.Len())
}
