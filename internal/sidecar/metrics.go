package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

// sharedState exports what is counted of the store that replicas share.
type sharedState struct {
	stats                          func() redisorders.Stats
	operations, up, answer, latest *prometheus.Desc
}

func newSharedState(stats func() redisorders.Stats) *sharedState {
	return &sharedState{
		stats: stats,
		operations: prometheus.NewDesc("ragpilot_shared_state_operations_total",
			"Orders of documents looked up in, and written to, the state that replicas share, by how that ended: local was answered from memory; failed and skipped went on without it; ahead was answered by what had been read of other replicas before, and alone left the documents as they came.",
			[]string{"result"}, nil),
		up:     prometheus.NewDesc("ragpilot_shared_state_up", "1 while the store of shared state is asked, 0 while it is left out because it did not answer in time.", nil, nil),
		latest: prometheus.NewDesc("ragpilot_shared_state_read_ahead", "Orders of replicas that were read from the store of shared state before they are needed.", nil, nil),
		answer: prometheus.NewDesc("ragpilot_shared_state_seconds", "How long the store of shared state took for what it answered.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *sharedState) Describe(out chan<- *prometheus.Desc) {
	out <- s.operations
	out <- s.up
	out <- s.answer
	out <- s.latest
}

// Collect implements prometheus.Collector.
func (s *sharedState) Collect(out chan<- prometheus.Metric) {
	now := s.stats()
	for result, n := range map[string]uint64{
		"local": now.Local, "hit": now.Hits, "miss": now.Misses, "yielded": now.Yielded, "ahead": now.Ahead, "alone": now.Alone, "invalid": now.Invalid, "failed": now.Failures, "skipped": now.Skipped,
	} {
		out <- prometheus.MustNewConstMetric(s.operations, prometheus.CounterValue, float64(n), result)
	}
	up := 1.0
	if now.Open {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, up)
	out <- prometheus.MustNewConstMetric(s.latest, prometheus.GaugeValue, float64(now.Latest))
	buckets := make(map[float64]uint64, len(now.Latency.Buckets))
	for _, b := range now.Latency.Buckets {
		buckets[b.UpTo.Seconds()] = b.Count
	}
	out <- prometheus.MustNewConstHistogram(s.answer, now.Latency.Count, now.Latency.Sum.Seconds(), buckets)
}

// newState exports what was found damaged in state_dir.
func newState(damages func() int) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "ragpilot_state_damages_total",
		Help: "Places where the state on disk was damaged when it was opened; what stood there was lost.",
	}, func() float64 { return float64(damages()) })
}

// index exports what the pilot's index of prompts holds, and how far engines agree with it.
type index struct {
	stats                                            func() contextpilot.Stats
	requests, tokens, dropped, expected, wrong, lost *prometheus.Desc
}

func newIndex(stats func() contextpilot.Stats) *index {
	return &index{
		stats:    stats,
		requests: prometheus.NewDesc("ragpilot_index_prompts", "Prompts in the index: what the engine's cache is taken to hold.", nil, nil),
		tokens:   prometheus.NewDesc("ragpilot_index_tokens", "Tokens of the prompts in the index; what they share counts once.", nil, nil),
		dropped:  prometheus.NewDesc("ragpilot_index_dropped_total", "Prompts that left the index because it was full.", nil, nil),
		expected: prometheus.NewDesc("ragpilot_index_prefix_tokens_total", "Tokens of prompts in the engine's cache, as the index expected them and as engines reported them.", []string{"kind"}, nil),
		wrong:    prometheus.NewDesc("ragpilot_index_contradicted_total", "Answers that found clearly less in the cache than the index was sure of.", nil, nil),
		lost:     prometheus.NewDesc("ragpilot_index_shortened_total", "Prompts that such answers shortened in the index.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (x *index) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{x.requests, x.tokens, x.dropped, x.expected, x.wrong, x.lost} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (x *index) Collect(out chan<- prometheus.Metric) {
	now := x.stats()
	gauge := func(d *prometheus.Desc, n int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(x.requests, now.LiveRequests)
	gauge(x.tokens, now.IndexTokens)
	count(x.dropped, now.RequestsDropped)
	count(x.expected, now.PrefixExpected, "expected")
	count(x.expected, now.PrefixReported, "reported")
	count(x.wrong, now.Contradicted)
	count(x.lost, now.Shortened)
}
