package kvstore

import (
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// floats is a pool of pages of so many floats, in the program's memory.
type floats int

func (n floats) Floats() int                              { return int(n) }
func (n floats) New() (gpu.Page, error)                   { return gpu.HostPage(make([]float32, n)), nil }
func (floats) Free(gpu.Page)                              {}
func (floats) Copy(to, from gpu.Page) error               { copy(to.Host, from.Host); return nil }
func (floats) Write(to gpu.Page, floats []float32) error  { copy(to.Host, floats); return nil }
func (floats) Read(floats []float32, from gpu.Page) error { copy(floats, from.Host); return nil }
func (n floats) Take(p *gpu.Page) (taken []float32, _ error) {
	taken, p.Host = p.Host, make([]float32, n)
	return taken, nil
}

// upTo returns tokens from first on.
func upTo(first, count int) []int32 {
	tokens := make([]int32, count)
	for i := range tokens {
		tokens[i] = int32(first + i)
	}
	return tokens
}

func begin(t testing.TB, s *Store, tokens []int32, salt string) *Sequence {
	t.Helper()
	q := s.Begin(nil, tokens, len(tokens), salt)
	if q == nil {
		t.Fatalf("no room for %d tokens: %+v", len(tokens), s.Stats())
	}
	return q
}

// finish computes all that a sequence lacks, and returns how many tokens that were.
func finish(t testing.TB, q *Sequence) int {
	t.Helper()
	total := 0
	for q.Computed() < len(q.Tokens()) {
		n := q.Ready(len(q.Tokens()))
		if n == 0 {
			t.Fatalf("the sequence waits at token %d", q.Computed())
		}
		q.Advance(n)
		total += n
	}
	return total
}

// A prompt in flight is computed once; who waits for it takes over in the middle if the first gives up.
func TestInFlight(t *testing.T) {
	s := New(20, floats(1), nil)
	prompt := upTo(0, 5*PageTokens)
	first := begin(t, s, prompt, "")
	second, third := begin(t, s, prompt, ""), begin(t, s, prompt, "")
	if used := s.Stats().Used; used != 5+1+1 { // each has the last page for itself
		t.Errorf("%d pages for three requests of the same 5 pages", used)
	}
	if n := second.Ready(100); n != 0 {
		t.Errorf("the second may compute %d tokens that the first computes", n)
	}
	first.Advance(first.Ready(2*PageTokens + 5))
	if n := second.Ready(100); n != 0 || second.Computed() != 2*PageTokens {
		t.Errorf("the second may compute %d tokens, and has %d", n, second.Computed())
	}
	first.Close()
	if n := second.Ready(PageTokens + 1); n != PageTokens+1 {
		t.Errorf("the second may compute %d tokens after the first gave up", n)
	}
	if n := third.Ready(100); n != 0 || third.Computed() != 2*PageTokens {
		t.Errorf("the third may compute %d tokens, and has %d", n, third.Computed())
	}
	if n := finish(t, second); n != 3*PageTokens {
		t.Errorf("the second computed %d tokens", n)
	}
	if n := finish(t, third); n != PageTokens || third.Cached() != 4*PageTokens {
		t.Errorf("the third computed %d tokens, %d were cached", n, third.Cached())
	}
}

// A prompt of whole pages is computed twice at its end, since its last token's logits are needed. What comes behind stays findable
// as long as the page itself.
func TestOnePageOfTwoSequences(t *testing.T) {
	s := New(4, floats(1), nil)
	for range 2 {
		q := begin(t, s, upTo(0, PageTokens), "")
		finish(t, q)
		for _, token := range upTo(PageTokens, PageTokens) {
			if !q.Append(token) {
				t.Fatal("no room")
			}
			finish(t, q)
		}
		q.Close()
	}
	if stats := s.Stats(); stats.Cached != 2 || stats.Used != 0 || len(s.free) != s.made-2 {
		t.Errorf("%+v, %d of %d pages free: want two in the cache", stats, len(s.free), s.made)
	}
	other := begin(t, s, upTo(1000, 3*PageTokens), "")
	if n := s.Prefix(upTo(0, 3*PageTokens), ""); n != PageTokens {
		t.Errorf("%d tokens are left after one of two pages was given up", n)
	}
	other.Close()
}

// A sequence that comes to the tokens that another one is about to compute gives it what it has computed.
func TestOvertaken(t *testing.T) {
	s := New(20, floats(PageTokens), nil)
	fast := begin(t, s, upTo(0, PageTokens-1), "")
	finish(t, fast)
	slow, waiting := begin(t, s, upTo(0, 3*PageTokens), ""), begin(t, s, upTo(0, 3*PageTokens), "")
	slow.Advance(slow.Ready(10))
	fast.Append(PageTokens - 1)
	fast.Pages()[0].Host[3] = 42
	finish(t, fast)
	for name, q := range map[string]*Sequence{"overtaken": slow, "waiting": waiting} {
		if q.Ready(1); q.Computed() != PageTokens || q.Pages()[0].Host[3] != 42 {
			t.Errorf("the %s sequence has %d tokens, page %v", name, q.Computed(), q.Pages()[0].Host)
		}
	}
	if &fast.Pages()[0].Host[0] != &slow.Pages()[0].Host[0] {
		t.Error("two pages have the same tokens")
	}
	if events := s.Events(); len(events) != 1 {
		t.Errorf("%d events of one page", len(events))
	}
}

// What is in use when the cache is cleared is not found any more, nor is what comes behind it; its sequence goes on.
func TestClearInUse(t *testing.T) {
	s := New(20, floats(1), nil)
	prompt := upTo(0, 4*PageTokens)
	q, waiting := begin(t, s, prompt, ""), begin(t, s, prompt, "")
	q.Advance(q.Ready(2*PageTokens + 3))
	s.Clear()
	later := begin(t, s, prompt, "")
	if later.Cached() != 0 || s.Prefix(prompt, "") != 0 {
		t.Errorf("%d tokens were found after Clear", later.Cached())
	}
	finish(t, q)
	finish(t, waiting)
	if n := s.Prefix(prompt, ""); n != 0 {
		t.Errorf("%d tokens are found that were computed behind cleared ones", n)
	}
	q.Close()
	waiting.Close()
	if n := finish(t, later); n != len(prompt) {
		t.Errorf("%d tokens computed after Clear", n)
	}
	later.Close()
	if stats := s.Stats(); s.Prefix(append(prompt, 0), "") != len(prompt) || stats.Cached != 4 {
		t.Errorf("%+v after all", stats)
	}
}

// Clear while a prompt's beginning is being computed: what was taken before it never comes behind a page that came after it. Else
// that page could be in a sequence without the page before it, and outlive that one.
func TestClearBetweenPages(t *testing.T) {
	s := New(6, floats(1), nil)
	const tokens = 2*PageTokens + 8
	first, waiting := begin(t, s, upTo(0, tokens), ""), begin(t, s, upTo(0, tokens), "")
	s.Clear()
	short := begin(t, s, upTo(0, PageTokens+4), "") // has its first page in the index
	finish(t, first)
	finish(t, waiting)
	finish(t, short)
	if n := s.Prefix(upTo(0, tokens), ""); n != PageTokens {
		t.Errorf("%d tokens are found, want the page that was taken after Clear", n)
	}
	first.Close()
	short.Close()
	other := begin(t, s, upTo(1000, 3*PageTokens), "") // takes what is not in use
	finish(t, other)
	other.Close()
	again := begin(t, s, upTo(0, tokens), "")
	finish(t, again)
	waiting.Close()
	last := begin(t, s, upTo(2000, 3*PageTokens), "")
	finish(t, last)
	resident := map[kvevents.Hash]bool{}
	for _, e := range s.Events() {
		switch {
		case e.Kind == kvevents.Cleared:
			clear(resident)
		case resident[e.Hashes[0]] == (e.Kind == kvevents.Stored):
			t.Errorf("twice: %+v", e)
		case e.Kind == kvevents.Stored && !e.Parent.IsZero() && !resident[e.Parent]:
			t.Errorf("stored behind what is not there: %+v", e)
		default:
			resident[e.Hashes[0]] = e.Kind == kvevents.Stored
		}
	}
	if n := s.Prefix(upTo(0, tokens), ""); n != 2*PageTokens {
		t.Errorf("%d tokens are found of a prompt in use", n)
	}
}

func TestSalts(t *testing.T) {
	s := New(20, floats(1), nil)
	prompt := upTo(0, 3*PageTokens)
	finish(t, begin(t, s, prompt, ""))
	finish(t, begin(t, s, prompt, "a"))
	if n := begin(t, s, prompt, "b").Cached(); n != 0 {
		t.Errorf("%d tokens found under another salt", n)
	}
	if n := begin(t, s, prompt, "a").Cached(); n != 2*PageTokens {
		t.Errorf("%d tokens found under the same salt", n)
	}
	// A salt with the bytes that a page's hash is made of still gives another root than that page.
	h := root("x")
	data := slices.Concat([]byte{ofPage}, h[:], make([]byte, 4*PageTokens))
	if root(string(data[1:])) == chain(h, make([]int32, PageTokens)) || root(string(data)) == chain(h, make([]int32, PageTokens)) {
		t.Error("a salt can name a page")
	}
}

// Beginning a prompt of 2,000 tokens: hashes, look-ups, pages.
func BenchmarkBegin(b *testing.B) {
	prompt := upTo(0, 2000)
	b.Run("warm", func(b *testing.B) {
		s := New(200, floats(1), nil)
		q := begin(b, s, prompt, "")
		finish(b, q)
		q.Close()
		b.ReportAllocs()
		for b.Loop() {
			begin(b, s, prompt, "").Close()
		}
	})
	b.Run("cold", func(b *testing.B) {
		s := New(200, floats(1), nil)
		b.ReportAllocs()
		for b.Loop() {
			begin(b, s, prompt, "").Close()
		}
	})
	b.Run("evicting", func(b *testing.B) { // all pages of another prompt
		s := New(130, floats(1), nil)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			prompt[0] = int32(i)
			q := begin(b, s, prompt, "")
			finish(b, q)
			q.Close()
			s.Events()
		}
	})
}
