package compat_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // of what was waiting to be finalised
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What is counted is what is held, and when it is too much the oldest goes, of this tenant alone.
func TestWeights(t *testing.T) {
	batch := func(i, n int) object {
		contexts := make([][]string, 10)
		for j := range contexts {
			for k := range n {
				contexts[j] = append(contexts[j], fmt.Sprint("doc", i, j, k))
			}
		}
		return object{"contexts": contexts}
	}
	for name, c := range map[string]struct {
		path  string
		times int
		body  func(i int) object
	}{
		"index":          {"/reorder", 200, func(i int) object { return batch(i, 10) }},
		"short contexts": {"/reorder", 400, func(i int) object { return batch(i, 1) }},
		"histories": {"/deduplicate", 400, func(i int) object {
			x := batch(i, 10)
			x["parent_request_ids"] = make([]*string,
				10)
			return x
		}},
		"short histories": {"/deduplicate", 800, func(i int) object {
			x := batch(i, 1)
			x["parent_request_ids"] = make([]*string,
				10)
			return x
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(1 << 30)
			api := compat.New(compat.Options{Memory: b})
			do(t, api, c.path, c.body(-1))
			first, counted := heap(), b.Held("")
			for i := range c.times {
				do(t, api, c.path, c.body(i))
			}
			grown, said := heap()-first, b.Held("")-counted
			ratio := float64(grown) / float64(said)
			t.Logf("%d bytes of heap, %d counted: %.2f", grown, said, ratio)
			if ratio > 1.3 || ratio < .5 {
				t.Errorf("%d bytes of heap, %d counted: %.2f, %+v", grown, said, ratio, api.Sizes(""))
			}
			runtime.KeepAlive(api)
		})
	}
}

// A tenant that sends much loses what it sent first, and costs another nothing.
func TestBudget(t *testing.T) {
	const limit = 200_000
	b := budget.New(limit)
	api := compat.New(compat.Options{Memory: b})
	body := func(i int) object {
		return object{"contexts": [][]string{{fmt.Sprint("a", i), fmt.Sprint("b", i)}}, "deduplicate": true}
	}
	ids := func(tenant string, i int) []string {
		code, out, _ := ask(t.Context(), t, api, tenant, "/reorder", body(i))
		check(t, "status", 200, code)
		return out.RequestIDs
	}
	quiet := ids("quiet", 0)
	first := ids("noisy", 0)
	var last []string
	for i := range 1000 {
		last = ids("noisy", i+1)
		api.RecordTTFT("noisy", time.Second, 0)
		if held := b.Held("quiet") + b.Held("noisy"); held > limit {
			t.Fatalf("%d bytes are counted of %d", held, limit)
		}
	}
	for _, c := range []struct {
		tenant   string
		id, gone []string
	}{{"quiet", quiet, nil}, {"noisy", first, first}, {"noisy", last, nil}} {
		_, out, _ := ask(t.Context(), t, api, c.tenant, "/evict", object{"request_ids": c.id})
		check(t, c.tenant, len(c.gone), len(out.NotFound))
	}
	api.Forget("noisy")
	check(t, "bytes of a tenant that is forgotten", 0, int(b.Held("noisy")))
}
