package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// counter enters the counter of spans into a registry.
func counter(reg prometheus.Registerer) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ragpilot_trace_spans_total",
		Help: "Spans recorded, by what became of them: exported, failed (the collector did not take the batch, or not all of it), or " +
			"dropped (the queue was full).",
	}, []string{"result"})
	for _, result := range []string{"exported", "failed", "dropped"} { // they stand at 0 before their first event
		c.WithLabelValues(result)
	}
	if reg == nil {
		return c, nil
	}
	return c, reg.Register(c)
}

// queue stands in front of OpenTelemetry's batches, which drop what is too much without a report. Spans that wait
// there are part of those counted here, so there is always room for what is let through.
type queue struct {
	sdktrace.SpanProcessor
	waiting atomic.Int64 // ended and not yet sent
	closed  atomic.Bool
	dropped prometheus.Counter
}

func newQueue(spans *prometheus.CounterVec) *queue {
	return &queue{dropped: spans.WithLabelValues("dropped")}
}

// OnEnd takes a span, or drops it. It does not wait.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > QueueSpans || q.closed.Load() {
		q.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// quiet is the time between two lines in the log about lost spans.
const quiet = 10 * time.Minute

// maxError cuts the text of an exporter's error, which may quote the collector's whole answer, in bytes.
const maxError = 300

// exporter counts what another one does and keeps its errors from OpenTelemetry, which would write them to standard
// error. ExportSpans is called by one goroutine at a time.
type exporter struct {
	next             sdktrace.SpanExporter
	queue            *queue
	exported, failed prometheus.Counter
	log              *slog.Logger
	now              func() time.Time
	running          context.Context // ends when what is under way is to be given up
	cancel           context.CancelFunc
	ended            chan struct{} // closed by Shutdown, the last call
	once             sync.Once

	mu struct {
		sync.Mutex
		lost   int // spans, since the last line in the log
		logged time.Time
	}
}

func newExporter(o Options, q *queue, spans *prometheus.CounterVec) *exporter {
	e := &exporter{
		next: o.Exporter, queue: q, log: o.Log, now: o.Now, ended: make(chan struct{}),
		exported: spans.WithLabelValues("exported"), failed: spans.WithLabelValues("failed"),
	}
	e.running, e.cancel = context.WithCancel(context.Background())
	return e
}

// ExportSpans sends a batch. It returns nil: what failed is counted and logged here.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.running, cancel)()
	err := e.next.ExportSpans(ctx, spans)
	e.queue.waiting.Add(-int64(len(spans)))
	if err == nil {
		e.exported.Add(float64(len(spans)))
		return nil
	}
	e.failed.Add(float64(len(spans)))
	e.lost(len(spans), err)
	return nil
}

// lost logs that spans are lost, unless it did a short time ago.
func (e *exporter) lost(spans int, err error) {
	e.mu.Lock()
	e.mu.lost += spans
	now, all := e.now(), e.mu.lost
	say := e.mu.logged.IsZero() || now.Sub(e.mu.logged) >= quiet
	if say {
		e.mu.logged, e.mu.lost = now, 0
	}
	e.mu.Unlock()
	if !say {
		return
	}
	text := err.Error()
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	e.log.Warn("traces are lost, answers go on", "spans", all, "error", text)
}

// Shutdown closes the other one.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer e.once.Do(func() { close(e.ended) })
	return e.next.Shutdown(ctx)
}
