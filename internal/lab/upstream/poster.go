package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Defaults of [PosterOptions].
const (
	DefaultQueue       = 1 << 16
	DefaultBatch       = 256
	DefaultPostRetries = 3
)

const (
	firstWait   = 100 * time.Millisecond // before a call is repeated for the first time; it doubles each time
	postTimeout = 2 * time.Second        // for one call
)

// PosterOptions configures a [Poster]. Only URL is needed.
type PosterOptions struct {
	// URL is the sidecar's root; /evict is added to it.
	URL string
	// Client sends; nil: [http.DefaultClient].
	Client *http.Client
	// Queue is how many evictions wait at most; more are dropped. Batch is how many go into one call.
	Queue, Batch int
	// Retries is how often a call is repeated that did not arrive or was answered by 429 or 5xx. 0:
	// [DefaultPostRetries]; negative: never.
	Retries int
	// Log gets a warning for what is dropped; nil: none.
	Log *slog.Logger
}

// PosterStats counts evictions.
type PosterStats struct {
	Posted     int64 // in calls that were answered by 2xx
	Calls      int64 // answered by 2xx
	Overflowed int64 // dropped because the queue was full
	Failed     int64 // dropped because their call failed, or one before when Run was to end
}

// Poster sends evictions to a sidecar. Add may be called by any goroutine and never blocks; Run sends.
type Poster struct {
	options PosterOptions
	queue   chan Eviction

	posted, calls, overflowed, failed atomic.Int64
}

// NewPoster returns a Poster. It sends nothing before Run is called.
func NewPoster(options PosterOptions) *Poster {
	options.URL = strings.TrimRight(options.URL, "/") + "/evict"
	if options.Client == nil {
		options.Client = http.DefaultClient
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Queue = cmp.Or(max(options.Queue, 0), DefaultQueue)
	options.Batch = cmp.Or(max(options.Batch, 0), DefaultBatch)
	options.Retries = cmp.Or(options.Retries, DefaultPostRetries)
	return &Poster{options: options, queue: make(chan Eviction, options.Queue)}
}

// Add queues evictions. It is what [Options].Evict wants.
func (p *Poster) Add(lost ...Eviction) {
	for _, e := range lost {
		select {
		case p.queue <- e:
		default:
			p.overflowed.Add(1)
		}
	}
}

// Stats returns the counts so far.
func (p *Poster) Stats() PosterStats {
	return PosterStats{p.posted.Load(), p.calls.Load(), p.overflowed.Load(), p.failed.Load()}
}

// Run sends what is queued, in order, until ctx ends. What is then left is sent too, until a first call fails. Call it once.
func (p *Poster) Run(ctx context.Context) {
	logged := int64(0) // overflows
	for ctx.Err() == nil {
		select {
		case e := <-p.queue:
			p.deliver(ctx, p.fill(e))
		case <-ctx.Done():
		}
		if n := p.overflowed.Load(); n > logged {
			p.options.Log.Warn("evictions dropped, queue full", "count", n-logged)
			logged = n
		}
	}
	for {
		select {
		case e := <-p.queue:
			if !p.deliver(ctx, p.fill(e)) {
				p.failed.Add(int64(len(p.queue)))
				return
			}
		default:
			return
		}
	}
}

// deliver sends a batch and counts it. It returns whether it arrived.
func (p *Poster) deliver(ctx context.Context, batch []Eviction) bool {
	if err := p.send(ctx, batch); err != nil {
		p.failed.Add(int64(len(batch)))
		p.options.Log.Warn("evictions dropped", "count", len(batch), "err", err)
		return false
	}
	p.posted.Add(int64(len(batch)))
	p.calls.Add(1)
	return true
}

// fill takes from the queue what goes into one call with the first.
func (p *Poster) fill(first Eviction) []Eviction {
	batch := append(make([]Eviction, 0, p.options.Batch), first)
	for len(batch) < p.options.Batch {
		select {
		case e := <-p.queue:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// send posts a batch, again if there is hope and ctx has not ended. A call that was begun is not cut off.
func (p *Poster) send(ctx context.Context, batch []Eviction) error {
	body := evictBody(batch)
	wait := firstWait
	for n := 0; ; n++ {
		again, err := p.post(context.WithoutCancel(ctx), body)
		if err == nil || !again || n >= p.options.Retries {
			return err
		}
		if !pause.For(ctx, wait) {
			return err
		}
		wait *= 2
	}
}

// post makes one call; again says whether a failed one is worth repeating.
func (p *Poster) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.options.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := p.options.Client.Do(r)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<20) // so that the connection can be used again
	if code := response.StatusCode; code/100 != 2 {
		return code >= 500 || code == http.StatusTooManyRequests, fmt.Errorf("status %d", code)
	}
	return false, nil
}

// evictBody renders a call. Each request is named once, with the last that is known of it.
func evictBody(batch []Eviction) []byte {
	type prefix struct {
		Request  string `json:"request_id"`
		Resident int    `json:"resident_tokens"`
	}
	last := make(map[string]int, len(batch))
	for i, e := range batch {
		last[e.Request] = i
	}
	body := struct {
		Requests []string `json:"request_ids"`
		Prefixes []prefix `json:"prefixes,omitempty"`
	}{Requests: []string{}}
	for i, e := range batch {
		switch {
		case last[e.Request] != i:
		case e.ResidentTokens > 0:
			body.Prefixes = append(body.Prefixes, prefix{e.Request, e.ResidentTokens})
		default:
			body.Requests = append(body.Requests, e.Request)
		}
	}
	data, _ := json.Marshal(body) // which cannot fail
	return data
}
