package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/batch/table"
)

// Causes that callers can distinguish with errors.Is.
var (
	ErrNotFound = queue.ErrNotFound // no job has this name
	ErrExists   = queue.ErrExists   // a job has this name already
	ErrState    = queue.ErrState    // the job is in a state that does not allow this
)

// State is what a job is doing.
type State = queue.State

// The states of a job.
const (
	Loading   = queue.Loading   // its requests are being stored
	Running   = queue.Running   // workers may take its requests
	Paused    = queue.Paused    // no new request is sent until it is resumed
	Cancelled = queue.Cancelled // no new request is sent; answers stay
	Finished  = queue.Finished  // every row has an answer or a failure
	Failed    = queue.Failed    // given up; answers stay
)

// Job is a table of which each row gets an answer.
type Job struct {
	ID      int64
	Name    string
	State   State
	Reason  string // why it is paused, cancelled or failed
	Created time.Time
	Ended   time.Time // zero: it has not
	Counts
	Rows, Requests int // of the whole job; rows with the same prompt share a request

	spec json.RawMessage
}

// Counts are sums over the answers of a job.
type Counts struct {
	Done, Failed            int // requests with an answer, and with a failure
	RowsDone, RowsFailed    int
	PromptTokens            int64
	CachedTokens            int64 // of PromptTokens, from the prefix caches of engines
	OutputTokens            int64
	Attempts                int64               // calls of engines
	FirstAnswer, LastAnswer time.Time           // zero: there is none
	Engines                 map[string]Answered // by the engine that answered
}

// Answered are the answers of one engine.
type Answered struct {
	Rows                                     int
	PromptTokens, CachedTokens, OutputTokens int64
}

// Jobs is a database of jobs: an SQLite file, or PostgreSQL for workers on many machines. It is safe for concurrent use.
type Jobs struct {
	queue *queue.Queue
	log   *slog.Logger
}

// OpenOptions configure [Open]; the zero OpenOptions are the usual ones.
type OpenOptions struct {
	Logger *slog.Logger // nil: nothing is logged
}

