package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
)

// Options bound a Recent. The zero value is ready.
type Options struct {
	Requests  int              // kept, newest last out; 0: DefaultRequests
	TextBytes int              // kept of each text, from its beginning; 0: texts are dropped
	Samples   int              // intervals that are kept; 0: 360
	Interval  time.Duration    // of a sample; 0: 10 s
	Now       func() time.Time // nil: time.Now
}

// What is kept of a Detail's parts, so that a client's names and lists cannot take more.
const (
	maxName   = 128 // bytes
	maxStages = 16
	maxOrders = 8
	maxOrder  = 128 // documents of an Order
)

// DefaultRequests is how many requests are kept if Options do not say.
const DefaultRequests = 200

// MaxBytes is the most that a Recent takes that keeps so many bytes of each text, and is left at the defaults otherwise.
func MaxBytes(text int) int64 {
	return DefaultRequests*(2*int64(text)+16<<10) + (1+maxEngines)*360*64
}

// Recent remembers the last requests and how the hit ratio went. It is a [Source] of all but savings and engines. Safe
// for concurrent use.
//
// Memory is bounded by Requests × (2 × TextBytes + 16 KiB) + 65 × Samples × 64 bytes, whatever is added: at the defaults
// 4.6 MiB, with 64 KiB of each text 29 MiB.
type Recent struct {
	opt   Options
	since time.Time

	mu                    sync.Mutex
	added                 int
	ring                  []Detail // the one added as number n stands at n modulo the length
	byID                  map[string]int
	samples               series
	engines               *lru.Cache[string, *watched] // by ID
	totals                Totals
	planned, held, shadow tokens // of those that were planned, held out, or in shadow mode
}

// maxEngines is how many engines have samples of their own: as many as a pilot keeps an index of.
const maxEngines = 64

// watched is what is counted of one engine.
type watched struct {
	samples series
	tokens  tokens
}

// tokens are those of requests whose answer named both.
type tokens struct{ prompt, cached int }

func (t *tokens) add(q *Request) {
	if q.PromptTokens != nil && q.CachedTokens != nil {
		t.prompt += *q.PromptTokens
		t.cached += *q.CachedTokens
	}
}

// ratio is cached of prompt tokens, nil if there are none.
func (t tokens) ratio() *float64 {
	if t.prompt <= 0 {
		return nil
	}
	return new(float64(t.cached) / float64(t.prompt))
}

// series are samples by time: the one of interval n stands at n modulo the length.
type series []slot

// slot is a Sample and the number of its interval.
type slot struct {
	n int64
	Sample
}

