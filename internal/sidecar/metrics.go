package sidecar

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
	"github.com/ragpilot/ragpilot/memory"
)

// indexMetrics are about what the pilot's index of prompts holds, and how far engines agree with it.
func indexMetrics(set *metrics.Set, stats func() contextpilot.Stats) {
	const expected = "ragpilot_index_prefix_tokens_total"
	const help = "Tokens of prompts in the engine's cache, as the index expected them and as engines reported them."
	metrics.Read(set, "ragpilot_index_prompts", "Prompts in the index: what the engine's cache is taken to hold.",
		func() int64 { return stats().LiveRequests })
	metrics.Read(set, "ragpilot_index_tokens", "Tokens of the prompts in the index; what they share counts once.",
		func() int64 { return stats().IndexTokens })
	metrics.Read(set, "ragpilot_index_dropped_total", "Prompts that left the index because it was full.",
		func() int64 { return stats().RequestsDropped })
	metrics.Read(set, expected, help, func() int64 { return stats().PrefixExpected }, "kind", "expected")
	metrics.Read(set, expected, help, func() int64 { return stats().PrefixReported }, "kind", "reported")
	metrics.Read(set, "ragpilot_index_contradicted_total", "Answers that found clearly less in the cache than the index was sure of.",
		func() int64 { return stats().Contradicted })
	metrics.Read(set, "ragpilot_index_shortened_total", "Prompts that such answers shortened in the index.",
		func() int64 { return stats().Shortened })
}

// sharedSeconds is about how long the store that replicas share took; what it returns counts one answer.
func sharedSeconds(set *metrics.Set) (took func(time.Duration)) {
	seconds := set.Histograms("ragpilot_shared_state_seconds", "How long the store of shared state took for what it answered.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}).WithLabelValues()
	return func(d time.Duration) { seconds.Observe(d.Seconds()) }
}

// sharedMetrics are about the store that replicas share.
func sharedMetrics(set *metrics.Set, stats func() redisorders.Stats) {
	for result, n := range map[string]func(redisorders.Stats) uint64{
		"local":   func(s redisorders.Stats) uint64 { return s.Local },
		"hit":     func(s redisorders.Stats) uint64 { return s.Hits },
		"miss":    func(s redisorders.Stats) uint64 { return s.Misses },
		"yielded": func(s redisorders.Stats) uint64 { return s.Yielded },
		"ahead":   func(s redisorders.Stats) uint64 { return s.Ahead },
		"alone":   func(s redisorders.Stats) uint64 { return s.Alone },
		"invalid": func(s redisorders.Stats) uint64 { return s.Invalid },
		"failed":  func(s redisorders.Stats) uint64 { return s.Failures },
		"skipped": func(s redisorders.Stats) uint64 { return s.Skipped },
	} {
		metrics.Read(set, "ragpilot_shared_state_operations_total",
			"Orders of documents looked up in, and written to, the state that replicas share, by how that ended: local was answered from "+
				"memory; failed and skipped went on without it; ahead was answered by what had been read of other replicas before, and "+
				"alone left the documents as they came.",
			func() uint64 { return n(stats()) }, "result", result)
	}
	metrics.Read(set, "ragpilot_shared_state_up",
		"1 while the store of shared state is asked, 0 while it is left out because it did not answer in time.",
		func() int {
			if stats().Open {
				return 0
			}
			return 1
		})
	metrics.Read(set, "ragpilot_shared_state_read_ahead",
		"Orders of replicas that were read from the store of shared state before they are needed.", func() int { return stats().Latest })
}

// remembered exports what counts in the budget.
type remembered struct {
	indexes                               *memory.Indexes // nil: there are none
	budget                                *budget.Budget
	limit, bytes, evicted, evictedEntries *prometheus.Desc
}

func newRemembered(b *budget.Budget, indexes *memory.Indexes) *remembered {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &remembered{
		budget: b, indexes: indexes,
		limit: desc("ragpilot_memory_limit_bytes", "The most that is remembered, in all tables together (limits.memory_bytes)."),
		bytes: desc("ragpilot_memory_bytes", "What is remembered, by table. Of scopes, history, recent, figures, cloud_cache and memory_stores "+
			"it is the share that is set aside for them.", "table"),
		evicted:        desc("ragpilot_memory_evicted_bytes_total", "What tables have lost because the memory was full.", "table"),
		evictedEntries: desc("ragpilot_memory_evicted_total", "Entries that tables have lost because the memory was full.", "table"),
	}
}

// Describe implements prometheus.Collector.
func (m *remembered) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.limit, m.bytes, m.evicted, m.evictedEntries} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *remembered) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(m.budget.Limit()))
	for name, t := range m.budget.Tables() {
		if name == indexTable {
			t.Bytes = m.indexes.Bytes()
		}
		out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(t.Bytes), name)
		if !t.Reserved {
			out <- prometheus.MustNewConstMetric(m.evicted, prometheus.CounterValue, float64(t.EvictedSize), name)
			out <- prometheus.MustNewConstMetric(m.evictedEntries, prometheus.CounterValue, float64(t.EvictedEntries), name)
		}
	}
}
