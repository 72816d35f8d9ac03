package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// outcome is how an attempt ended.
type outcome struct {
	response engines.Response
	err      error
	mismatch string // why the answer does not match the schema; empty: it does
	took     time.Duration
}

// attempt sends a call once, and stores the answer if there is one.
func (d *Dispatcher) attempt(r *run, x *item, rep *replica) {
	began := time.Now()
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if d.config.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, d.config.Timeout)
	}
	begun := false
	var o outcome
	o.response, o.err = rep.Engine.Generate(ctx, d.request(x), func(piece string) error {
		if !begun && piece != "" {
			begun = true
			d.begins(r, x, rep)
		}
		return nil
	})
	if o.err != nil && ctx.Err() != nil && r.ctx.Err() == nil {
		o.err = fmt.Errorf("%w: no whole answer after %v: %w", os.ErrDeadlineExceeded, d.config.Timeout, o.err)
	}
	cancel()
	if o.err == nil && x.call.Choices > 0 {
		o.response.Text = string(o.response.Choices)
		if o.response.Text == "" {
			o.err = fmt.Errorf("%w: more is asked for than the text of one answer, which is all that %s gives", engines.ErrRefused, rep.Name)
		}
	}
	o.response.Usage = bounded(o.response.Usage)
	if o.err == nil && d.schema != nil {
		o.mismatch = d.schema.check(o.response.Text)
	}
	o.took = time.Since(began)
	if answer, ok := d.ended(r, x, rep, o); ok {
		d.keep(r, x, answer)
	}
}

// keep stores an answer.
func (d *Dispatcher) keep(r *run, x *item, answer Answer) {
	err := r.store(r.storeCtx, answer)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.storing--
	r.flying--
	r.left--
	d.judge(r.replica)
	if err != nil {
		d.stop(r, fmt.Errorf("dispatch: store the answer to request %d: %w", x.call.Seq, err))
	}
	d.settle(r)
	d.pump()
}

// request returns what is sent for a call.
func (d *Dispatcher) request(x *item) engines.Request {
	req := x.call.Request
	if x.call.Choices > 0 {
		req.Extra = maps.Clone(req.Extra)
		req.Extra["stream"], req.Extra["stream_options"] = json.RawMessage("false"), nil
		return req
	}
	if d.schema == nil || d.config.SchemaUnsent || len(req.Extra["response_format"]) > 0 {
		return req
	}
	req.Extra = maps.Clone(req.Extra)
	if req.Extra == nil {
		req.Extra = map[string]json.RawMessage{}
	}
	req.Extra["response_format"] = d.schema.format
	return req
}

// begins notes that an answer has begun, so its prompt is computed.
func (d *Dispatcher) begins(r *run, x *item, rep *replica) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x.begun = true
	rep.came(x, true)
	if x.epoch == r.epoch {
		r.tree.laid(x)
	}
	d.pump()
}

// ended takes over how an attempt ended. It returns the answer to store, if the call is done.
func (d *Dispatcher) ended(r *run, x *item, rep *replica, o outcome) (answer Answer, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	rep.flying--
	rep.came(x, o.err == nil)
	x.usage = sum(x.usage, o.response.Usage)
	d.purse.pay(x, o.response.Usage, o.err == nil || errors.Is(o.err, engines.ErrInterrupted))
	answer = Answer{
		Seq: x.call.Seq, Text: o.response.Text, Finish: o.response.Finish, Usage: x.usage, Attempts: x.attempts,
		Took: o.took, Replica: rep.Name,
	}
	switch {
	case o.err == nil:
		d.answered(r, x, rep, o, now)
		if o.mismatch != "" {
			rep.stats.count(KindSchema)
			if r.err == nil && x.schema < d.config.SchemaRetries && o.response.Finish != "length" {
				x.schema++
				d.again(r, x, now)
				return Answer{}, false
			}
			answer.Failure = Failure{Code: CodeSchema, Message: shorten(d.whyMismatch(o))}
		}
	case r.ctx.Err() != nil:
		d.stop(r, context.Cause(r.ctx))
		d.again(r, x, now)
		return Answer{}, false
	default:
		f := classify(o.err)
		if f.page() && d.doubted(rep) {
			f.kind, f.code = KindDenied, ""
		}
		rep.stats.count(f.kind)
		answer.Failure = d.failed(r, x, rep, f, now)
		if answer.Failure.Code == "" || d.refused(r, x, rep, f, answer, now) {
			return Answer{}, false
		}
	}
	r.tree.finish(x)
	d.storing++
	d.pump()
	return answer, true
}

func (d *Dispatcher) whyMismatch(o outcome) string {
	if o.response.Finish == "length" {
		return "the answer was cut off at its limit: " + o.mismatch
	}
	return o.mismatch
}