// NewRecent returns an empty Recent.
func NewRecent(o Options) *Recent {
	o.Requests, o.Samples = cmp.Or(max(o.Requests, 0), DefaultRequests), cmp.Or(max(o.Samples, 0), 360)
	o.Interval = cmp.Or(max(o.Interval, 0), 10*time.Second)
	o.TextBytes = max(o.TextBytes, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Recent{
		opt: o, since: o.Now(), ring: make([]Detail, 0, o.Requests),
		byID: make(map[string]int, o.Requests), samples: make(series, o.Samples), engines: lru.New[string, *watched](maxEngines),
	}
}

// Texts reports whether texts are kept, so that a server need not lay them out in vain.
func (r *Recent) Texts() bool { return r.opt.TextBytes > 0 }

// Add takes a request in when its answer has ended, and copies what it keeps of it. An ID that is empty or kept already
// gets a number behind it.
func (r *Recent) Add(d Detail) {
	d = r.clipped(d)
	now := r.opt.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.added % r.opt.Requests
	if at < len(r.ring) {
		delete(r.byID, r.ring[at].ID)
	}
	id := d.ID
	for n := r.added + 1; d.ID == "" || r.kept(d.ID); n++ {
		d.ID = fmt.Sprintf("%s~%d", id, n)
	}
	if at < len(r.ring) {
		r.ring[at] = d
	} else {
		r.ring = append(r.ring, d)
	}
	r.byID[d.ID] = at
	r.added++
	r.count(&d.Request, now)
}

// Forget drops the texts of a tenant's requests, or with a session's name of those alone, and returns of how many. Their
// figures stay.
func (r *Recent) Forget(tenant, session string) (n int) {
	tenant, session = clip(tenant, maxName), clip(session, maxName) // as they are kept
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ring {
		d := &r.ring[i]
		if d.Tenant != tenant || session != "" && d.Session != session || d.Before == nil && d.After == nil {
			continue
		}
		d.Before, d.After = nil, nil
		n++
	}
	return n
}

func (r *Recent) kept(id string) bool {
	_, ok := r.byID[id]
	return ok
}

// count adds a request to the sums.
func (r *Recent) count(q *Request, now time.Time) {
	t := &r.totals
	t.Requests++
	if q.Failed {
		t.Failed++
	}
	if !q.HeldOut || q.Shadow {
		r.samples.add(q, r.interval(now), r.opt.Interval)
	}
	switch {
	case q.Shadow: // all are sent as they came
		s := &t.Shadow
		s.Requests++
		s.LeftOut += q.LeftOut
		s.Replaced += q.Replaced
		s.CharsSaved += q.CharsSaved
		r.shadow.add(q)
	case q.HeldOut:
		t.HeldOut++
		r.held.add(q)
	default:
		r.planned.add(q)
		if q.Engine != "" {
			r.watch(q, now)
		}
	}
}

// watch adds a request to its engine's samples.
func (r *Recent) watch(q *Request, now time.Time) {
	e, ok := r.engines.Get(q.Engine)
	if !ok {
		e = &watched{samples: make(series, len(r.samples))}
		r.engines.Put(q.Engine, e)
	}
	e.samples.add(q, r.interval(now), r.opt.Interval)
	e.tokens.add(q)
}

// HitRatio returns an engine's, nil if no request of it was added that named its tokens; 64 engines are remembered.
func (r *Recent) HitRatio(engine string) *float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.engines.Get(engine)
	if !ok {
		return nil
	}
	return e.tokens.ratio()
}

