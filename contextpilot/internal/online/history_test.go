package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// request makes blocks of ten tokens.
func request(keys ...uint64) []Block {
	out := make([]Block, len(keys))
	for i, k := range keys {
		out[i] = Block{Key: k, Tokens: 10}
	}
	return out
}

// serve asks for an order without a path and remembers the request.
func serve(h *History, blocks []Block) (keys []uint64, rule string) {
	order, rule := h.Look(blocks).Arrange(nil, nil)
	for _, i := range order {
		keys = append(keys, blocks[i].Key)
	}
	h.Remember()
	return keys, rule
}

func TestNothingSharedKeepsRetrievalOrder(t *testing.T) {
	h := New()
	for i := range uint64(50) {
		keys, rule := serve(h, request(4*i+3, 4*i+1, 4*i+2, 4*i))
		if want := []uint64{4*i + 3, 4*i + 1, 4*i + 2, 4 * i}; !slices.Equal(keys, want) || rule != "" {
			t.Fatalf("request %d: order %v by rule %q, want %v by none", i, keys, rule, want)
		}
	}
}

func TestWhatNeighboursHaveComesFirst(t *testing.T) {
	h := New()
	for i := range uint64(20) {
		serve(h, request(100+i, 1, 200+i, 2, 300+i))
	}
	keys, rule := serve(h, request(999, 1, 998, 2, 997))
	first := slices.Sorted(slices.Values(keys[:2]))
	if !slices.Equal(first, []uint64{1, 2}) || rule == "" {
		t.Errorf("order %v by rule %q, want blocks 1 and 2 in front", keys, rule)
	}
}

