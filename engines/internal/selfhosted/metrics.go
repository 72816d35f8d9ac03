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

// Metrics is a reading of a server's /metrics, in the Prometheus text format.
type Metrics struct {
	families map[string]*dto.MetricFamily
}

// ParseMetrics reads the text format.
func ParseMetrics(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Metrics{}, fmt.Errorf("metrics: %w", err)
	}
	return Metrics{families}, nil
}

// Sum adds up all series of the first of the names that there is: counters of several ranks, models or processes.
func (m Metrics) Sum(names ...string) (sum float64, ok bool) {
	m.each(names, func(v float64) { sum, ok = sum+v, true })
	return sum, ok
}

// Max returns the largest series of the first of the names that there is: how full the fullest rank is.
func (m Metrics) Max(names ...string) (most float64, ok bool) {
	m.each(names, func(v float64) {
		if !ok || v > most {
			most, ok = v, true
		}
	})
	return most, ok
}

func (m Metrics) each(names []string, f func(v float64)) {
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
func (m Metrics) Count(names ...string) int64 {
	sum, _ := m.Sum(names...)
	if sum <= 0 || sum >= math.MaxInt64 {
		return 0
	}
	return int64(sum)
}

// Label returns a label of a series, "" if there is none.
func (m Metrics) Label(name, label string) string {
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
func (m Metrics) IntLabel(name, label string) int {
	n, err := strconv.Atoi(m.Label(name, label))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Started is when the server's process was started, to about 10 ms; zero if it does not say.
func (m Metrics) Started() time.Time {
	at, ok := m.Max("process_start_time_seconds")
	if !ok || at <= 0 || at > 1<<40 {
		return time.Time{}
	}
	whole, part := math.Modf(at)
	return time.Unix(int64(whole), int64(part*1e9))
}
