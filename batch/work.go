package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/engines"
)

// Replica is an engine under a name.
type Replica = dispatch.Replica

// WorkOptions configure [Jobs.Work]. Only Replicas is needed.
type WorkOptions struct {
	// Replicas are the engines that answer. A subtree of requests that share a prefix stays on one of them, and moves if it fails. Their own
	// retries should be off (openai.Config.Retries -1), so that attempts are counted once.
	Replicas []Replica
	// Concurrency is the number of requests that each replica has in flight; 0: it is found out by trying.
	Concurrency int
	// Name is that of the worker in River's UI; empty: "worker".
	Name string
	// Only are the IDs of the jobs to work on; empty: all.
	Only []int64
	// Prices and MaxCost bound what is spent on a job, over all its workers; MaxCost 0: there is no bound. The job is then paused. Each
	// worker looks at what others have spent when it begins a subtree.
	Prices  Prices
	MaxCost float64
	// Deadline is when a job that is not finished is paused; zero: never.
	Deadline time.Time
	// KeepGoing marks rows as failed although an engine has refused the first ones alike and answered none. Otherwise the job is then paused,
	// because the key, the model or an option is probably wrong.
	KeepGoing bool
	// Timeout bounds one attempt of a request; 0: 15 minutes.
	Timeout time.Duration
	// SchemaUnsent keeps schemas from engines that do not take them. Answers are checked all the same.
	SchemaUnsent bool
	// Probe returns nil if an engine can be reached. It is called once a second while none can; nil: a request is tried.
	Probe func(ctx context.Context) error
}

// Work sends the requests of jobs to engines, and stores the answers, until ctx ends. Those in flight then have 30 seconds to end; Work
// returns nil. It may run in any number of processes. Several jobs share a worker evenly.
//
// A job that cannot go on, because its engine denies all requests or its money or time is spent, is paused with the reason.
func (j *Jobs) Work(ctx context.Context, o WorkOptions) error {
	w := &worker{jobs: j, options: o, dispatchers: map[int64]*jobWorker{}, given: map[subtree]int{}}
	if _, err := dispatch.New(w.config(&spec{}, 0)); err != nil { // names what is wrong with the options
		return err
	}
	options := queue.WorkerOptions{Name: o.Name, Lanes: lanes(len(o.Replicas), o.Concurrency), Do: w.do, Probe: o.Probe}
	if len(o.Only) > 0 {
		only := map[int64]bool{}
		for _, id := range o.Only {
			only[id] = true
		}
		options.Only = func(job queue.Job) bool { return only[job.ID] }
	}
	return j.queue.Work(ctx, options)
}

// lanes returns how many subtrees are under way at a time: one for each replica that has one request in flight, so that the order of the
// plan is kept; else enough that the end of one does not leave a replica idle.
func lanes(replicas, concurrency int) int {
	const (
		perLane  = 64     // requests in flight that one subtree keeps busy
		maxLanes = 10_000 // River takes no more
	)
	switch concurrency {
	case 0:
		return 2 * replicas
	case 1:
		return replicas
	}
	return min(replicas*(2+(concurrency-1)/perLane), maxLanes)
}

// worker answers subtrees.
type worker struct {
	jobs    *Jobs
	options WorkOptions

	mu          sync.Mutex
	dispatchers map[int64]*jobWorker // guarded by mu; by job
	given       map[subtree]int      // guarded by mu; how often a subtree was given up although an engine is well
}

// subtree names a subtree of a job.
type subtree struct {
	job    int64
	number int
}

// maxGiven is how often a subtree is given up although an engine is well, before its requests are taken to be the cause.
const maxGiven = 3

// maxDispatchers bounds the jobs of which a worker keeps what it has learned.
const maxDispatchers = 64

// jobWorker answers the subtrees of one job.
type jobWorker struct {
	spec       *spec
	dispatcher *dispatch.Dispatcher
}

func (w *worker) config(s *spec, spent float64) dispatch.Config {
	o := &w.options
	deniedAfter := 0 // the default
	if o.KeepGoing {
		deniedAfter = -1
	}
	return dispatch.Config{
		Replicas: o.Replicas, Concurrency: o.Concurrency, Timeout: o.Timeout, Schema: s.Schema, SchemaUnsent: o.SchemaUnsent,
		Prices: dispatch.Prices(o.Prices), MaxCost: o.MaxCost, Spent: spent, Deadline: o.Deadline,
		DeniedAfter: deniedAfter, Resting: w.resting,
	}
}

// longRest is the shortest wait for an engine that is logged.
const longRest = 10 * time.Second

// resting logs that an engine gets no requests for a time that users notice.
func (w *worker) resting(replica string, wait time.Duration, why error) {
	if wait >= longRest {
		w.jobs.log.Warn("the engine gets no requests for a time", "engine", replica, "wait", wait.Round(time.Second), "error", why)
	}
}

