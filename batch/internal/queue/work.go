package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

const (
	// maxAttempts is how often a subtree is tried while Do fails. Stops, deaths and an engine that is away do not count.
	maxAttempts = 5
	// syncInterval is how often a worker looks for jobs that are new, paused or cancelled.
	syncInterval = 250 * time.Millisecond
	// awayInterval is how often an engine that is away is looked for.
	awayInterval = time.Second
)

// WorkerOptions configure [Queue.Work].
type WorkerOptions struct {
	Name  string         // of this worker in River's UI; empty: "worker"
	Lanes int            // subtrees at a time, over all jobs; 0: 1
	Only  func(Job) bool // which jobs to work on; nil: all
	// Do works on a subtree. It returns nil when each request has been stored, or when Stop is closed and what was in flight has been
	// stored. See [ErrAway]; after any other error the subtree is tried again, and fails for good after some attempts.
	Do func(ctx context.Context, s Subtree) error
	// Probe is called after Do has returned [ErrAway], once a second until it returns nil; then the worker takes subtrees again. nil: it
	// does so after a second.
	Probe func(ctx context.Context) error
	// Grace is how long calls in flight have to end after ctx has ended, before their context ends; 0: 30 s.
	Grace time.Duration
}

// Subtree is work: requests of a job that share a prefix.
type Subtree struct {
	Job      Job
	Number   int
	Requests []Request // those without an answer, in their order
	// Stop is closed when no new request should be sent: the job is paused or cancelled, or the worker stops.
	Stop <-chan struct{}
	// Store returns once the answer is stored for good, and blocks as long as the database is away. It stores also when ctx has ended. The
	// first answer of a request stays; a later one is dropped.
	Store func(ctx context.Context, a Answer) error
}

// subtreeArgs are the arguments of a River job.
type subtreeArgs struct {
	Job     int64 `json:"job"`
	Subtree int   `json:"subtree"`
}

// Kind implements river.JobArgs.
func (subtreeArgs) Kind() string { return "batch_subtree" }

// worker takes subtrees. It is also what River calls for each.
type worker struct {
	river.WorkerDefaults[subtreeArgs]

	q       *Queue
	opts    WorkerOptions
	process *process
	gate    *gate
	writer  *writer
	client  riverClient
	watch   watch

	jobs    map[int64]*known // only of the goroutine of Work
	strays  map[int64]string // likewise; see compare
	lastFix time.Time        // likewise

	mu       sync.Mutex
	stopping bool               // guarded by mu
	running  map[int64]*running // guarded by mu; by River job
	alone    int64              // guarded by mu; the River job that runs alone; 0: none
	away     time.Time          // guarded by mu; when the engine was last found away; zero: it is there
}

// known is a job that this worker has seen.
type known struct {
	mine  bool // Only allows it
	added bool // River has its queue
}

// running is a subtree that runs.
type running struct {
	job  int64
	stop func() // closes Subtree.Stop
}

