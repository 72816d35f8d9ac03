package offline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/prompt/offline"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func plan(t interface{ Fatal(...any) }, sets [][]int32, weight []int32, o offline.Options) offline.Result {
	r, err := offline.Plan(context.Background(), sets, weight, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// prompts applies the orders.
func prompts(sets, orders [][]int32) [][]int32 {
	out := make([][]int32, len(sets))
	for i, o := range orders {
		out[i] = make([]int32, 0, len(o))
		for _, at := range o {
			out[i] = append(out[i], sets[i][at])
		}
	}
	return out
}

// shared counts the tokens that a trie of the prompts saves.
func shared(prompts [][]int32, weight []int32) (saved int64) {
	type node map[int32]node
	trie := node{}
	for _, p := range prompts {
		at := trie
		for _, d := range p {
			if next, ok := at[d]; ok {
				saved += int64(weight[d])
				at = next
				continue
			}
			next := node{}
			at[d] = next
			at = next
		}
	}
	return saved
}

// valid checks everything that a result promises.
func valid(sets [][]int32, weight []int32, r offline.Result) error {
	permutation := func(n int, at []int) bool {
		seen := make([]bool, n)
		for _, i := range at {
			if i < 0 || i >= n || seen[i] {
				return false
			}
			seen[i] = true
		}
		return len(at) == n
	}
	if len(r.Orders) != len(sets) || !permutation(len(sets), r.Schedule) {
		return fmt.Errorf("%d orders of %d sets, schedule %v", len(r.Orders), len(sets), r.Schedule)
	}
	for i, o := range r.Orders {
		var at []int
		for _, x := range o {
			at = append(at, int(x))
		}
		if !permutation(len(sets[i]), at) {
			return fmt.Errorf("order %d of %d blocks: %v", i, len(sets[i]), o)
		}
	}
	p := prompts(sets, r.Orders)
	if got := shared(p, weight); got != r.Saved {
		return fmt.Errorf("saved %d, the trie says %d", r.Saved, got)
	}
	same := map[string][]int32{}
	for i, s := range sets {
		key := fmt.Sprint(slices.Sorted(slices.Values(s)))
		if first, ok := same[key]; ok && !slices.Equal(first, p[i]) {
			return fmt.Errorf("one set in the orders %v and %v", first, p[i])
		}
		same[key] = p[i]
	}
	closed := map[string]bool{} // prefixes that a later request must not have
	var before []int32
	for n, i := range r.Schedule {
		common := 0
		for common < min(len(before), len(p[i])) && before[common] == p[i][common] {
			common++
		}
		for k := common; k < len(before); k++ {
			closed[fmt.Sprint(before[:k+1])] = true
		}
		for k := range p[i] {
			if closed[fmt.Sprint(p[i][:k+1])] {
				return fmt.Errorf("request %d at %d comes back to %v", i, n, p[i][:k+1])
			}
		}
		before = p[i]
	}
	if got := slices.Concat(r.Groups...); len(sets) > 0 && !slices.Equal(got, r.Schedule) {
		return fmt.Errorf("groups %v, schedule %v", r.Groups, r.Schedule)
	}
	heads := map[int32]bool{}
	for _, g := range r.Groups {
		for _, i := range g {
			if len(p[i]) == 0 && len(g) != 1 || len(p[i]) > 0 && p[i][0] != p[g[0]][0] {
				return fmt.Errorf("group %v does not share its first block", g)
			}
		}
		if head := p[g[0]]; len(head) > 0 {
			if heads[head[0]] {
				return fmt.Errorf("two groups begin with block %d", head[0])
			}
			heads[head[0]] = true
		}
	}
	return nil
}

// drawSets gives sets whose blocks are the likelier the lower their ID.
func drawSets(t *rapid.T, maxSets, maxBlocks, pool int) (sets [][]int32, weight []int32) {
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	n := rapid.IntRange(0, maxSets).Draw(t, "sets")
	heaviest := rapid.SampledFrom([]int{0, 1, 9, 500}).Draw(t, "heaviest block")
	skew := rapid.SampledFrom([]float64{1, 3}).Draw(t, "skew")
	weight = make([]int32, pool)
	for d := range weight {
		weight[d] = int32(rnd.IntN(heaviest + 1))
	}
	for range n {
		if len(sets) > 0 && rnd.IntN(6) == 0 {
			s := slices.Clone(sets[rnd.IntN(len(sets))])
			rnd.Shuffle(len(s), func(a, b int) { s[a], s[b] = s[b], s[a] })
			sets = append(sets, s)
			continue
		}
		sets = append(sets, distinctBlocks(rnd.IntN(maxBlocks+1), func() int32 {
			return int32(math.Pow(rnd.Float64(), skew) * float64(pool))
		}))
	}
	return sets, weight
}

func TestPlanIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets, weight := drawSets(t, 120, 12, rapid.SampledFrom([]int{15, 40, 200}).Draw(t, "pool"))
		o := offline.Options{
			Effort:    rapid.SampledFrom([]int{-1, 0, 5, 2000}).Draw(t, "effort"),
			Seed:      rapid.Uint64().Draw(t, "plan's seed"),
			Partition: rapid.SampledFrom([]int{0, 1, 7, 50}).Draw(t, "partition"),
		}
		r := plan(t, sets, weight, o)
		if err := valid(sets, weight, r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, plan(t, sets, weight, o)); diff != "" {
			t.Fatalf("a second call (-first +second):\n%s", diff)
		}
	})
}