func TestNeighbours(t *testing.T) {
	h := New()
	for _, r := range [][]Block{request(1, 2, 3), request(3, 4, 5), request(7, 8), request(1, 2, 9)} {
		serve(h, r)
	}
	o := h.Look(request(1, 2, 3))
	var shared []int32
	for _, n := range o.near {
		shared = append(shared, n.shared)
	}
	if diff := cmp.Diff([]int32{30, 20, 10}, shared); diff != "" {
		t.Errorf("shared tokens of the neighbours, nearest first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Mask{0b011, 0b011, 0b101}, []Mask{o.Holds(0), o.Holds(1), o.Holds(2)}); diff != "" {
		t.Errorf("neighbours that hold each block (-want +got):\n%s", diff)
	}
	if s := o.Share(0b111); s != 1 {
		t.Errorf("share of all neighbours: %v", s)
	}
	if a, b := o.Share(0b001), o.Share(0b100); a <= b || b <= 0 {
		t.Errorf("share of the nearest %v, of the farthest %v", a, b)
	}
}

// Of equally near requests the newer one counts.
func TestNewerFirst(t *testing.T) {
	h := New()
	for i := range uint64(near + 5) {
		serve(h, request(1, 10+i))
	}
	o := h.Look(request(1))
	for x, n := range o.near {
		if int(n.age) != x {
			t.Fatalf("neighbour %d is %d requests old, want %d", x, n.age, x)
		}
	}
}

func TestAwaitedRequestsAreNeighbours(t *testing.T) {
	h := New()
	serve(h, request(5, 6, 7))
	serve(h, request(1, 2, 7))
	h.Await([][]uint64{{5, 6, 8}, {9}})
	keys, o := h.lookAndArrange(request(1, 2, 5, 6))
	if first := slices.Sorted(slices.Values(keys[:2])); !slices.Equal(first, []uint64{5, 6}) {
		t.Errorf("order %v, want 5 and 6 in front: a request that has them is about to follow", keys)
	}
	if o.Neighbours() != 3 {
		t.Errorf("%d neighbours, want 3", o.Neighbours())
	}
	h.Await(nil)
	if o := h.Look(request(9)); o.Neighbours() != 0 {
		t.Error("a request is still awaited")
	}
}

// lookAndArrange is serve without Remember.
func (h *History) lookAndArrange(blocks []Block) (keys []uint64, o *Outlook) {
	o = h.Look(blocks)
	order, _ := o.Arrange(nil, nil)
	for _, i := range order {
		keys = append(keys, blocks[i].Key)
	}
	return keys, o
}

// The leader is the rule whose orders would have been found by later requests.
func TestCreditFollowsWhatWouldHaveBeenFound(t *testing.T) {
	h := New()
	blocks := request(1, 2, 3)
	serve(h, request(1, 2, 3))
	serve(h, blocks)
	for v, c := range h.credit {
		if c != 30 && c != 0 {
			t.Errorf("rule %s: credit %v, want 30 (the whole request) or 0 (no order made yet)", rules[v].name, c)
		}
	}
	serve(h, blocks)
	for v, c := range h.credit {
		if c < 30*decay {
			t.Errorf("rule %s: credit %v after two identical requests", rules[v].name, c)
		}
	}
}

// The window bounds memory, and what is forgotten leaves nothing behind.
func TestWindow(t *testing.T) {
	h := New()
	for i := range uint64(2*Remembered + 10) {
		h.Look(request(i, i+1, i%7+1<<40))
		h.Remember()
	}
	if h.Len() != Remembered {
		t.Errorf("%d requests remembered, want %d", h.Len(), Remembered)
	}
	if n := len(h.ids); n > Remembered+1+7 {
		t.Errorf("%d blocks known, %d requests remember at most %d", n, Remembered, Remembered+1+7)
	}
	uses := 0
	for _, b := range h.blocks {
		uses += len(b.uses)
	}
	if uses != 3*Remembered {
		t.Errorf("%d uses listed, want %d", uses, 3*Remembered)
	}
	if o := h.Look(request(3)); o.Neighbours() != 0 {
		t.Error("a forgotten request is a neighbour")
	}
}

// Long requests displace several short ones, and one that is too long by itself all others.
func TestMaxBlocks(t *testing.T) {
	long := func(from uint64, n int) []Block {
		blocks := make([]Block, n)
		for i := range blocks {
			blocks[i] = Block{Key: from + uint64(i), Tokens: 1}
		}
		return blocks
	}
	h := New()
	for i := range uint64(100) {
		h.Add(request(i, i+1))
	}
	for range 4 {
		h.Add(long(1<<32, MaxBlocks/4-40)) // leaves 160 blocks: 80 of the short requests
	}
	if h.Len() != 80+4 || h.Look(request(19)).Neighbours() != 0 || h.Look(request(20)).Neighbours() != 1 {
		t.Errorf("%d requests remembered, want the last 80 short ones and 4 long ones", h.Len())
	}
	h.Add(long(1<<32, 161))
	if h.Len() != 4 || len(h.ids) != MaxBlocks/4-40 {
		t.Errorf("%d requests with %d blocks remembered, want the last 4", h.Len(), len(h.ids))
	}
	h.Add(long(1, MaxBlocks+1))
	if h.Len() != 1 || h.Look(request(MaxBlocks)).Neighbours() != 1 {
		t.Errorf("%d requests remembered, want the last, which is longer than all may be", h.Len())
	}
}

// A slow, obviously right way to find the neighbours.
func TestNeighboursAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New()
		var past [][]Block
		n := rapid.IntRange(1, 60).Draw(t, "requests")
		for range n {
			keys := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 30), 1, 8, rapid.ID[uint64]).Draw(t, "keys")
			blocks := make([]Block, len(keys))
			for i, k := range keys {
				blocks[i] = Block{Key: k, Tokens: int(k)}
			}
			o := h.Look(blocks)
			var want []int32
			for _, earlier := range slices.Backward(past) {
				s := 0
				for _, b := range blocks {
					if slices.ContainsFunc(earlier, func(x Block) bool { return x.Key == b.Key }) {
						s += b.Tokens
					}
				}
				if s > 0 {
					want = append(want, int32(s))
				}
			}
			slices.SortFunc(want, func(a, b int32) int { return int(b - a) })
			want = want[:min(len(want), near)]
			var got []int32
			for _, x := range o.near {
				got = append(got, x.shared)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("shared tokens %v, want %v", got, want)
			}
			order, _ := o.Arrange(nil, nil)
			permutation(t, order, len(blocks))
			h.Remember()
			past = append(past, blocks)
		}
	})
}