// Work takes subtrees of all jobs, now and later, until ctx ends, lets those in flight end, and returns nil.
func (q *Queue) Work(ctx context.Context, opts WorkerOptions) (err error) {
	if opts.Do == nil || opts.Lanes < 0 || opts.Grace < 0 {
		return errors.New("WorkerOptions: Do is needed, and Lanes and Grace are at least 0")
	}
	opts.Name, opts.Lanes, opts.Grace = cmp.Or(opts.Name, "worker"), cmp.Or(opts.Lanes, 1), cmp.Or(opts.Grace, 30*time.Second)
	w := &worker{q: q, opts: opts, gate: newGate(opts.Lanes), jobs: map[int64]*known{}, running: map[int64]*running{}}
	if w.process, err = q.enter(ctx, opts.Name); err != nil {
		if ctx.Err() != nil {
			return nil // it ended before it began
		}
		return fmt.Errorf("start a worker: %w", err)
	}
	defer w.process.leave()
	w.writer = q.newWriter(w.process.id)
	defer w.writer.stop()
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	w.client, err = q.newClient(&river.Config{
		ID: w.process.id, Workers: workers,
		JobTimeout:    -1, // the rescuer leaves such jobs alone; heartbeats say which workers are dead
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: pollInterval,
		// River starts no client without a queue. This one stays empty: the gate does not know it.
		Queues: map[string]river.QueueConfig{"batch": {MaxWorkers: 1}},
	}, w.gate)
	if err == nil {
		err = w.client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	w.loop(ctx)
	return w.shutDown()
}

// loop follows the jobs until ctx ends.
func (w *worker) loop(ctx context.Context) {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		if err := w.sync(ctx); err != nil && ctx.Err() == nil {
			w.q.log.WarnContext(ctx, "batch jobs cannot be looked at", "error", err)
		}
		w.probe(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// shutDown lets what is in flight end.
func (w *worker) shutDown() error {
	w.mu.Lock()
	w.stopping = true
	for _, r := range w.running {
		r.stop()
	}
	w.shutGate()
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.Grace)
	defer cancel()
	err := w.client.Stop(ctx)
	if err != nil {
		defer time.AfterFunc(5*time.Second, w.writer.give).Stop() // what has been answered by now is still stored, if it can be
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = w.client.StopAndCancel(ctx)
	}
	for id := range w.jobs {
		if order := w.q.reorder(ctx, id); order != nil {
			break // only less good an order
		}
	}
	if err != nil {
		return fmt.Errorf("stop a worker: %w", err)
	}
	return nil
}

// sync makes River's queues, the gate and what runs follow the states of the jobs.
func (w *worker) sync(ctx context.Context) error {
	states := map[int64]State{}
	err := each(ctx, w.q.read, func(scan func(dest ...any) error) error {
		var id int64
		var state State
		err := scan(&id, &state)
		states[id] = state
		return err
	}, "SELECT id, state FROM batch_job WHERE state IN ($1, $2)", Running, Paused)
	if err != nil {
		return err
	}
	for id := range states {
		if w.jobs[id] == nil {
			job, err := w.q.byID(ctx, id)
			if err != nil {
				return err
			}
			w.jobs[id] = &known{mine: w.opts.Only == nil || w.opts.Only(job)}
		}
	}
	var errs []error
	for id, k := range w.jobs {
		errs = append(errs, w.follow(ctx, id, k, states[id]))
	}
	w.mu.Lock()
	for _, r := range w.running {
		if states[r.job] != Running {
			r.stop()
		}
	}
	w.mu.Unlock()
	if time.Since(w.lastFix) >= w.q.heartbeat {
		w.lastFix = time.Now()
		errs = append(errs, w.watch.look(ctx, w.q), w.q.release(ctx), w.q.removeAbandoned(ctx), w.compare(ctx))
		for id, state := range states {
			if state == Running && w.jobs[id].mine {
				errs = append(errs, w.q.complete(ctx, id))
			}
		}
	}
	return errors.Join(errs...)
}

// follow adds or removes the River queue of a job.
func (w *worker) follow(ctx context.Context, id int64, k *known, state State) error {
	queue := queueName(id)
	if k.mine {
		w.gate.allow(queue, state == Running)
	}
	switch {
	case state == Running && k.mine && !k.added:
		if err := w.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: w.opts.Lanes}); err != nil {
			return errors.Join(err, w.client.Queues().Remove(ctx, queue)) // else River keeps it as it is, without starting it
		}
		k.added = true
	case state == "" && k.added: // it has ended
		if w.gate.holds(queue) > 0 {
			return nil // Remove would wait for them
		}
		if err := w.client.Queues().Remove(ctx, queue); err != nil {
			return err
		}
		delete(w.jobs, id)
	case state == "":
		delete(w.jobs, id)
	}
	return nil
}

