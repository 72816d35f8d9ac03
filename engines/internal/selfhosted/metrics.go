package selfhosted

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is a reading of the server's metrics, over all of its ranks; SGLang must be started with --enable-metrics. Counters
// are in tokens, since its start; what it does not report is 0.
type Metrics struct {
	Queries int64 // prompt tokens looked up in the prefix cache; of SGLang, all prompt tokens
	Hits    int64 // of these, found there
	// ExternalQueries and ExternalHits are the same of a cache outside the engine, which is asked for the rest (vLLM).
	ExternalQueries, ExternalHits int64
	Cached                        int64 // prompt tokens taken from any cache
	Prompt, Generated             int64 // tokens of prompts and of answers
	Evicted                       int64 // tokens that the cache dropped (SGLang)
	LoadedUp                      int64 // tokens that came back from a lower tier (SGLang)

	HitRate float64 // SGLang's own, of its last batch: 0 to 1
	// Usage is the share of the cache that requests use now, of the fullest rank. It does not count what is cached and not in
	// use: 0 when the server is idle.
	Usage float64
	// Available, Evictable and Used are the tokens of the cache that are free, cached and not in use, and in use (SGLang).
	Available, Evictable, Used int64
	// HostUsed and HostTotal are the tokens of the tier in the host's memory (SGLang).
	HostUsed, HostTotal int64
	Running, Waiting    int // requests

	// PrefixCaching is vLLM's setting as it reports it, "True" or "False"; "": it does not.
	PrefixCaching string
	BlockSize     int       // tokens of a cache block (vLLM)
	Blocks        int       // cache blocks of a rank (vLLM)
	Started       time.Time // of the process: another one means that the server was restarted and its cache is empty. Zero: not reported
}

// HitRatio is the share of looked up tokens that the cache had, 0 if none was looked up.
func (m Metrics) HitRatio() float64 {
	if m.Queries == 0 {
		return 0
	}
	return float64(m.Hits) / float64(m.Queries)
}

// Samples are the samples of an answer of /metrics, in the Prometheus text format.
type Samples struct {
	families map[string]*dto.MetricFamily
}

// ParseMetrics reads the text format.
func ParseMetrics(text []byte) (Samples, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Samples{}, fmt.Errorf("metrics: %w", err)
	}
	return Samples{families}, nil
}

// Sum adds up all series of the first of the names that there is: counters of several ranks, models or processes.
func (m Samples) Sum(names ...string) (sum float64, ok bool) {
	m.each(names, func(v float64) { sum, ok = sum+v, true })
	return sum, ok
}

// Max returns the largest series of the first of the names that there is: how full the fullest rank is.
func (m Samples) Max(names ...string) (most float64, ok bool) {
	m.each(names, func(v float64) {
		if !ok || v > most {
			most, ok = v, true
		}
	})
	return most, ok
}

func (m Samples) each(names []string, f func(v float64)) {
	for _, name := range names {
		family, ok := m.families[name]
		if !ok {
			continue
		}
		for _, metric := range family.GetMetric() {
			if v, ok := value(metric); ok && !math.IsNaN(v) {
				f(v)
			}
		}
		return
	}
}

func value(m *dto.Metric) (v float64, ok bool) {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

// Count is Sum as a number of things.
func (m Samples) Count(names ...string) int64 {
	sum, _ := m.Sum(names...)
	if sum <= 0 || sum >= math.MaxInt64 {
		return 0
	}
	return int64(sum)
}

// Label returns a label of a series, "" if there is none.
func (m Samples) Label(name, label string) string {
	for _, metric := range m.families[name].GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label {
				return pair.GetValue()
			}
		}
	}
	return ""
}

// IntLabel returns a label of a series as a number, 0 if there is none.
func (m Samples) IntLabel(name, label string) int {
	n, err := strconv.Atoi(m.Label(name, label))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Started is when the server's process was started, to about 10 ms; zero if it does not say.
func (m Samples) Started() time.Time {
	at, ok := m.Max("process_start_time_seconds")
	if !ok || at <= 0 || at > 1<<40 {
		return time.Time{}
	}
	whole, part := math.Modf(at)
	return time.Unix(int64(whole), int64(part*1e9))
}
