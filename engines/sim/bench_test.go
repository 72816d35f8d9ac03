package sim_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// passage is about 130 tokens, as the passages of a question-answering trace are.
func passage(n int) string {
	return fmt.Sprintf("<doc p%d>\n%s</doc>\n", n, strings.Repeat(fmt.Sprintf("Passage %d speaks of the river and its bridges. ", n), 12))
}

// retrieval asks for k passages out of many, the first half of them the same for neighbouring i.
func retrieval(i, k int, passages []string) engines.Request {
	var b strings.Builder
	for j := range k {
		n := i/8 + j
		if j >= k/2 {
			n = i*7 + j*13
		}
		b.WriteString(passages[n%len(passages)])
	}
	fmt.Fprintf(&b, "Question: %d?", i)
	return engines.Request{ID: fmt.Sprint(i), Messages: []engines.Message{{Role: engines.User, Content: b.String()}}}
}

func passages() []string {
	all := make([]string, 500)
	for i := range all {
		all[i] = passage(i)
	}
	return all
}

func requests(k int) []engines.Request {
	all := passages()
	out := make([]engines.Request, 256)
	for i := range out {
		out[i] = retrieval(i, k, all)
	}
	return out
}

func BenchmarkGenerate(b *testing.B) {
	for _, k := range []int{5, 15, 100} {
		for _, capacity := range []int{0, 200_000} {
			name := fmt.Sprintf("k=%d,unlimited", k)
			if capacity > 0 {
				name = fmt.Sprintf("k=%d,capacity=%d", k, capacity)
			}
			b.Run(name, func(b *testing.B) {
				all := requests(k)
				e := sim.New(sim.Options{CapacityTokens: capacity})
				defer e.Subscribe(func(...contextpilot.Event) {})()
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if _, err := e.Generate(b.Context(), all[i%len(all)], nil); err != nil {
						b.Fatal(err)
					}
					i++
				}
				s := e.Stats()
				b.ReportMetric(float64(s.PromptTokens)/float64(s.Requests), "tokens/op")
				b.ReportMetric(s.HitRatio(), "hit-ratio")
			})
		}
	}
}

func BenchmarkGenerateParallel(b *testing.B) {
	all := requests(15)
	e := sim.New(sim.Options{CapacityTokens: 200_000})
	defer e.Subscribe(func(...contextpilot.Event) {})()
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.Generate(b.Context(), all[int(next.Add(1))%len(all)], nil); err != nil {
				b.Error(err)
			}
		}
	})
}
