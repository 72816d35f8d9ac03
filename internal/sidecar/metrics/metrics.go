// Package metrics makes Prometheus metrics and enters them in a registry: a [Set] for what is counted as it happens, a [Table]
// for what is read when somebody asks.
//
//	set := metrics.NewSet(registry)
//	requests := set.Counters("ragpilot_requests_total", "Requests answered.", "code")
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

// Table is a collector that reads all its values from one state. Read is called once for all rows.
type Table[T any] struct {
	Read func() T
	Rows []Row[T]
}

// Row is one value: a counter if its name ends in _total, otherwise a gauge. Label and LabelValue are empty for a metric of one
// value.
type Row[T any] struct {
	Name, Help        string
	Label, LabelValue string
	Value             func(T) float64
}

func (r *Row[T]) desc() *prometheus.Desc {
	var labels prometheus.Labels
	if r.Label != "" {
		labels = prometheus.Labels{r.Label: r.LabelValue}
	}
	return prometheus.NewDesc(r.Name, r.Help, nil, labels)
}

func (r *Row[T]) kind() prometheus.ValueType {
	if strings.HasSuffix(r.Name, "_total") {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Describe implements [prometheus.Collector].
func (t Table[T]) Describe(out chan<- *prometheus.Desc) {
	for i := range t.Rows {
		out <- t.Rows[i].desc()
	}
}

// Collect implements [prometheus.Collector].
func (t Table[T]) Collect(out chan<- prometheus.Metric) {
	now := t.Read()
	for i := range t.Rows {
		r := &t.Rows[i]
		out <- prometheus.MustNewConstMetric(r.desc(), r.kind(), r.Value(now))
	}
}