// compare looks whether what runs here is what counts as running here.
//
// River jobs that do not run here are given back: the connection broke when they were fetched, or River could not store how they ended. One
// that is found twice, a heartbeat apart, is taken to be such. Subtrees that do not count as running here are left to others: this process
// was taken for dead, because it stood still or could not reach the database.
func (w *worker) compare(ctx context.Context) error {
	runs := w.runs()
	mine := map[int64]bool{}
	strays := map[int64]string{} // when they were taken
	err := each(ctx, w.q.read, func(scan func(dest ...any) error) error {
		var id int64
		var taken string
		if err := scan(&id, &taken); err != nil {
			return err
		}
		mine[id] = true
		if !w.gate.has(id) {
			strays[id] = taken
		}
		return nil
	}, `SELECT id, CAST(attempted_at AS TEXT) FROM river_job
		WHERE state = 'running' AND kind = $1 AND `+w.q.dialect.lastTaker+" = $2", subtreeArgs{}.Kind(), w.process.id)
	if err != nil {
		return err
	}
	for id, r := range runs {
		if !mine[id] {
			w.lose(id, r)
		}
	}
	before := w.strays
	w.strays = strays
	for id, taken := range strays {
		if before[id] != taken || w.gate.has(id) {
			continue
		}
		if _, err := w.q.write.ExecContext(ctx, `UPDATE river_job SET state = 'available',
			attempt = CASE WHEN attempt > 0 THEN attempt - 1 ELSE 0 END
			WHERE id = $1 AND state = 'running' AND `+w.q.dialect.lastTaker+` = $2 AND CAST(attempted_at AS TEXT) = $3`,
			id, w.process.id, taken); err != nil {
			return err
		}
	}
	return nil
}

// runs returns what runs now.
func (w *worker) runs() map[int64]*running {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.running)
}

// lose stops a subtree that another process has taken over. How it ends here no longer counts.
func (w *worker) lose(id int64, r *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[id] == r {
		w.gate.lose(id)
		r.stop()
	}
}

// complete ends a job that is done, and gives one that has requests without an answer, but no River jobs left, new ones: River jobs
// can be deleted or cancelled by hand.
func (q *Queue) complete(ctx context.Context, job int64) error {
	var some int
	err := q.read.QueryRowContext(ctx, `SELECT 1 FROM river_job WHERE queue = $1
		AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled') LIMIT 1`, queueName(job)).Scan(&some)
	if !isNoRows(err) {
		return err
	}
	if err := q.finish(ctx, job); err != nil {
		return err
	}
	found, err := q.byID(ctx, job)
	if err != nil || found.State != Running {
		return err
	}
	var open []subtree
	err = each(ctx, q.read, func(scan func(dest ...any) error) error {
		var s subtree
		err := scan(&s.number, &s.first, &s.last)
		open = append(open, s)
		return err
	}, `SELECT s.subtree, s.first, s.last FROM batch_subtree s WHERE s.job = $1 AND s.last - s.first + 1 >
		(SELECT COUNT(*) FROM batch_answer a WHERE a.job = s.job AND a.seq BETWEEN s.first AND s.last) ORDER BY s.subtree`, job)
	if err != nil {
		return err
	}
	return q.insertSubtrees(ctx, job, found.Name, open)
}

// probe looks for the engine if it was away.
func (w *worker) probe(ctx context.Context) {
	w.mu.Lock()
	away := w.away
	w.mu.Unlock()
	if away.IsZero() || time.Since(away) < awayInterval {
		return
	}
	if w.opts.Probe != nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if w.opts.Probe(ctx) != nil {
			w.setAway(time.Now())
			return
		}
	}
	w.setAway(time.Time{})
}

func (w *worker) setAway(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = since
	w.shutGate()
}

// shutGate shuts or opens the gate. The caller holds the lock.
func (w *worker) shutGate() { w.gate.shut(!w.away.IsZero() || w.stopping || w.alone != 0) }
