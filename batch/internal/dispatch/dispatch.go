// Package dispatch sends requests that share prefixes to engines: what lays a prefix down goes first, the rest side by side.
//
// The calls of one [Dispatcher.Run] come in depth-first order of their shared prefixes. Requests that begin together never find each
// other's prefix in the engine's cache, so one call through each shared prefix goes first, and those that share it follow once its
// answer has begun. An engine with a prefix cache that is large enough then computes as few tokens as if the calls had been sent one
// after the other.
//
// All calls of a run go to one replica, because its cache has what they share; several runs are spread over the replicas. Runs on the
// same replica wait for each other in the same way as the calls of one do, where they share a prefix. A replica that fails gives its runs
// to others and is tried again after growing waits. How many calls a replica takes at a time is found out by trying, and kept for later
// runs.
//
// Run stores one answer for each call, or returns an error, after which the calls without an answer may be run again.
package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// Call is one request of a batch.
type Call struct {
	Seq     int             // its place in the order of execution
	Request engines.Request // what is sent
	// Choices is 0 for a call that asks for the text of one answer. For one that asks for more, such as tool calls, it is the number of
	// answers; the Text of the Answer is the list of choices then, in JSON, as the engine sent it.
	Choices int
}

// Answer is what became of a call: an answer, or a reason why there is none.
type Answer struct {
	Seq    int
	Text   string
	Finish string
	// Usage is the sum of what the engine reported for all attempts, so that earlier spending can be computed from stored answers.
	Usage    engines.Usage
	Attempts int           // calls of the engine, this one included
	Took     time.Duration // of the last attempt
	Replica  string        // that answered
	// Failure is why the request failed for good; empty: it did not.
	Failure Failure
}

// Failure is the reason why a request has no answer.
type Failure struct {
	Code    string // for programs: CodeRefused, CodeTooLarge, CodeAttempts or CodeSchema
	Message string // for people, on one line
	Status  int    // HTTP status, 0 if there was none
}

// Replica is one engine.
type Replica struct {
	Name   string
	Engine engines.Engine
}

// Defaults of [Config].
const (
	DefaultMaxConcurrency = 256
	DefaultMinShared      = 64 // bytes, about one block of 16 tokens
	DefaultAttempts       = 4
	DefaultRetryShare     = 0.1
	DefaultRetryWait      = 500 * time.Millisecond
	DefaultMaxRetryWait   = time.Minute
	DefaultSchemaRetries  = 2
	DefaultTimeout        = 15 * time.Minute
	DefaultGrace          = 30 * time.Second
	DefaultDeniedAfter    = 20
)

// Config configures a [Dispatcher]. Only Replicas is needed; zero values stand for the defaults.
type Config struct {
	// Replicas are the engines. Their own retries should be off (openai.Config.Retries -1), so that attempts are counted once.
	Replicas []Replica
	// Concurrency is the number of calls that each replica has in flight at most; 0: it is learned. With 1 calls go in their order.
	Concurrency int
	// MaxConcurrency bounds what is learned.
	MaxConcurrency int
	// MinShared is the number of bytes that a shared prefix must be longer than what is laid down already for a call to wait for it.
	// Negative: no call waits.
	MinShared int
	// Timeout bounds one attempt. Negative: no bound.
	Timeout time.Duration
	// Attempts bounds how often one request is sent when it fails in a way that may pass. How often a replica is tried that cannot be
	// reached, before it counts as away, is the same number.
	Attempts int
	// RetryShare bounds the attempts that are not the first, as a share of the answers. Beyond it one follows each RetryWait.
	RetryShare float64
	// RetryWait is the wait before the second attempt. It doubles for each further one up to MaxRetryWait, and is drawn between half
	// of that and all of it. An engine that asks for a longer wait gets it, up to an hour.
	RetryWait, MaxRetryWait time.Duration
	// Resting is called when a replica gets no calls for a time because of an error; nil: it is not. It must return soon, and call no
	// method of the Dispatcher.
	Resting func(replica string, wait time.Duration, why error)
	// DeniedAfter is how many requests a replica must refuse with the same status, before it has answered any, for its runs to stop with
	// ErrDenied: then an option that all have in common is wrong, and none of them is stored. Status 404 does so at once. Fewer requests,
	// if they are all that there are, are stored as refused. Those that are too long or filtered do not count. Negative: no number does.
	DeniedAfter int
	// Schema is a JSON schema that answers must match; empty: there is none. It is sent as response_format of type json_schema,
	// unless a request has a response_format of its own or SchemaUnsent is set.
	Schema json.RawMessage
	// SchemaUnsent keeps the schema from the engine, for one that does not take it. Answers are checked all the same.
	SchemaUnsent bool
	// SchemaRetries is how often a request is sent again whose answer does not match. Negative: never.
	SchemaRetries int
	// Prices and MaxCost bound what is spent, Spent included. MaxCost 0: there is no bound.
	Prices  Prices
	MaxCost float64
	// Spent is what was spent before, see [Prices.Cost].
	Spent float64
	// Deadline is when all answers must be there; zero: there is none. No call begins that would end later on average, and those
	// that are in flight then get Grace.
	Deadline time.Time
	// Grace is how long calls in flight may go on when the context of a run ends. Negative: not at all.
	Grace time.Duration
}

