package evictions

import "github.com/prometheus/client_golang/prometheus"

// collector gives the state to Prometheus. Sources are named by the configuration, so that there are not many.
type collector struct{ f *Follower }

// about is one metric of a source.
type about struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*State) float64
}

func source(name, help string, kind prometheus.ValueType, of func(*State) float64) about {
	return about{prometheus.NewDesc("ragpilot_cache_events_"+name, help, []string{"source"}, nil), kind, of}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sources() []about {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return []about{
		source("connected", "Whether there is a connection to an engine's cache events.", gauge, func(s *State) float64 { return number(s.Connected) }),
		source("complete", "Whether everything is known that the engine has published of its cache.", gauge, func(s *State) float64 { return number(s.Complete) }),
		source("batches_total", "Batches of cache events that were applied.", counter, func(s *State) float64 { return float64(s.Batches) }),
		source("events_total", "Cache events in these.", counter, func(s *State) float64 { return float64(s.Events) }),
		source("gaps_total", "Times that batches were missing, and asked for.", counter, func(s *State) float64 { return float64(s.Gaps) }),
		source("holes_total", "Batches that never came.", counter, func(s *State) float64 { return float64(s.Holes) }),
		source("restarts_total", "Times that the engine was another process.", counter, func(s *State) float64 { return float64(s.Restarts) }),
		source("clears_total", "Times that what is known of the cache was dropped.", counter, func(s *State) float64 { return float64(s.Clears) }),
		source("unread_total", "Messages and events that could not be read.", counter, func(s *State) float64 { return float64(s.Unread) }),
	}
}

var promptDesc = prometheus.NewDesc("ragpilot_cache_prompts_total",
	"Prompts to engines whose cache events are followed: learned and missing by whether their tokens came, unknown if they cannot be had, shrunk and lost by what was evicted.", []string{"state"}, nil)

// Describe implements [prometheus.Collector].
func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- promptDesc
	for _, m := range sources() {
		to <- m.desc
	}
}

// Collect implements [prometheus.Collector]. There is nothing to collect while no engine is followed.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s := c.f.Snapshot()
	if s == nil {
		return
	}
	for _, p := range []struct {
		state string
		n     uint64
	}{{"learned", s.Prompts.Learned}, {"missing", s.Prompts.Missing}, {"unknown", s.Prompts.Unknown}, {"shrunk", s.Prompts.Shrunk}, {"lost", s.Prompts.Lost}} {
		to <- prometheus.MustNewConstMetric(promptDesc, prometheus.CounterValue, float64(p.n), p.state)
	}
	told := map[string]bool{} // several publishers may connect to one source
	for i := range s.Sources {
		st := &s.Sources[i]
		if told[st.Source] {
			continue
		}
		told[st.Source] = true
		for _, m := range sources() {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(st), st.Source)
		}
	}
}