// of returns what answers the subtrees of a job.
func (w *worker) of(ctx context.Context, job *queue.Job) (*jobWorker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.dispatchers[job.ID]
	if x == nil {
		s, err := readSpec(job.Spec)
		if err != nil {
			return nil, err
		}
		x = &jobWorker{spec: s}
		if x.dispatcher, err = dispatch.New(w.config(s, 0)); err != nil {
			return nil, err
		}
		if len(w.dispatchers) >= maxDispatchers { // of the oldest job, which has probably ended; else it learns again
			delete(w.dispatchers, slices.Min(slices.Collect(maps.Keys(w.dispatchers))))
		}
		w.dispatchers[job.ID] = x
	}
	if w.options.MaxCost > 0 {
		p, err := w.jobs.queue.Progress(ctx, job.ID)
		if err != nil {
			return nil, err
		}
		x.dispatcher.Spend(w.options.Prices.Cost(p.PromptTokens, p.CachedTokens, p.OutputTokens))
	}
	return x, nil
}

// errStopped ends the runs of a job that is paused or cancelled, or of a worker that stops.
var errStopped = errors.New("the job is stopped")

// do answers the requests of a subtree.
func (w *worker) do(ctx context.Context, s queue.Subtree) error {
	x, err := w.of(ctx, &s.Job)
	if err != nil {
		return err
	}
	calls := make([]dispatch.Call, len(s.Requests))
	for i, r := range s.Requests {
		calls[i].Seq = r.Seq
		if calls[i].Request, err = x.spec.request(r.Text, r.Body); err != nil {
			return fmt.Errorf("request %d: %w", r.Seq, err)
		}
		calls[i].Choices = choicesAsked(calls[i].Request.Extra)
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.Stop:
			cancel(errStopped)
		case <-ended:
		}
	}()
	left := &unanswered{open: map[int]bool{}}
	for _, r := range s.Requests {
		left.open[r.Seq] = true
	}
	err = x.dispatcher.Run(run, calls, func(ctx context.Context, a dispatch.Answer) error {
		err := s.Store(ctx, stored(&a))
		if err == nil {
			left.answered(a.Seq)
		}
		return err
	})
	switch {
	case err == nil, errors.Is(err, errStopped):
		return nil
	case errors.Is(err, dispatch.ErrAway):
		return w.givenUp(ctx, &s, calls[0].Request.Model, left, err)
	case errors.Is(err, dispatch.ErrDenied), errors.Is(err, dispatch.ErrBudget), errors.Is(err, dispatch.ErrDeadline):
		return w.pause(ctx, &s, err)
	}
	return err
}

// unanswered are the requests of a subtree that have no answer yet.
type unanswered struct {
	mu   sync.Mutex
	open map[int]bool // guarded by mu; by Seq
}

func (u *unanswered) answered(seq int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, seq)
}

// givenUp returns what is to be done about a subtree of which no engine answers the rest: another worker or a later time, or, if an engine
// is well and it was so before, that these requests have failed.
func (w *worker) givenUp(ctx context.Context, s *queue.Subtree, model string, left *unanswered, why error) error {
	away := fmt.Errorf("%w: %w", queue.ErrAway, why)
	if !w.well(ctx, model) {
		return away
	}
	name := subtree{s.Job.ID, s.Number}
	w.mu.Lock()
	w.given[name]++
	n := w.given[name]
	if n >= maxGiven {
		delete(w.given, name)
	}
	w.mu.Unlock()
	if n < maxGiven {
		return away
	}
	for _, seq := range slices.Sorted(maps.Keys(left.open)) {
		failure := queue.Failure{Code: dispatch.CodeAttempts, Message: why.Error()}
		if err := s.Store(ctx, queue.Answer{Seq: seq, Failure: failure}); err != nil {
			return err
		}
	}
	return nil
}

// well reports whether an engine answers a request that has nothing of a table in it.
func (w *worker) well(ctx context.Context, model string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hello := engines.Request{Model: model, MaxTokens: 1, Messages: []engines.Message{{Role: engines.User, Content: "Hello."}}}
	return slices.ContainsFunc(w.options.Replicas, func(r Replica) bool {
		_, err := r.Engine.Generate(ctx, hello, nil)
		return err == nil
	})
}

// pause pauses a job that cannot go on, and returns when the worker has noticed that.
func (w *worker) pause(ctx context.Context, s *queue.Subtree, why error) error {
	if err := w.jobs.queue.Pause(ctx, s.Job.ID, why.Error()); err != nil && !errors.Is(err, queue.ErrState) {
		return errors.Join(why, err)
	}
	w.mu.Lock()
	delete(w.dispatchers, s.Job.ID) // its bounds are looked at again when the job is resumed
	w.mu.Unlock()
	select {
	case <-s.Stop:
		return nil
	case <-ctx.Done():
		return nil
	}
}

// stored returns an answer as the queue has it.
func stored(a *dispatch.Answer) queue.Answer {
	return queue.Answer{
		Seq: a.Seq, Text: a.Text, Finish: a.Finish, Usage: a.Usage, Attempts: a.Attempts, Took: a.Took, Replica: a.Replica,
		Failure: queue.Failure(a.Failure),
	}
}