// Errors of [Dispatcher.Run]. After each of them no call was marked as failed because of it.
var (
	// ErrAway: no replica answers.
	ErrAway = errors.New("no engine answers")
	// ErrDenied: the engine refuses all requests, because the key, the model, the address or an option is wrong.
	ErrDenied = errors.New("engine denies all requests")
	// ErrBudget: the next call could cost more than what is left of Config.MaxCost.
	ErrBudget = errors.New("budget is spent")
	// ErrDeadline: the next call would not end before Config.Deadline.
	ErrDeadline = errors.New("deadline is reached")
)

func (c Config) withDefaults() (Config, error) {
	if len(c.Replicas) == 0 {
		return c, errors.New("dispatch: Config.Replicas is empty")
	}
	names := map[string]bool{}
	for i, r := range c.Replicas {
		switch {
		case r.Engine == nil:
			return c, fmt.Errorf("dispatch: Config.Replicas[%d] %q has no engine", i, r.Name)
		case names[r.Name]:
			return c, fmt.Errorf("dispatch: Config.Replicas[%d]: the name %q is there twice", i, r.Name)
		}
		names[r.Name] = true
	}
	c.Replicas = slices.Clone(c.Replicas)
	setDefault(&c.MaxConcurrency, DefaultMaxConcurrency)
	setDefault(&c.MinShared, DefaultMinShared)
	setDefault(&c.Attempts, DefaultAttempts)
	setDefault(&c.RetryShare, DefaultRetryShare)
	setDefault(&c.RetryWait, DefaultRetryWait)
	setDefault(&c.MaxRetryWait, max(DefaultMaxRetryWait, c.RetryWait))
	setDefault(&c.SchemaRetries, DefaultSchemaRetries)
	setDefault(&c.Timeout, DefaultTimeout)
	setDefault(&c.Grace, DefaultGrace)
	setDefault(&c.DeniedAfter, DefaultDeniedAfter)
	for _, f := range []struct {
		name  string
		value float64
		least float64
	}{
		{"Concurrency", float64(c.Concurrency), 0},
		{"MaxConcurrency", float64(c.MaxConcurrency), 1},
		{"Attempts", float64(c.Attempts), 1},
		{"RetryShare", c.RetryShare, 0},
		{"RetryWait", c.RetryWait.Seconds(), 0},
		{"MaxRetryWait", c.MaxRetryWait.Seconds(), c.RetryWait.Seconds()},
		{"MaxCost", c.MaxCost, 0},
		{"Spent", c.Spent, 0},
		{"Prices.Input", c.Prices.Input, 0},
		{"Prices.Cached", c.Prices.Cached, 0},
		{"Prices.Output", c.Prices.Output, 0},
	} {
		if !(f.value >= f.least) { // also not a number
			return c, fmt.Errorf("dispatch: Config.%s %g: must be at least %g", f.name, f.value, f.least)
		}
	}
	if c.MaxCost > 0 && c.Prices == (Prices{}) {
		return c, fmt.Errorf("dispatch: Config.MaxCost %g needs Prices", c.MaxCost)
	}
	return c, nil
}

func setDefault[T int | float64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// Dispatcher sends calls to replicas. Safe for concurrent use. It needs no closing: when no Run is under way, nothing of it is.
type Dispatcher struct {
	config Config
	schema *schema // nil: there is none

	mu       sync.Mutex
	replicas []*replica // the slice never changes
	paused   bool
	storing  int // answers on their way to their stores
	purse    purse
	retries  bucket
	mean     mean // time of answers, in seconds
	timer    *time.Timer
	due      time.Time // when the timer wakes; zero: it does not
}

// New returns a Dispatcher. An error names the field of Config and its value.
func New(c Config) (*Dispatcher, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{config: c, purse: purse{prices: c.Prices, most: c.MaxCost, spent: c.Spent}}
	if len(c.Schema) > 0 {
		if d.schema, err = newSchema(c.Schema); err != nil {
			return nil, fmt.Errorf("dispatch: Config.Schema: %w", err)
		}
	}
	d.retries = newBucket(c.RetryShare, c.RetryWait)
	for _, r := range c.Replicas {
		d.replicas = append(d.replicas, &replica{Replica: r, limiter: newLimiter(c.Concurrency, c.MaxConcurrency)})
	}
	return d, nil
}

// Run sends the calls, which are in depth-first order of their prefixes, and stores one answer for each. It returns when all are stored,
// or with the first of these errors once no call is in flight any more:
//
//   - that of store: no new call begins, and answers of those in flight are still given to store;
//   - that of ctx: calls in flight get Config.Grace to end, and those that do are stored;
//   - [ErrAway], [ErrDenied], [ErrBudget], [ErrDeadline], wrapped with the cause.
//
// An answer is given to store once. store is called by several goroutines at a time, with a context that does not end with ctx.
func (d *Dispatcher) Run(ctx context.Context, calls []Call, store func(context.Context, Answer) error) error {
	if err := ctx.Err(); err != nil || len(calls) == 0 {
		return err
	}
	r := newRun(ctx, d, calls, store)
	defer r.cancel(nil)
	d.mu.Lock()
	d.begin(r)
	d.mu.Unlock()
	defer context.AfterFunc(ctx, func() { d.interrupt(r, context.Cause(ctx)) })()
	<-r.over
	return r.err
}

// Pause keeps new calls from beginning until [Dispatcher.Resume]. Those in flight go on, and runs wait.
func (d *Dispatcher) Pause() { d.setPaused(true) }

// Resume ends a pause.
func (d *Dispatcher) Resume() { d.setPaused(false) }

func (d *Dispatcher) setPaused(paused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = paused
	d.pump()
}
