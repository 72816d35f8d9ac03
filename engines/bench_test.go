package engines_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// contexts draws sets of k blocks of about 800 bytes by Zipf's law.
func contexts(n, k int) [][]contextpilot.Block {
	all := make([]contextpilot.Block, 20_000)
	for i := range all {
		all[i] = contextpilot.Block{
			ID: fmt.Sprintf("doc%d#0", i), Text: strings.Repeat(fmt.Sprintf("Sentence %d of a passage. ", i), 30),
			Tokens: 200,
		}
	}
	return testkit.Zipf(all, n, k)
}

// fleetOf returns a router whose replicas have so many live contexts together, and keep that number.
func fleetOf(b *testing.B, replicas, live int, sets [][]contextpilot.Block) *engines.Router {
	pilot, err := contextpilot.New(contextpilot.Config{MaxRequests: live / replicas})
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for i := range replicas {
		names = append(names, fmt.Sprint(i))
	}
	r, _ := newRouter(b, engines.RouterOptions{Pilot: pilot}, names...)
	for i := range live {
		serve(b, r, contextpilot.Request{Blocks: sets[i]})
	}
	return r
}

// Route with 15 blocks and 10,000 live contexts in all replicas together.
func BenchmarkRoute(b *testing.B) {
	const live = 10_000
	sets := contexts(live+1000, 15)
	for _, replicas := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("k=15/live=%d/replicas=%d", live, replicas), func(b *testing.B) {
			r := fleetOf(b, replicas, live, sets)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				serve(b, r, contextpilot.Request{Blocks: sets[live+i%1000]})
				i++
			}
		})
	}
}

func BenchmarkRouteParallel(b *testing.B) {
	const live = 10_000
	sets := contexts(live+1000, 15)
	for _, replicas := range []int{2, 8} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			r := fleetOf(b, replicas, live, sets)
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					serve(b, r, contextpilot.Request{Blocks: sets[live+int(next.Add(1)%1000)]})
				}
			})
		})
	}
}
