package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ragpilot/ragpilot/internal/sidecar/metrics"
)

// counters count what the server does. Every label has a bounded number of values.
type counters struct {
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	inFlight    prometheus.Gauge
	panics      prometheus.Counter
	keyMissing  prometheus.Counter
	keyWrong    prometheus.Counter
	reloads     *prometheus.CounterVec
	noRoom      prometheus.Counter // bodies refused because all bodies together are too large
	stalled     prometheus.Counter // answers broken off because their clients did not take them
	connections prometheus.Counter // closed because there are too many
	overQuota   prometheus.Counter // requests refused because of the limits of their key
}

// NewRegistry returns a registry with metrics of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// newCounters enters the metrics in a registry, and fails if they are in it already: one server, one registry. bodyBytes returns
// how many bytes of bodies are in memory.
func newCounters(reg prometheus.Registerer, bodyBytes func() int64) (*counters, error) {
	set := metrics.NewSet(reg)
	authFailures := set.Counters("ragpilot_http_auth_failures_total", "Requests refused because their key was missing or wrong.", "reason")
	limited := set.Counters("ragpilot_http_limited_total",
		"Connections closed because of limits.connections, and requests answered 429 because of the limits of their key.", "limit")
	c := &counters{
		requests: set.Counters("ragpilot_http_requests_total",
			"Requests answered. Code is the status, or aborted if the answer broke off.", "route", "code"),
		seconds: set.Histograms("ragpilot_http_request_seconds",
			"Time from the end of a request's headers to the end of its answer, streams included.",
			// From planning (under a millisecond) to long generations.
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}, "route"),
		inFlight: set.Gauge("ragpilot_http_requests_in_flight", "Requests that are being answered."),
		panics:   set.Counter("ragpilot_http_panics_total", "Panics of handlers. Each is a bug, and in the log."),
		reloads: set.Counters("ragpilot_config_reloads_total",
			"Reloads of the configuration, by whether they were taken over or refused.", "result"),
		noRoom: set.Counter("ragpilot_http_bodies_refused_total",
			"Request bodies answered 503 because others took limits.in_flight_bytes."),
		stalled: set.Counter("ragpilot_http_answers_stalled_total",
			"Answers that were broken off because the client took none of them for timeouts.write."),
		// Counters that stand at 0 before their first event: an alert on an increase sees that event.
		keyMissing: authFailures.WithLabelValues("missing"), keyWrong: authFailures.WithLabelValues("wrong"),
		connections: limited.WithLabelValues("connections"), overQuota: limited.WithLabelValues("requests"),
	}
	for _, result := range []string{"taken", "refused"} {
		c.reloads.WithLabelValues(result)
	}
	metrics.Read(set, "ragpilot_http_body_bytes_in_flight",
		"Bytes of request bodies that are in memory, see limits.in_flight_bytes.", bodyBytes)
	return c, set.Err()
}

// ended counts an answer that ended. Route is one of [Route], code the status, 0 if the answer broke off.
func (c *counters) ended(route string, code int, took time.Duration) {
	label := "aborted"
	if code >= 100 && code <= 599 {
		label = strconv.Itoa(code)
	} else if code != 0 {
		label = "other" // of an engine that makes up its own
	}
	c.inFlight.Dec()
	c.requests.WithLabelValues(route, label).Inc()
	c.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// reloaded counts a reload; err is why it was refused, nil if it was taken over.
func (c *counters) reloaded(err error) {
	result := "taken"
	if err != nil {
		result = "refused"
	}
	c.reloads.WithLabelValues(result).Inc()
}
