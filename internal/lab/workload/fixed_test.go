package workload

import (
	"math"
	"slices"
	"testing"
)

func TestLog2(t *testing.T) {
	for _, x := range []uint64{1, 2, 3, 7, 10, 1000, 1 << 40, 1<<40 + 12345, math.MaxUint64} {
		want := math.Log2(float64(x))
		if got := float64(log2(x)) / one; math.Abs(got-want) > 1e-8 {
			t.Errorf("log2(%d) is %.10f, want %.10f", x, got, want)
		}
	}
}

func TestInversePower(t *testing.T) {
	for _, s := range []float64{0, 0.5, 0.83, 1, 1.7, 2} {
		for _, x := range []uint64{1, 2, 3, 10, 999, 33333} {
			want := math.Pow(float64(x), -s)
			got := float64(inversePower(x, fixed(s))) / (1 << powerBits)
			if math.Abs(got-want) > 1e-7*want+2.0/(1<<powerBits) {
				t.Errorf("%d^-%v is %v, want %v", x, s, got, want)
			}
		}
	}
	if got := inversePower(maxCount, fixed(maxZipf+steeper)); got != 1 {
		t.Errorf("the smallest weight is %d, want 1", got)
	}
}

func TestZipf(t *testing.T) {
	const draws = 200_000
	z := newZipf(50, 1)
	r := newRandom(7, 0, 0)
	var n [20]int
	for range draws {
		n[z.draw(r, len(n))]++
	}
	h := 0.0
	for i := range n {
		h += 1 / float64(i+1)
	}
	for i := range n {
		want := draws / (float64(i+1) * h)
		if math.Abs(float64(n[i])-want) > 5*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %d times, want %.0f", i, n[i], want)
		}
	}
}

// TestGrowing: no request retrieves a block before it exists, and new ones do come.
func TestGrowing(t *testing.T) {
	opt := Options{Contexts: 2000, K: 10, KSpread: 2, Topics: 5, Pool: 400, Zipf: 1, Growing: true}
	if err := opt.complete(); err != nil {
		t.Fatal(err)
	}
	m := newByTopic(&opt)
	late := 0
	for i := range opt.Contexts {
		q := m.draw()
		lo, hi := opt.topicBlocks(q.topic)
		for _, b := range q.blocks {
			born := int(m.topics.born[b])
			if born > i {
				t.Fatalf("request %d retrieves block %d of request %d", i, b, born)
			}
			if int(b) < lo || int(b) >= hi {
				t.Fatalf("request %d on topic %d retrieves block %d of another one", i, q.topic, b)
			}
			if born > opt.Contexts/2 {
				late++
			}
		}
	}
	if late == 0 {
		t.Error("no block of the second half was ever retrieved")
	}
	for topic := range opt.Topics {
		lo, hi := opt.topicBlocks(topic)
		first := 0
		for _, born := range m.topics.born[lo:hi] {
			if born == 0 {
				first++
			}
		}
		if first != opt.kMax() {
			t.Errorf("topic %d begins with %d blocks, want %d", topic, first, opt.kMax())
		}
	}
}

// TestLists: a topic's list names no block twice, is long enough, and stays within its tenant.
func TestLists(t *testing.T) {
	opt := Options{Contexts: 1, K: 15, Topics: 30, Tenants: 3, Pool: 400}
	if err := opt.complete(); err != nil {
		t.Fatal(err)
	}
	topics := newTopics(&opt)
	for topic := range opt.Topics {
		list := topics.list(topic)
		lo, hi := opt.tenantBlocks(int(topics.tenant[topic]))
		seen := map[int32]bool{}
		for _, b := range list {
			if seen[b] || int(b) < lo || int(b) >= hi {
				t.Fatalf("topic %d: block %d twice or of another tenant", topic, b)
			}
			seen[b] = true
		}
		if len(list) < listFactor*15 || len(list) > topics.longest() {
			t.Errorf("topic %d: list of %d blocks, want %d to %d", topic, len(list), listFactor*15, topics.longest())
		}
		near := map[int]bool{topic: true}
		for x := range topics.neighbours(topic) {
			if near[x] || topics.tenant[x] != topics.tenant[topic] {
				t.Errorf("topic %d: neighbour %d twice or of another tenant", topic, x)
			}
			near[x] = true
		}
		if len(near) != 10 {
			t.Errorf("topic %d: %d neighbours, want 9", topic, len(near)-1)
		}
	}
}

func TestInsert(t *testing.T) {
	tests := []struct {
		list []int32
		at   int
		want []int32
	}{
		{[]int32{1, 2, 3}, 1, []int32{1, 9, 2, 3}},
		{[]int32{1, 2, 3}, 3, []int32{1, 2, 3, 9}},
		{[]int32{1, 2, 9, 3}, 0, []int32{9, 1, 2, 3}},
		{[]int32{1, 9, 2, 3}, 2, []int32{1, 9, 2, 3}},
	}
	for _, tt := range tests {
		got := insert(slices.Clone(tt.list), tt.at, 9)
		if len(got) != len(tt.want) {
			t.Errorf("%v at %d: %v", tt.list, tt.at, got)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%v at %d: %v, want %v", tt.list, tt.at, got, tt.want)
				break
			}
		}
	}
}