// optimum tries every order of every set.
func optimum(sets [][]int32, weight []int32) int64 {
	prompts := make([][]int32, len(sets))
	best := int64(0)
	var try func(i int)
	try = func(i int) {
		if i == len(sets) {
			best = max(best, shared(prompts, weight))
			return
		}
		var permute func(k int)
		s := slices.Clone(sets[i])
		permute = func(k int) {
			if k == len(s) {
				prompts[i] = s
				try(i + 1)
				return
			}
			for j := k; j < len(s); j++ {
				s[k], s[j] = s[j], s[k]
				permute(k + 1)
				s[k], s[j] = s[j], s[k]
			}
		}
		permute(0)
	}
	try(0)
	return best
}

func TestAgainstOptimum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	const rounds = 150
	exact := 0
	for range rounds {
		weight := make([]int32, 6)
		for d := range weight {
			weight[d] = int32(rnd.IntN(20))
		}
		n := 2 + rnd.IntN(3)
		sets := make([][]int32, n)
		for i := range sets {
			sets[i] = distinctBlocks(1+rnd.IntN(max(5-n, 2)+1), func() int32 { return int32(rnd.IntN(6)) })
		}
		got, want := plan(t, sets, weight, offline.Options{}).Saved, optimum(sets, weight)
		if got > want {
			t.Fatalf("%v of weights %v: saved %d, the optimum is %d", sets, weight, got, want)
		}
		if n == 2 && got != want {
			t.Errorf("two sets %v of weights %v: saved %d, want %d", sets, weight, got, want)
		}
		if got == want {
			exact++
		}
	}
	t.Logf("%d of %d optimal", exact, rounds)
	if exact < rounds*98/100 {
		t.Errorf("only %d of %d optimal", exact, rounds)
	}
}

func TestEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   int64
		sets   [][]int32
		weight []int32
	}{
		{name: "nothing"},
		{name: "one request", sets: [][]int32{{2, 0}}, weight: []int32{1, 1, 1}},
		{name: "empty sets", sets: [][]int32{{}, nil, {0}, {}}, weight: []int32{5}},
		{name: "repeated set", want: 16, sets: [][]int32{{0, 1}, {1, 0}, {0, 1}}, weight: []int32{5, 3}},
		{name: "no weight", sets: [][]int32{{0, 1, 2}, {1, 3, 0}, {3, 0}}, weight: make([]int32, 4)},
		{name: "subset", want: 7, sets: [][]int32{{3, 0, 1}, {1, 0}}, weight: []int32{5, 2, 1, 1}},
		{name: "heavy blocks", want: 2 * math.MaxInt32, sets: [][]int32{{0, 1}, {1, 0}}, weight: []int32{math.MaxInt32, math.MaxInt32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{0, 1} {
				r := plan(t, c.sets, c.weight, offline.Options{Partition: size})
				if err := valid(c.sets, c.weight, r); err != nil {
					t.Fatal(err)
				}
				if size == 0 && r.Saved != c.want {
					t.Errorf("saved %d, want %d", r.Saved, c.want)
				}
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	for name, in := range map[string]struct {
		sets   [][]int32
		weight []int32
	}{
		"block without weight": {[][]int32{{0}, {1}}, []int32{1}},
		"negative block":       {[][]int32{{-1}}, []int32{1}},
		"block twice":          {[][]int32{{0}, {0, 1, 0}}, []int32{1, 1}},
		"negative weight":      {nil, []int32{-1}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := offline.Plan(context.Background(), in.sets, in.weight, offline.Options{}); err == nil {
				t.Error("Plan: no error")
			}
		})
	}
}

func TestCancel(t *testing.T) {
	sets, weight, _ := generate(1, 3000, 15, false)
	for _, size := range []int{0, 500} {
		done, stop := context.WithCancel(context.Background())
		stop()
		if _, err := offline.Plan(done, sets, weight, offline.Options{Partition: size}); !errors.Is(err, context.Canceled) {
			t.Errorf("partition %d, cancelled before: %v", size, err)
		}
		late, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if _, err := offline.Plan(late, sets, weight, offline.Options{Partition: size, Effort: math.MaxInt}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("partition %d, cancelled on the way: %v", size, err)
		}
		stop()
	}
}

// Search pays, more of it pays more, and parts lose little.
func TestQuality(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, c := range []struct {
		name  string
		k     int
		drift bool
	}{{"k=5", 5, false}, {"k=15", 15, false}, {"k=15 drift", 15, true}, {"k=40", 40, true}} {
		t.Run(c.name, func(t *testing.T) {
			sets, weight, total := generate(3, 1200, c.k, c.drift)
			share := func(o offline.Options) float64 {
				r := plan(t, sets, weight, o)
				if err := valid(sets, weight, r); err != nil {
					t.Fatal(err)
				}
				return 100 * float64(r.Saved) / float64(total)
			}
			none, some, much, parts := share(offline.Options{Effort: -1}), share(offline.Options{}), share(offline.Options{Effort: 400}),
				share(offline.Options{Partition: 300})
			t.Logf("no search %.2f %%, default %.2f %%, three times as much %.2f %%, in four parts %.2f %%", none, some, much, parts)
			if some < none || much < some-0.05 || parts < some-2 {
				t.Error("not in the order expected")
			}
		})
	}
}