// Samples returns an engine's, oldest first.
func (r *Recent) Samples(engine string) []Sample {
	last := r.interval(r.opt.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.engines.Get(engine)
	if !ok {
		return nil
	}
	return e.samples.until(last)
}

// Picture always returns false: a Recent has no index.
func (r *Recent) Picture(string) (Picture, bool) { return Picture{}, false }

// add counts a request in interval n.
func (x series) add(q *Request, n int64, interval time.Duration) {
	s := &x[n%int64(len(x))]
	if s.n != n {
		*s = slot{n: n, Sample: Sample{At: time.Unix(0, n*int64(interval)).UTC()}}
	}
	s.Requests++
	if q.PromptTokens != nil && q.CachedTokens != nil {
		s.PromptTokens += *q.PromptTokens
		s.CachedTokens += *q.CachedTokens
	}
}

// until returns the samples up to the interval last.
func (x series) until(last int64) (out []Sample) {
	for n := max(last-int64(len(x))+1, 0); n <= last; n++ {
		if s := &x[n%int64(len(x))]; s.n == n && s.Requests > 0 {
			out = append(out, s.Sample)
		}
	}
	return out
}

func (r *Recent) interval(t time.Time) int64 { return max(t.UnixNano(), 0) / int64(r.opt.Interval) }

// Data returns what is remembered. Savings are not measured, engines not known.
func (r *Recent) Data() Data {
	none := Measured(savings.Figure{})
	d := Data{
		Now: r.opt.Now(), Since: r.since, Texts: r.Texts(), Interval: r.opt.Interval.Seconds(),
		Saved: Savings{Tokens: none, Seconds: none},
	}
	r.mu.Lock()
	d.Totals = r.totals
	d.Totals.PromptTokens, d.Totals.CachedTokens = r.planned.prompt, r.planned.cached
	d.Totals.HitRatio, d.Totals.HeldOutHitRatio = r.planned.ratio(), r.held.ratio()
	d.Totals.Shadow.HitRatio = r.shadow.ratio()
	d.Samples = r.samples.until(r.interval(d.Now))
	d.Requests = make([]Request, 0, len(r.ring))
	for i := range r.ring {
		d.Requests = append(d.Requests, r.ring[(r.added-1-i)%r.opt.Requests].Request)
	}
	r.mu.Unlock()
	d.Totals.TTFT = quantiles(d.Requests)
	d.Sessions = sessions(d.Requests)
	return d
}

// Request returns a request that is still kept. What the Detail points to is shared and not to be changed.
func (r *Recent) Request(id string) (Detail, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.byID[id]
	if !ok {
		return Detail{}, false
	}
	return r.ring[at], true
}

// clipped returns a copy of what is kept of d. It shares no memory with d: a clipped text would keep the whole alive.
func (r *Recent) clipped(d Detail) Detail {
	for _, s := range []*string{&d.ID, &d.Tenant, &d.Session, &d.Path, &d.Model, &d.Engine} {
		*s = clip(*s, maxName)
	}
	d.PromptTokens, d.CachedTokens, d.Predicted = copied(d.PromptTokens), copied(d.CachedTokens), copied(d.Predicted)
	d.TTFT = copied(d.TTFT)
	d.Before, d.After = r.text(d.Before), r.text(d.After)
	stages := make([]Stage, min(len(d.Stages), maxStages))
	for i := range stages {
		stages[i] = Stage{Name: clip(d.Stages[i].Name, maxName), Seconds: d.Stages[i].Seconds}
	}
	orders := make([]Order, min(len(d.Orders), maxOrders))
	for i := range orders {
		sent := d.Orders[i].Sent
		orders[i] = Order{Where: clip(d.Orders[i].Where, maxName), Sent: slices.Concat(sent[:min(len(sent), maxOrder)])}
	}
	d.Stages, d.Orders = stages, orders
	return d
}

func (r *Recent) text(t *Text) *Text {
	if t == nil || !r.Texts() {
		return nil
	}
	return &Text{Text: clip(t.Text, r.opt.TextBytes), Bytes: max(t.Bytes, len(t.Text))}
}

// clip copies the beginning of a text, at most n bytes and no part of a character.
func clip(s string, n int) string {
	if len(s) > n {
		for range utf8.UTFMax - 1 {
			if n > 0 && !utf8.RuneStart(s[n]) {
				n--
			}
		}
		s = s[:n]
	}
	return strings.Clone(s)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// quantiles are of the nearest rank, over requests with a first byte that were not held out.
func quantiles(requests []Request) *Quantiles {
	var times []float64
	for i := range requests {
		if q := &requests[i]; q.TTFT != nil && !q.HeldOut && !q.Failed {
			times = append(times, *q.TTFT)
		}
	}
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	rank := func(p float64) float64 { return times[int(math.Ceil(p*float64(len(times))))-1] }
	return &Quantiles{P50: rank(.50), P95: rank(.95), Count: len(times)}
}

// sessions sums requests, newest first, by session.
func sessions(requests []Request) []Session {
	type key struct{ tenant, id string }
	at := map[key]int{}
	out := []Session{}
	for i := range requests {
		q := &requests[i]
		if q.Session == "" {
			continue
		}
		k := key{q.Tenant, q.Session}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, Session{ID: q.Session, Tenant: q.Tenant, Last: q.At, HeldOut: q.HeldOut})
		}
		s := &out[n]
		s.Requests++
		if q.PromptTokens != nil && q.CachedTokens != nil {
			s.PromptTokens += *q.PromptTokens
			s.CachedTokens += *q.CachedTokens
		}
	}
	return out
}
