package httpload

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Report is what a run measured. Times are in microseconds.
type Report struct {
	Target  string  `json:"target"`
	Load    string  `json:"load"`
	Seconds float64 `json:"seconds"`
	// Requests were due, or sent by a client, in that time. OK of them were answered completely by a status 2xx.
	Requests int     `json:"requests"`
	OK       int     `json:"ok"`
	PerSec   float64 `json:"ok_per_second"`
	Errors   []Error `json:"errors"`
	// Sent and Received count bytes of bodies; of answers that broke off what had arrived.
	Sent     int64 `json:"bytes_sent"`
	Received int64 `json:"bytes_received"`
	// Latency is to the end of complete answers, TTFT to the first text of those that were streamed.
	Latency Summary `json:"latency"`
	TTFT    Summary `json:"ttft"`
	// Late is how long after they were due requests were sent: this program's own delay, which is part of the above. Service
	// is Latency without it, from sending: less noisy, but blind to the waiting that a slow server causes here.
	Late    Summary `json:"late"`
	Service Summary `json:"service"`
}

// Error counts requests by what was wrong.
type Error struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	First string `json:"first"` // what was said of the first of them
}

// tally collects what becomes of requests. Its methods are safe for concurrent use. The zero value is empty.
type tally struct {
	mu             sync.Mutex
	latency, ttft  Histogram // guarded by mu
	late, service  Histogram // guarded by mu
	requests       int       // guarded by mu
	errors         []Error   // guarded by mu
	sent, received int64     // guarded by mu
}

// maxDetail bounds what is kept of an error's text, in bytes.
const maxDetail = 300

func (t *tally) count(due, sent, done time.Time, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late.Record(sent.Sub(due))
	t.sent += o.sent
	t.received += o.in
	if o.problem != "" {
		t.failed(o.problem, o.detail, 1)
		return
	}
	t.requests++
	t.latency.Record(done.Sub(due))
	t.service.Record(done.Sub(sent))
	if !o.first.IsZero() {
		t.ttft.Record(o.first.Sub(due))
	}
}

func (t *tally) problem(what, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed(what, detail, 1)
}

// failed counts n requests with the same problem; t.mu is held.
func (t *tally) failed(what, detail string, n int) {
	t.requests += n
	for i := range t.errors {
		if t.errors[i].What == what {
			t.errors[i].Count += n
			return
		}
	}
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
	}
	t.errors = append(t.errors, Error{What: what, Count: n, First: strings.ToValidUTF8(strings.TrimSpace(detail), "?")})
}

// add takes over what another tally has. No other goroutine may use that one any more.
func (t *tally) add(other *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latency.Add(&other.latency)
	t.ttft.Add(&other.ttft)
	t.late.Add(&other.late)
	t.service.Add(&other.service)
	t.requests += other.latency.Count()
	for _, e := range other.errors {
		t.failed(e.What, e.First, e.Count)
	}
	t.sent += other.sent
	t.received += other.received
}

// report says what was counted in a time.
func (t *tally) report(target string, load Load, span time.Duration) Report {
	return Report{
		Target: target, Load: load.String(), Seconds: span.Seconds(), Requests: t.requests, OK: t.latency.Count(),
		PerSec: float64(t.latency.Count()) / span.Seconds(), Errors: append([]Error{}, t.errors...), Sent: t.sent, Received: t.received,
		Latency: t.latency.Summary(), TTFT: t.ttft.Summary(), Late: t.late.Summary(), Service: t.service.Summary(),
	}
}

// ids makes request IDs that no other run has.
type ids struct{ prefix string }

func newIDs() ids { return ids{"bench-" + rand.Text()[:8] + "-"} }

func (x ids) of(n int) string { return x.prefix + strconv.Itoa(n) }
