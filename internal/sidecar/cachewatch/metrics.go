package cachewatch

import "github.com/prometheus/client_golang/prometheus"

// collector gives the state to Prometheus. Sources are named by the configuration, so that there are not many.
type collector struct{ f *Follower }

func source(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ragpilot_cache_events_"+name, help, []string{"source"}, nil)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	connectedDesc = source("connected", "Whether there is a connection to an engine's cache events.")
	completeDesc  = source("complete", "Whether everything is known that the engine has published of its cache.")
)

// sourceCounters are in the order of counters.
var sourceCounters = [len(counters{})]*prometheus.Desc{
	source("batches_total", "Batches of cache events that were applied."),
	source("events_total", "Cache events in these."),
	source("gaps_total", "Times that batches were missing, and asked for."),
	source("holes_total", "Batches that never came."),
	source("restarts_total", "Times that the engine was another process."),
	source("clears_total", "Times that what is known of the cache was dropped."),
	source("unread_total", "Messages and events that could not be read."),
}

var promptDesc = prometheus.NewDesc("ragpilot_cache_prompts_total",
	"Prompts to engines whose cache events are followed: learned and missing by whether their tokens came, unknown if they cannot be "+
		"had, shrunk and lost by what was evicted.", []string{"state"}, nil)

// Describe implements [prometheus.Collector].
func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- promptDesc
	to <- connectedDesc
	to <- completeDesc
	for _, d := range sourceCounters {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. There is nothing to collect while no engine is followed.
func (c collector) Collect(to chan<- prometheus.Metric) {
	g := c.f.now.Load()
	if g == nil {
		return
	}
	now := c.f.prompts()
	for _, p := range []struct {
		state string
		n     uint64
	}{{"learned", now.Learned}, {"missing", now.Missing}, {"unknown", now.Unknown}, {"shrunk", now.Shrunk}, {"lost", now.Lost}} {
		to <- prometheus.MustNewConstMetric(promptDesc, prometheus.CounterValue, float64(p.n), p.state)
	}
	seen := map[string]bool{}
	for _, fl := range g.fleets {
		for _, e := range fl.engines {
			for _, t := range e.totals() {
				if !seen[t.source] {
					seen[t.source] = true
					t.collect(to)
				}
			}
		}
	}
}

func (t *total) collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(connectedDesc, prometheus.GaugeValue, number(t.connected), t.source)
	to <- prometheus.MustNewConstMetric(completeDesc, prometheus.GaugeValue, number(t.complete), t.source)
	for i, d := range sourceCounters {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(t.counters[i]), t.source)
	}
}