// answered notes an answer.
func (d *Dispatcher) answered(r *run, x *item, rep *replica, o outcome, now time.Time) {
	u := o.response.Usage
	rep.answered()
	rep.limiter.answered(now, float64(1+u.PromptTokens-u.CachedTokens+u.OutputTokens), o.took)
	d.retries.answered()
	d.mean.add(o.took.Seconds())
	rep.stats.Answers++
	d.release(rep)
	rep.stats.PromptTokens += u.PromptTokens
	rep.stats.CachedTokens += u.CachedTokens
	rep.stats.OutputTokens += u.OutputTokens
	if x.epoch == r.epoch {
		r.hops = 0
		r.tree.laid(x)
	}
}

// again puts a call back to be sent again at some time.
func (d *Dispatcher) again(r *run, x *item, due time.Time) {
	r.flying--
	d.later(r, x, due)
	d.settle(r)
	d.pump()
}

// failed decides what follows a failed attempt: a Failure with a code if the call is done with.
func (d *Dispatcher) failed(r *run, x *item, rep *replica, f fault, now time.Time) Failure {
	switch f.kind {
	case KindRefused:
		rep.answered() // it works
		return f.failure(f.code)
	case KindDenied:
		d.stop(r, fmt.Errorf("%w: %w", ErrDenied, f.err))
		d.again(r, x, now)
		return Failure{}
	case KindBusy, KindUnreachable:
		rep.failed(d, now, x, f)
		d.again(r, x, rep.rest)
		d.escape(rep, f, now)
		return Failure{}
	case KindTimeout:
		rep.slow(now, x)
	}
	if rep.suspect(x) {
		rep.failed(d, now, x, f)
		d.again(r, x, rep.rest)
		d.escape(rep, f, now)
		return Failure{}
	}
	if x.failures++; x.failures >= d.config.Attempts {
		return f.failure(CodeAttempts)
	}
	d.again(r, x, now.Add(max(d.backoff(x.failures), f.after)))
	return Failure{}
}

// slow notes an answer that did not come in time. Calls that began before the last such answer say nothing new.
func (r *replica) slow(now time.Time, x *item) {
	if x.round == r.round {
		r.round++
		x.round = r.round
		r.limiter.refused(now)
	}
}

// escape moves the runs of a failing replica to others, or stops them if there is none left to try.
func (d *Dispatcher) escape(rep *replica, f fault, now time.Time) {
	away := rep.away(&d.config)
	if f.kind == KindBusy && !away {
		return
	}
	for _, r := range slices.Clone(rep.runs) {
		if r.err != nil {
			continue
		}
		to := d.refuge(rep, r, away, now)
		switch {
		case to != nil:
			d.move(r, to)
		case away:
			d.stop(r, fmt.Errorf("%w: %w", ErrAway, f.err))
		}
	}
	d.pump()
}

// refuge returns the replica to which a run goes, nil if there is none better.
func (d *Dispatcher) refuge(from *replica, r *run, away bool, now time.Time) *replica {
	if r.hops >= 2*len(d.replicas) {
		return nil
	}
	var best *replica
	for _, rep := range d.replicas {
		works := rep.fails == 0 && !now.Before(rep.rest)
		worth := away && (!rep.away(&d.config) || !now.Before(rep.rest))
		if rep != from && (works || worth) && (best == nil || rep.burden(now) < best.burden(now)) {
			best = rep
		}
	}
	return best
}

// move gives a run to another replica, which has none of its prefixes.
func (d *Dispatcher) move(r *run, to *replica) {
	from := r.replica
	from.drop(r)
	r.replica = to
	to.add(r)
	r.epoch++
	r.hops++
	for _, x := range r.delayed {
		if x.failures+x.schema == 0 {
			x.due = time.Time{} // it waited for the old one
		}
	}
	r.tree.unlay()
	d.judge(from)
}

// maxTokens bounds what one attempt is taken to have used of a kind of tokens. The sums over any job then fit an int64.
const maxTokens = math.MaxInt32

// bounded returns a usage that can be: an engine may report anything.
func bounded(u engines.Usage) engines.Usage {
	u.PromptTokens = max(0, min(u.PromptTokens, maxTokens))
	u.OutputTokens = max(0, min(u.OutputTokens, maxTokens))
	u.CachedTokens = max(0, min(u.CachedTokens, u.PromptTokens))
	return u
}

// sum adds the usage of two attempts.
func sum(a, b engines.Usage) engines.Usage {
	switch none := (engines.Usage{}); {
	case a == none:
		return b
	case b == none:
		return a
	}
	return engines.Usage{
		PromptTokens: a.PromptTokens + b.PromptTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CachedTokens: a.CachedTokens + b.CachedTokens, CachedKnown: a.CachedKnown && b.CachedKnown,
	}
}
