// Package metrics makes Prometheus metrics and enters them in a registry: a [Set] makes what is counted as it happens, [Read] what
// is read when somebody asks.
//
//	set := metrics.NewSet(registry)
//	requests := set.Counters("ragpilot_http_requests_total", "Requests answered.", "code")
//	if err := set.Err(); err != nil { … } // one of them is in the registry already
package metrics

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Set makes metrics and enters each in a registry. Not safe for concurrent use; the metrics are.
type Set struct {
	registry prometheus.Registerer
	err      error
}

// NewSet returns a Set without metrics.
func NewSet(registry prometheus.Registerer) *Set { return &Set{registry: registry} }

// Err returns why metrics could not be entered, nil if all were.
func (s *Set) Err() error { return s.err }

// Enter enters a collector.
func (s *Set) Enter(c prometheus.Collector) { s.err = errors.Join(s.err, s.registry.Register(c)) }

// Counter makes a counter.
func (s *Set) Counter(name, help string) prometheus.Counter {
	return entered(s, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// Counters makes counters that differ in their labels.
func (s *Set) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return entered(s, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// Gauge makes a gauge.
func (s *Set) Gauge(name, help string) prometheus.Gauge {
	return entered(s, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

// Histograms makes histograms that differ in their labels.
func (s *Set) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return entered(s, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

func entered[C prometheus.Collector](s *Set, c C) C {
	s.Enter(c)
	return c
}

// Read makes a metric whose value is read when somebody asks: a counter if its name ends in _total, otherwise a gauge. label is
// the name and the value of its label, if it has one.
func Read[N int | int64 | uint64 | float64](s *Set, name, help string, value func() N, label ...string) {
	var labels prometheus.Labels
	if len(label) == 2 {
		labels = prometheus.Labels{label[0]: label[1]}
	}
	read := func() float64 { return float64(value()) }
	if strings.HasSuffix(name, "_total") {
		s.Enter(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, read))
		return
	}
	s.Enter(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
}
