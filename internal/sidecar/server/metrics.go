package server

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics counts what the server does. Every label has a bounded number of values. Safe for concurrent use.
type Metrics struct {
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	panics       prometheus.Counter
	authFailures *prometheus.CounterVec
	reloads      *prometheus.CounterVec
	noRoom       prometheus.Counter
	stalled      prometheus.Counter
	limited      *prometheus.CounterVec
}

// NewRegistry returns a registry with metrics of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NewMetrics enters its metrics into a registry, and fails if they are in it already: one server, one registry.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ragpilot_http_requests_total",
			Help: "Requests answered. Code is the status, or aborted if the answer broke off.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ragpilot_http_request_seconds",
			Help: "Time from the end of a request's headers to the end of its answer, streams included.",
			// From planning (under a millisecond) to long generations.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ragpilot_http_requests_in_flight",
			Help: "Requests that are being answered.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ragpilot_http_panics_total",
			Help: "Panics of handlers. Each is a bug, and in the log.",
		}),
		authFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ragpilot_http_auth_failures_total",
			Help: "Requests refused because their key was missing or wrong.",
		}, []string{"reason"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ragpilot_config_reloads_total",
			Help: "Reloads of the configuration, by whether they were taken over or refused.",
		}, []string{"result"}),
		noRoom: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ragpilot_http_bodies_refused_total",
			Help: "Request bodies answered 503 because others took limits.in_flight_bytes.",
		}),
		stalled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ragpilot_http_answers_stalled_total",
			Help: "Answers that were broken off because the client took none of them for timeouts.write.",
		}),
	}
	m.limited = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ragpilot_http_limited_total",
		Help: "Connections closed because of limits.connections, and requests answered 429 because of the limits of their key.",
	}, []string{"limit"})
	var err error
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.panics, m.authFailures, m.reloads, m.noRoom, m.stalled, m.limited} {
		err = errors.Join(err, reg.Register(c))
	}
	// Counters that stand at 0 before their first event: an alert on an increase sees that event.
	for _, reason := range []string{"missing", "wrong"} {
		m.authFailures.WithLabelValues(reason)
	}
	for _, limit := range []string{"connections", "requests"} {
		m.limited.WithLabelValues(limit)
	}
	for _, result := range []string{"taken", "refused"} {
		m.reloads.WithLabelValues(result)
	}
	return m, err
}

// Began is called when a request's headers were read; Ended must follow.
func (m *Metrics) Began() { m.inFlight.Inc() }

// Ended is called when an answer ended. Route is one of [Route], code the status, 0 if the answer broke off.
func (m *Metrics) Ended(route string, code int, took time.Duration) {
	label := "aborted"
	if code >= 100 && code <= 599 {
		label = strconv.Itoa(code)
	} else if code != 0 {
		label = "other" // of an engine that makes up its own
	}
	m.inFlight.Dec()
	m.requests.WithLabelValues(route, label).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// Panicked is called when a handler panicked.
func (m *Metrics) Panicked() { m.panics.Inc() }

// KeyMissing is called when a request was refused because it had no key.
func (m *Metrics) KeyMissing() { m.authFailures.WithLabelValues("missing").Inc() }

// KeyWrong is called when a request was refused because its key is none of ours.
func (m *Metrics) KeyWrong() { m.authFailures.WithLabelValues("wrong").Inc() }

// Reloaded is called after a reload; err is why it was refused, nil if it was taken over.
func (m *Metrics) Reloaded(err error) {
	result := "taken"
	if err != nil {
		result = "refused"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// NoRoom is called when a body was refused because all bodies together are too large.
func (m *Metrics) NoRoom() { m.noRoom.Inc() }

// Stalled is called when an answer was broken off because its client did not take it.
func (m *Metrics) Stalled() { m.stalled.Inc() }

// NoConnection is called when a connection was closed because there are too many.
func (m *Metrics) NoConnection() { m.limited.WithLabelValues("connections").Inc() }

// OverQuota is called when a request was refused because of the limits of its key.
func (m *Metrics) OverQuota() { m.limited.WithLabelValues("requests").Inc() }

// bodyGauge shows how many bytes of bodies are in memory.
func bodyGauge(used func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ragpilot_http_body_bytes_in_flight",
		Help: "Bytes of request bodies that are in memory, see limits.in_flight_bytes.",
	}, func() float64 { return float64(used()) })
}
