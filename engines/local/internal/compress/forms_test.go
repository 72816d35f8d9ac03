package compress

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

var shape = compute.Heads{Query: 6, KV: 2, Dim: 32}

// random numbers, of the size that keys and values have.
func floats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func randomPages(r *rand.Rand, tokens int) []compute.Page {
	pages := make([]compute.Page, (tokens+compute.PageTokens-1)/compute.PageTokens)
	for i := range pages {
		n := shape.KV * shape.Dim * compute.PageTokens
		pages[i] = compute.Page{Keys: floats(r, n), Values: floats(r, n)}
	}
	return pages
}

// key and value are one token's, of one head.
func key(pages []compute.Page, head, token int) []float64 {
	out := make([]float64, shape.Dim)
	for d := range out {
		out[d] = float64(pages[token/compute.PageTokens].Keys[(head*shape.Dim+d)*compute.PageTokens+token%compute.PageTokens])
	}
	return out
}

func setKey(pages []compute.Page, head, token int, to []float32) {
	for d, x := range to {
		pages[token/compute.PageTokens].Keys[(head*shape.Dim+d)*compute.PageTokens+token%compute.PageTokens] = x
	}
}

func valueNorm(pages []compute.Page, head, token int) float64 {
	sum := 0.0
	for _, v := range pages[token/compute.PageTokens].Values[(head*compute.PageTokens+token%compute.PageTokens)*shape.Dim:][:shape.Dim] {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// attend returns the scores of n tokens by rows behind them.
func (f form) attend(q []float32, pages []compute.Page, n, threads int) []float32 {
	rows := len(q) / (shape.Query * shape.Dim)
	probe := compute.NewProbe(shape, n)
	probe.Rows, probe.Within = f.Rows, f.Within
	run := compute.Run{Rows: rows, Position: n, Pages: pages, Probe: probe}
	compute.NewCrew(threads).Attend(make([]float32, len(q)), q, shape, []compute.Run{run})
	norms := make([]float64, shape.KV*n)
	for i := range norms {
		norms[i] = valueNorm(pages, i/n, i%n)
	}
	return f.scores(probe, shape, norms, rows)
}

// dense is the formula, with the whole matrix of weights in float64: CacheNotes Eq. 3 to 5, and the authors' code.
func dense(authors bool, q []float32, pages []compute.Page, n int) []float64 {
	rows := len(q) / (shape.Query * shape.Dim)
	out := make([]float64, shape.KV*n)
	for row := range rows {
		for head := range shape.Query {
			kv := head / (shape.Query / shape.KV)
			seen := n
			if authors {
				seen = n + row + 1
			}
			weights, sum := make([]float64, seen), 0.0
			for i := range weights {
				for d, x := range key(pages, kv, i) {
					weights[i] += x * float64(q[(row*shape.Query+head)*shape.Dim+d])
				}
				weights[i] = math.Exp(weights[i] / math.Sqrt(float64(shape.Dim)))
				sum += weights[i]
			}
			for i := range n {
				w := weights[i] / sum / float64(rows*shape.Query/shape.KV)
				if authors {
					w *= float64(n+row+1) * valueNorm(pages, kv, i)
				} else {
					w *= valueNorm(pages, kv, n+row)
				}
				out[kv*n+i] += w
			}
		}
	}
	return out
}

// TestForms: scores are those of the formulas, to 1e-5.
func TestForms(t *testing.T) {
	for _, n := range []int{1, 40, 500} {
		const rows = 23
		r := rand.New(rand.NewPCG(1, uint64(n)))
		pages, q := randomPages(r, n+rows), floats(r, rows*shape.Query*shape.Dim)
		for name, f := range map[string]form{"reference": reference, "paper": paper} {
			want := dense(name == "reference", q, pages, n)
			for i, got := range f.attend(q, pages, n, 2) {
				if math.Abs(float64(got)-want[i]) > 1e-5*want[i] {
					t.Fatalf("%s, %d tokens: score %d is %g, want %g", name, n, i, got, want[i])
				}
			}
		}
	}
}

// TestNeedle: a key that a note asks for is kept, in its head.
func TestNeedle(t *testing.T) {
	const n, rows, needle = 300, 9, 217
	r := rand.New(rand.NewPCG(2, 2))
	q := floats(r, rows*shape.Query*shape.Dim)
	for name, f := range map[string]form{"reference": reference, "paper": paper} {
		for head := range shape.KV {
			pages := randomPages(r, n+rows)
			before := compute.Largest(f.attend(q, pages, n, 1)[head*n:][:n], 1)
			query := q[(4*shape.Query+head*shape.Query/shape.KV)*shape.Dim:][:shape.Dim]
			long := make([]float32, shape.Dim)
			for i, x := range query {
				long[i] = 3 * x
			}
			setKey(pages, head, needle, long)
			if got := compute.Largest(f.attend(q, pages, n, 1)[head*n:][:n], 1); got[0] != needle || before[0] == needle {
				t.Errorf("%s, head %d: token %d is kept, want %d; before it was %d", name, head, got[0], needle, before[0])
			}
		}
	}
}

// TestPermutation: without positions in keys, scores go with their tokens.
func TestPermutation(t *testing.T) {
	const n, rows = 200, 7
	r := rand.New(rand.NewPCG(3, 3))
	pages, q := randomPages(r, n+rows), floats(r, rows*shape.Query*shape.Dim)
	mixed := randomPages(r, n+rows)
	order := r.Perm(n)
	for i := n; i < n+rows; i++ {
		order = append(order, i)
	}
	for to, from := range order {
		for head := range shape.KV {
			mixed[to/compute.PageTokens].CopyHead(
				shape,
				head,
				to%compute.PageTokens,
				pages[from/compute.PageTokens],
				from%compute.PageTokens,
				nil,
				nil,
			)
		}
	}
	for name, f := range map[string]form{"reference": reference, "paper": paper} {
		plain, got := f.attend(q, pages, n, 1), f.attend(q, mixed, n, 1)
		for head := range shape.KV {
			for to, from := range order[:n] {
				if x, want := float64(got[head*n+to]), float64(plain[head*n+from]); math.Abs(x-want) > 1e-5*want {
					t.Fatalf("%s: token %d moved to %d has score %g, want %g", name, from, to, x, want)
				}
			}
		}
	}
}

// TestLargest: the largest are exact, in ascending order, and of equal ones the first.
func TestLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		scores := make([]float32, 1+r.IntN(60))
		for i := range scores {
			scores[i] = float32(r.IntN(5))
		}
		scores[r.IntN(len(scores))] = Always
		k := r.IntN(len(scores) + 1)
		got := compute.Largest(scores, k)
		if len(got) != k || !slices.IsSorted(got) {
			t.Fatalf("%d of %v: %v", k, scores, got)
		}
		for i, s := range scores {
			better := 0
			for j, other := range scores {
				if other > s || other == s && j < i {
					better++
				}
			}
			if slices.Contains(got, i) != (better < k) {
				t.Fatalf("the largest %d of %v are %v", k, scores, got)
			}
		}
	}
}