// Open opens a database of jobs, and makes its tables if they are missing. source is the path of an SQLite file, which is made if it is
// not there, or "postgres://...". Prompts and answers are stored in it. Errors never hold a password.
func Open(ctx context.Context, source string, o OpenOptions) (*Jobs, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	q, err := queue.Open(ctx, source, queue.Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &Jobs{queue: q, log: o.Logger}, nil
}

// Close closes the database. Workers must have ended.
func (j *Jobs) Close() error { return j.queue.Close() }

// AddOptions configure [Jobs.Add]; the zero AddOptions are the usual ones.
type AddOptions struct {
	Tokenize Tokenize // counts the tokens of the report; nil: they are estimated
	// BlockSize is how many tokens a block of the engine's cache has. Only whole blocks are reused, which the report takes into account
	// where it counts tokens. Less than 1: each token is reused by itself.
	BlockSize int
	// TextOnly: the engines give no more than the text of one answer, as those in this process do. A line of an OpenAI batch file that
	// asks for more (tools, several choices, log probabilities) is an error then, and not a row that fails.
	TextOnly bool
	TempDir  string // for temporary files of the size of the table; empty: the system's
	// Report is called before the job is stored; an error of it ends Add. nil: it is not called.
	Report func(Report) error
}

// Add plans a task for a table and stores it as a job of this name, which workers then take. All of the table is read and checked
// before: errors name the place and the value. A job that is there and asks the same of the same table is returned as it is; one that asks
// another thing is [ErrExists].
func (j *Jobs) Add(ctx context.Context, name string, t *table.Table, task Task, o AddOptions) (Job, error) {
	p, err := describe(ctx, t, &task)
	if err != nil {
		return Job{}, err
	}
	job, err := j.add(ctx, name, p, o)
	return job, errors.Join(err, p.Close())
}

func (j *Jobs) add(ctx context.Context, name string, p *prepared, o AddOptions) (Job, error) {
	raw, err := json.Marshal(p.spec)
	if err != nil {
		return Job{}, err
	}
	switch found, err := j.Job(ctx, name); {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return Job{}, err
	case sameSpec(found.spec, raw):
		return found, nil
	default:
		return Job{}, fmt.Errorf("job %q: %w, for another table or with another prompt", name, ErrExists)
	}
	p.textOnly = o.TextOnly
	if err := p.arrange(ctx, o.TempDir); err != nil {
		return Job{}, err
	}
	if o.Report != nil {
		report, err := p.report(ctx, &o)
		if err == nil {
			err = o.Report(report)
		}
		if err != nil {
			return Job{}, err
		}
	}
	created, err := j.queue.Create(ctx, queue.NewJob{Name: name, Spec: raw}, p.requests())
	if err != nil {
		return Job{}, err
	}
	return j.withCounts(ctx, created)
}

// Preview plans a task for a table and says what it will cost. Nothing is stored, and no request is sent.
func Preview(ctx context.Context, t *table.Table, task Task, o AddOptions) (Report, error) {
	p, err := describe(ctx, t, &task)
	if err != nil {
		return Report{}, err
	}
	var report Report
	p.textOnly = o.TextOnly
	if err = p.arrange(ctx, o.TempDir); err == nil {
		report, err = p.report(ctx, &o)
	}
	return report, errors.Join(err, p.Close())
}

// Job returns a job by its name, or by its ID as a decimal number.
func (j *Jobs) Job(ctx context.Context, name string) (Job, error) {
	found, err := j.queue.Job(ctx, name)
	if err != nil {
		return Job{}, err
	}
	return j.withCounts(ctx, found)
}

// List returns all jobs, the oldest first.
func (j *Jobs) List(ctx context.Context) ([]Job, error) {
	found, err := j.queue.Jobs(ctx)
	jobs := make([]Job, 0, len(found))
	for _, one := range found {
		job, err := j.withCounts(ctx, one)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, err
}

func (j *Jobs) withCounts(ctx context.Context, q queue.Job) (Job, error) {
	job := Job{
		ID: q.ID, Name: q.Name, State: q.State, Reason: q.Reason, Created: q.Created, Ended: q.Ended, Rows: q.Rows, Requests: q.Requests,
		spec: q.Spec,
	}
	p, err := j.queue.Progress(ctx, q.ID)
	if err != nil {
		return job, err
	}
	job.Counts = Counts{
		Done: p.Done, Failed: p.Failed, RowsDone: p.RowsDone, RowsFailed: p.RowsFailed, PromptTokens: p.PromptTokens,
		CachedTokens: p.CachedTokens, OutputTokens: p.OutputTokens, Attempts: p.Attempts, FirstAnswer: p.FirstAnswer,
		LastAnswer: p.LastAnswer, Engines: map[string]Answered{},
	}
	for name, c := range p.Replicas {
		job.Engines[name] = Answered{c.RowsDone + c.RowsFailed, c.PromptTokens, c.CachedTokens, c.OutputTokens}
	}
	return job, nil
}

// Pause keeps new requests of a job from being sent, by all workers, until [Jobs.Resume]. Those in flight are finished and stored.
func (j *Jobs) Pause(ctx context.Context, job int64, reason string) error {
	return j.queue.Pause(ctx, job, reason)
}

// Resume ends a pause.
func (j *Jobs) Resume(ctx context.Context, job int64) error { return j.queue.Resume(ctx, job) }

// Reopen lets a job that has ended go on: rows that failed are asked again, and those that a cancelled job did not come to are asked.
// Answers stay, and [Counts] keep what the failed calls have cost.
func (j *Jobs) Reopen(ctx context.Context, job int64) error { return j.queue.Reopen(ctx, job) }

// Cancel ends a job. Answers that are there stay, and can be written.
func (j *Jobs) Cancel(ctx context.Context, job int64, reason string) error {
	return j.queue.Cancel(ctx, job, reason)
}

// Delete removes a job that has ended, with its prompts and answers.
func (j *Jobs) Delete(ctx context.Context, job int64) error { return j.queue.Delete(ctx, job) }
