package budget_test

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/budget"
)

// table is a table of entries that are dropped in the order in which they came.
type table struct {
	mu      sync.Mutex
	part    *budget.Part
	entries []int
}

func newTable(b *budget.Budget, tenant, name string) *table {
	t := &table{}
	t.part = b.Part(tenant, name, t.drop)
	return t
}

func (t *table) put(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, n)
	t.part.Add(n)
}

func (t *table) drop() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return 0
	}
	n := t.entries[0]
	t.entries = t.entries[1:]
	t.part.Add(-n)
	return n
}

func (t *table) bytes() (n int) {
	for _, x := range t.entries {
		n += x
	}
	return n
}

// Whatever is put and closed: what is counted is what is held, it fits, and only a tenant that held most has lost.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 1000
		b := budget.New(limit)
		tables := map[string]*table{}
		of := func(tenant string) (n int) {
			for _, name := range []string{"x", "y"} {
				if x := tables[tenant+name]; x != nil {
					n += x.bytes()
				}
			}
			return n
		}
		tenants := []string{"a", "b", "c"}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				tenant, name := rapid.SampledFrom(tenants).Draw(t, "tenant"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "table")
				if tables[tenant+name] == nil {
					tables[tenant+name] = newTable(b, tenant, name)
				}
				n := rapid.IntRange(1, 300).Draw(t, "bytes")
				before := map[string]int{}
				for _, x := range tenants {
					before[x] = of(x)
				}
				before[tenant] += n
				tables[tenant+name].put(n)
				b.Settle()
				for _, x := range tenants {
					for _, y := range tenants {
						if of(x) < before[x] && before[y] > before[x] && of(y) > before[x] {
							t.Fatalf("%s lost from %d bytes, and %s keeps %d", x, before[x], y, of(y))
						}
					}
				}
			},
			"close": func(t *rapid.T) {
				tenant := rapid.SampledFrom(tenants).Draw(t, "tenant")
				for _, name := range []string{"x", "y"} {
					if x := tables[tenant+name]; x != nil {
						x.part.Close()
						x.part.Close()
						x.part.Add(100)
						delete(tables, tenant+name)
					}
				}
			},
			"": func(t *rapid.T) {
				all, counted := 0, int64(0)
				for _, x := range tenants {
					all += of(x)
					if b.Held(x) != int64(of(x)) {
						t.Fatalf("%d bytes count for %s, which holds %d", b.Held(x), x, of(x))
					}
				}
				for _, x := range b.Tables() {
					counted += x.Bytes
				}
				if all > limit || counted != int64(all) {
					t.Fatalf("%d bytes, counted %d, of %d", all, counted, limit)
				}
			},
		})
	})
}

// What is reserved is not there for others, and is counted.
func TestReserve(t *testing.T) {
	b := budget.New(100)
	b.Reserve("fixed", 60)
	x := newTable(b, "a", "x")
	for range 10 {
		x.put(10)
	}
	b.Settle()
	now := b.Tables()
	if want := (budget.Table{Bytes: 40, EvictedEntries: 6, EvictedSize: 60}); now["x"] != want {
		t.Errorf("x: %+v, want %+v", now["x"], want)
	}
	if want := (budget.Table{Bytes: 60, Reserved: true}); now["fixed"] != want {
		t.Errorf("fixed: %+v, want %+v", now["fixed"], want)
	}
}

// A tenant's tables lose in proportion: each keeps the share that it has of what is added.
func TestProportion(t *testing.T) {
	const limit, turns = 100_000, 80_000
	b := budget.New(limit)
	large, small := newTable(b, "a", "large"), newTable(b, "a", "small")
	sum := 0 // of small's bytes over the second half: at one moment alone chance may have taken more than half of them
	for i := range turns {
		large.put(90)
		small.put(10)
		b.Settle()
		if i >= turns/2 {
			sum += small.bytes()
		}
	}
	if n := sum / (turns / 2); n < limit/20 || n > limit/5 {
		t.Errorf("a tenth of what is added takes %d bytes of %d", n, limit)
	}
}

// A part that counts more than it holds does not block others.
func TestNothingToDrop(*testing.T) {
	b := budget.New(10)
	b.Part("a", "x", func() int { return 0 }).Add(20)
	b.Settle()
}

func TestConcurrentUse(t *testing.T) {
	const limit = 10_000
	b := budget.New(limit)
	var all sync.WaitGroup
	for i := range 8 {
		x := newTable(b, fmt.Sprint(i%3), fmt.Sprint(i%2))
		all.Go(func() {
			for n := range 2000 {
				x.put(n%50 + 1)
				b.Settle()
			}
		})
	}
	all.Wait()
	b.Settle()
	total := int64(0)
	for _, x := range b.Tables() {
		total += x.Bytes
	}
	if total > limit || total < limit-100 {
		t.Errorf("%d bytes of %d", total, limit)
	}
}
