package bounds_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/bounds"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// requests makes a request of one turn of each list; a letter is a block.
func requests(lists ...string) []trace.Request {
	var out []trace.Request
	for i, l := range lists {
		id := fmt.Sprint("r", i)
		out = append(out, trace.Request{ID: id, Session: id, Turn: 1, Docs: strings.Split(l, "")})
	}
	return out
}

func problem(t rapid.TB, requests []trace.Request, blocks *trace.Blocks, history bool) *bounds.Problem {
	t.Helper()
	p := bounds.New(blocks, history)
	for _, q := range requests {
		if err := p.Add(q); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

type figures struct{ nearest, spread, tree, groups int }

func all(t rapid.TB, p *bounds.Problem) figures {
	t.Helper()
	ctx := context.Background()
	nearest, err1 := p.Nearest(ctx)
	tree, err2 := p.SpanningTree(ctx)
	groups, err3 := p.Groups(ctx)
	spread, err4 := p.Spread(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return figures{nearest, spread, tree, groups}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name     string
		requests []trace.Request
		want     figures
	}{
		{"no request", nil, figures{}},
		{"no documents", []trace.Request{{ID: "a", Session: "a"}}, figures{}},
		{"one request", requests("abc"), figures{}},
		{"nothing in common", requests("ab", "cd", "ef"), figures{}},
		{"the same", requests("abc", "abc", "cba"), figures{6, 6, 6, 6}},
		{"two neighbours", requests("abc", "cde", "abd", "f"), figures{3, 3, 3, 2}},
		{"one of two only", requests("ab", "cd", "abcd"), figures{2, 2, 4, 3}},
		{"a circle", requests("ab", "bc", "ca"), figures{2, 2, 2, 1}},
		{"the middle of a star first", requests("abc", "ax", "by", "cz"), figures{3, 1, 3, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := all(t, problem(t, tt.requests, nil, true)); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestSessions: only first turns share a prefix with others, and later ones save what their session retrieved before.
func TestSessions(t *testing.T) {
	trc := requests("ab", "bc", "ab", "ca")
	for i, session := range []string{"s", "s", "t", "s"} {
		trc[i].Session, trc[i].Turn = session, i+1
	}
	p := problem(t, trc, nil, true)
	if p.Tokens != 8 || p.Repeated != 1+2 || p.Requests() != 2 || p.Blocks() != 3 {
		t.Errorf("tokens %d, repeated %d, %d requests, %d blocks", p.Tokens, p.Repeated, p.Requests(), p.Blocks())
	}
	if got := all(t, p); got != (figures{2, 2, 2, 2}) || p.Share(got.nearest) != 5.0/8 {
		t.Errorf("%+v, share %v", got, p.Share(got.nearest))
	}
	p = problem(t, trc, nil, false)
	if got := all(t, p).nearest; p.Repeated != 0 || p.Requests() != 4 || got != 0+1+2+1 {
		t.Errorf("without history: repeated %d, %d requests, bound %d", p.Repeated, p.Requests(), got)
	}
	if got := bounds.New(nil, true).Share(0); got != 0 {
		t.Errorf("share of nothing: %v", got)
	}
}

func TestTokens(t *testing.T) {
	blocks, err := trace.NewBlocks(trace.Block{ID: "a", Text: "one two three"}, trace.Block{ID: "b", Text: ""})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, requests("ab", "ba"), blocks, true)
	want := tokens.Count("<doc a>\none two three\n</doc>\n") + tokens.Count("<doc b>\n\n</doc>\n")
	if p.Tokens != 2*want || all(t, p).nearest != want {
		t.Errorf("tokens %d, bound %d, want %d and %d", p.Tokens, all(t, p).nearest, 2*want, want)
	}
	err = p.Add(trace.Request{ID: "q", Docs: []string{"c"}})
	if err == nil || err.Error() != `request "q": unknown block "c"` {
		t.Error(err)
	}
}

// TestGenerated compares with the definition where lists are long enough to be left out.
func TestGenerated(t *testing.T) {
	trc, blocks, err := workload.Generate(workload.Options{Contexts: 600, K: 12, Pool: 200, Topics: 12, Zipf: 1, KSpread: 4, BlockTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, trc, blocks, true)
	got, err := p.Nearest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	weight := map[string]int{}
	for b := range blocks.All() {
		weight[b.ID] = tokens.Count(trace.Doc(b.ID, b.Text))
	}
	want := 0
	uses := make([]map[string]bool, len(trc))
	for i, q := range trc {
		uses[i] = map[string]bool{}
		best := 0
		for j := range i {
			sum := 0
			for _, id := range q.Docs {
				if uses[j][id] {
					sum += weight[id]
				}
			}
			best = max(best, sum)
		}
		want += best
		for _, id := range q.Docs {
			uses[i][id] = true
		}
	}
	if got != want {
		t.Errorf("nearest %d, want %d", got, want)
	}
	every, err1 := p.MeanOverlap(t.Context(), len(trc))
	some, err2 := p.MeanOverlap(t.Context(), 150)
	if err := errors.Join(err1, err2); err != nil || some < every-0.03 || some > every+0.03 {
		t.Errorf("mean overlap of a sample %.3f, of all %.3f (%v)", some, every, err)
	}
}

// TestParallel: several bounds may be computed at a time.
func TestParallel(t *testing.T) {
	trc, blocks, err := workload.Generate(workload.Options{Contexts: 200, K: 5, Pool: 60, BlockTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, trc, blocks, true)
	want := all(t, p)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := all(t, p); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	p := problem(t, requests("abc", "abd"), nil, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, bound := range map[string]func(context.Context) (int, error){
		"nearest": p.Nearest, "spread": p.Spread, "tree": p.SpanningTree,
		"groups": p.Groups,
	} {
		if _, err := bound(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := workload.New(workload.Options{Contexts: n, Pool: n / 3, Topics: n / 50, Zipf: 1})
			if err != nil {
				b.Fatal(err)
			}
			p := bounds.New(nil, true)
			for q := range g.Requests() {
				if err := p.Add(q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Nearest(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
