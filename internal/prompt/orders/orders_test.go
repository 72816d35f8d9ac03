package orders_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/orders/orderstest"
)

func TestMemory(t *testing.T) {
	orderstest.Run(t, func() orders.Store { return orders.NewMemory(0, 0) })
}

func key(n int) (k orders.Key) {
	binary.LittleEndian.PutUint64(k[:], uint64(n))
	return k
}

func TestMemoryForgetsWhatWasNotAskedForLongest(t *testing.T) {
	ctx := t.Context()
	m := orders.NewMemory(10*(160+2*4), 2) // ten places of four documents
	for n := range 10 {
		m.Put(ctx, "a", key(n), []int{3, 2, 1, 0})
	}
	if m.Len("a") != 10 {
		t.Fatalf("%d places, want 10", m.Len("a"))
	}
	m.Get(ctx, "a", key(0))
	m.Put(ctx, "a", key(10), []int{0, 1, 2, 3})
	for n, want := range map[int]bool{0: true, 1: false, 2: true, 10: true} {
		if _, ok := m.Get(ctx, "a", key(n)); ok != want {
			t.Errorf("place %d: found %v, want %v", n, ok, want)
		}
	}
	m.Put(ctx, "a", key(11), rand.Perm(5000)) // more than all: alone then
	if _, ok := m.Get(ctx, "a", key(11)); !ok || m.Len("a") != 1 {
		t.Errorf("a large place: found %v, %d places", ok, m.Len("a"))
	}
}

func TestATenantCannotPushOutAnother(t *testing.T) {
	ctx := t.Context()
	m := orders.NewMemory(1000, 2)
	m.Put(ctx, "quiet", key(1), []int{1, 0})
	for n := range 1000 {
		m.Put(ctx, "busy", key(n), []int{1, 0})
	}
	if _, ok := m.Get(ctx, "quiet", key(1)); !ok {
		t.Error("the quiet tenant lost its place")
	}
	for _, name := range []string{"x", "y"} { // but the number of tenants is bounded
		m.Put(ctx, name, key(1), []int{1, 0})
	}
	if n := m.Len("quiet") + m.Len("busy"); n != 0 {
		t.Errorf("%d places of tenants that should be gone", n)
	}
}

// Beside a map that forgets nothing: Memory's answers are its answers or none.
func TestMemoryAgainstMap(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		m := orders.NewMemory(rapid.IntRange(1, 2000).Draw(t, "bytes"), rapid.IntRange(1, 3).Draw(t, "tenants"))
		type at struct {
			tenant string
			key    int
		}
		model := map[at][]int{}
		somewhere := func(t *rapid.T) at {
			return at{rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant"), rapid.IntRange(0, 5).Draw(t, "key")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				p := somewhere(t)
				if got, ok := m.Get(ctx, p.tenant, key(p.key)); ok && !slices.Equal(got, model[p]) {
					t.Fatalf("%v: %v, want %v", p, got, model[p])
				}
			},
			"put": func(t *rapid.T) {
				p := somewhere(t)
				order := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order")
				_, known := m.Get(ctx, p.tenant, key(p.key))
				if !known {
					model[p] = order
				}
				if got := m.Put(ctx, p.tenant, key(p.key), order); !slices.Equal(got, model[p]) {
					t.Fatalf("%v: the order to use is %v, want %v", p, got, model[p])
				}
				if got, ok := m.Get(ctx, p.tenant, key(p.key)); !ok || !slices.Equal(got, model[p]) {
					t.Fatalf("%v: %v %v right after it was put", p, got, ok)
				}
			},
			"forget": func(t *rapid.T) {
				tenant := somewhere(t).tenant
				_ = m.Forget(ctx, tenant)
				if m.Len(tenant) != 0 {
					t.Fatal("not forgotten")
				}
			},
		})
	})
}

func TestEncodedOrdersAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(250, 260), rapid.Just(orders.MaxDocuments)).Draw(t, "documents")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		order, k := r.Perm(n), key(r.Int())
		b := orders.Encode(k, order)
		if n <= 256 && len(b) != 11+n {
			t.Fatalf("%d documents take %d bytes", n, len(b))
		}
		got, err := orders.Decode(k, b)
		if err != nil || !slices.Equal(got, order) {
			t.Fatalf("%v %v, want %v", got, err, order)
		}
		if _, err := orders.Decode(key(r.Int()), b); err == nil {
			t.Fatal("an order of another place was taken")
		}
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if got, err := orders.Decode(k, b); err == nil {
			t.Fatalf("a flipped bit was not noticed: %v", got)
		}
	})
}

// FuzzDecode: whatever is decoded is an order, and encoded again it is the same bytes.
func FuzzDecode(f *testing.F) {
	var k orders.Key
	f.Add(orders.Encode(k, []int{0}))
	f.Add(orders.Encode(k, []int{2, 0, 1}))
	f.Add(orders.Encode(k, rand.Perm(300)))
	f.Add(orders.Encode(k, []int{1, 0})[:5])
	f.Add([]byte{orders.Format, 1, 0, 1, 1})
	f.Add([]byte{orders.Format, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := orders.Decode(k, b)
		if err == nil && (!orders.Valid(got) || !bytes.Equal(orders.Encode(k, got), b)) {
			t.Fatalf("%x was decoded as %v", b, got)
		}
		// With a right checksum the rest is looked at, too.
		sealed := binary.LittleEndian.AppendUint64(bytes.Clone(b), xxh3.HashSeed(b, xxh3.Hash(k[:])))
		got, err = orders.Decode(k, sealed)
		if err == nil && (!orders.Valid(got) || !bytes.Equal(orders.Encode(k, got), sealed)) {
			t.Fatalf("%x was decoded as %v", sealed, got)
		}
	})
}

func BenchmarkMemory(b *testing.B) {
	ctx := context.Background()
	order := rand.Perm(20)
	m := orders.NewMemory(0, 0)
	for n := range 50_000 {
		m.Put(ctx, "t", key(n), order)
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			m.Get(ctx, "t", key(n%50_000))
		}
	})
	b.Run("get/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; pb.Next(); n++ {
				m.Get(ctx, "t", key(n%50_000))
			}
		})
	})
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		for n := 50_000; b.Loop(); n++ {
			m.Put(ctx, "t", key(n), order)
		}
	})
}

func TestMemoryIsSafeForConcurrentUse(t *testing.T) {
	m := orders.NewMemory(3000, 3)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			for range 2000 {
				tenant := string(rune('a' + r.IntN(4)))
				switch k := key(r.IntN(30)); r.IntN(10) {
				case 0:
					_ = m.Forget(t.Context(), tenant)
				case 1, 2, 3:
					if got := m.Put(t.Context(), tenant, k, r.Perm(5)); len(got) != 5 {
						t.Errorf("the order to use is %v", got)
					}
				default:
					if got, ok := m.Get(t.Context(), tenant, k); ok && !orders.Valid(got) {
						t.Errorf("got %v", got)
					}
				}
			}
		})
	}
	wg.Wait()
}