// Any path is kept in front, and the whole is a permutation, also for very long and very uneven requests.
func TestArrangeIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			k := rapid.SampledFrom([]int{1, 2, 15, 300, 1000}).Draw(t, "k")
			blocks := make([]Block, k)
			for i, key := range r.Perm(1200)[:k] {
				blocks[i] = Block{Key: uint64(key), Tokens: r.IntN(3) * r.IntN(5000), Score: float64(r.IntN(2))}
			}
			o := h.Look(blocks)
			path := r.Perm(k)[:r.IntN(k+1)]
			order, _ := o.Arrange(nil, path)
			permutation(t, order, k)
			if !slices.Equal(order[:len(path)], path) {
				t.Fatalf("order %v does not begin with the path %v", order, path)
			}
			h.Remember()
		}
	})
}

func permutation(t *rapid.T, order []int, n int) {
	sorted := slices.Sorted(slices.Values(order))
	for i := range n {
		if len(sorted) != n || sorted[i] != i {
			t.Fatalf("order %v is no permutation of %d", order, n)
		}
	}
}

// Requests of a thousand blocks that share one must not drive the weights out of range.
func TestWeightsStayFinite(t *testing.T) {
	h := New()
	for n := range uint64(20) {
		var keys []uint64
		for i := range uint64(1000) {
			keys = append(keys, n<<20|i+1)
		}
		keys[500], keys[20] = 0, n%3<<40
		_, o := h.lookAndArrange(request(keys...))
		for _, s := range o.work.score {
			if s != s || s > 1e200 {
				t.Fatalf("request %d: score %v", n, s)
			}
		}
		h.Remember()
	}
}

func TestDeterministic(t *testing.T) {
	run := func() (all [][]uint64) {
		h, r := New(), rand.New(rand.NewPCG(3, 4))
		for range 300 {
			var keys []uint64
			for _, k := range r.Perm(60)[:12] {
				keys = append(keys, uint64(k))
			}
			order, _ := serve(h, request(keys...))
			all = append(all, order)
		}
		return all
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

// A neighbour weighs less by e^-0.3 for each mean block that it shares less than the nearest. The constant is a choice that the
// figures rest on: who changes it measures anew.
func TestWeightFallsWithWhatIsShared(t *testing.T) {
	h := New()
	for _, r := range [][]Block{request(1, 2, 3), request(3, 4, 5), request(7, 8), request(1, 2, 9)} {
		serve(h, r)
	}
	o := h.Look(request(1, 2, 3))
	const one, two = 0.740818220681718, 0.548811636094026 // e^-0.3, e^-0.6
	for i, weight := range []float64{1, one, two} {
		if got, want := o.Share(1<<i), weight/(1+one+two); math.Abs(got-want) > 1e-9 {
			t.Errorf("neighbour %d: a share of %v, want %v", i, got, want)
		}
	}
}

// Retrieved is the longest beginning that a remembered request shares in retrieval order.
func TestRetrieved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New()
		var before [][]Block
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			blocks := request(rapid.SliceOfNDistinct(rapid.Uint64Range(0, 5), 0, 4, rapid.ID).Draw(t, "blocks")...)
			want := 0
			for _, b := range before {
				n := 0
				for n < min(len(b), len(blocks)) && b[n].Key == blocks[n].Key {
					n++
				}
				want = max(want, n)
			}
			if got := h.Retrieved(blocks); got != want {
				t.Fatalf("%d blocks of %v behind %v, want %d", got, blocks, before, want)
			}
			serve(h, blocks)
			before = append(before, blocks)
			if forget := rapid.IntRange(0, 20).Draw(t, "forget"); forget < 3 && h.Len() > 0 {
				left := h.Held() - len(before[0])
				h.Forget(len(before[0]))
				if h.Held() != left {
					t.Fatalf("%d blocks held, want %d", h.Held(), left)
				}
				before = before[1:]
			}
		}
	})
}
