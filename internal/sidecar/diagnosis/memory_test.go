package diagnosis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/diagnosis"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestMemoryIsBounded: whatever is sent, the heap grows by no more than was allowed, and half as much again for what the estimate leaves
// out.
func TestMemoryIsBounded(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	const limit = 8 << 20
	for name, c := range map[string]struct {
		prompts, words, tenants int
		keep                    bool
	}{
		"long prompts of one tenant":       {400, 8000, 1, false},
		"short prompts of many tenants":    {20_000, 30, 2000, false},
		"prompts of a few, texts are kept": {1500, 1000, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			m := newMisses(t, diagnosis.Options{Bytes: limit, KeepTexts: c.keep, Share: 1})
			before := heap()
			for i := range c.prompts {
				var text strings.Builder
				for range c.words {
					fmt.Fprintf(&text, "w%d ", random.IntN(1<<30))
				}
				raw, _ := json.Marshal(map[string]any{"model": "m", "messages": []map[string]any{{"role": "user", "content": text.String()}}})
				pass(m, fmt.Sprint("tenant", i%c.tenants), raw, nil)
				m.Wait()
			}
			if d := m.Data(); d.Compared != c.prompts {
				t.Fatalf("%d compared, %d dropped", d.Compared, d.Dropped)
			}
			grown := heap() - before
			t.Logf("%d KiB", grown>>10)
			if grown > limit*3/2 {
				t.Errorf("the heap has grown by %d KiB of %d", grown>>10, limit>>10)
			}
			if grown < limit/8 {
				t.Errorf("the heap has grown by %d KiB: the test shows nothing", grown>>10)
			}
			runtime.KeepAlive(m)
		})
	}
}

// heap is what is reachable.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
