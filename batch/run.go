package batch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
)

// RunOptions configure [Jobs.Run]. Write.Out is needed, and Work.Replicas unless NoWork is set.
type RunOptions struct {
	Add   AddOptions
	Work  WorkOptions // Only is set by Run
	Write WriteOptions
	// Retry asks again for rows that failed, and goes on with a job that was cancelled ([Jobs.Reopen]).
	Retry bool
	// NoWork leaves the requests to workers elsewhere, and waits for them.
	NoWork bool
	// Progress is called about once a second; nil: it is not.
	Progress func(Job)
}

// ErrPaused is the reason why [Jobs.Run] ends before all rows have an answer: the job is paused, by hand or because it cannot go on.
var ErrPaused = errors.New("the job is paused")

// Run answers each row of a table and writes the answers. It is [Jobs.Add], [Jobs.Work] and [Jobs.Write] in one.
//
// When ctx ends, or the process dies, the answers so far are kept: Run with the same name, table and task goes on with the other rows. It
// also goes on with a job that was paused.
func (j *Jobs) Run(ctx context.Context, name string, t *table.Table, task Task, o RunOptions) (Job, Written, error) {
	o.Write = o.Write.withDefaults()
	if err := o.Write.check(t); err != nil {
		return Job{}, Written{}, err
	}
	job, err := j.Add(ctx, name, t, task, o.Add)
	if err != nil {
		return job, Written{}, err
	}
	switch {
	case job.State == Paused:
		err = j.Resume(ctx, job.ID)
	case o.Retry && job.State.Ended():
		if err = j.Reopen(ctx, job.ID); err == nil {
			job, err = j.Job(ctx, job.Name)
		}
	}
	if err != nil {
		return job, Written{}, err
	}
	if !job.State.Ended() {
		if job, err = j.finish(ctx, job, &o); err != nil {
			return job, Written{}, err
		}
	}
	if job.State != Finished {
		return job, Written{}, fmt.Errorf("job %q is %s (%s): %w", job.Name, job.State, job.Reason, ErrState)
	}
	w, err := j.Write(ctx, job, t, o.Write)
	return job, w, err
}

// finish works on a job until it ends or is paused.
func (j *Jobs) finish(ctx context.Context, job Job, o *RunOptions) (Job, error) {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	if o.NoWork {
		go func() {
			<-work.Done()
			ended <- nil
		}()
	} else {
		o.Work.Only = []int64{job.ID}
		go func() { ended <- j.Work(work, o.Work) }()
	}
	last, err := j.watch(ctx, job, o.Progress, ended)
	cancel()
	worked := <-ended
	if errors.Is(err, ErrPaused) {
		if now, again := j.Job(ctx, job.Name); again == nil { // with the answers that were in flight
			last.Counts = now.Counts
		}
		err = fmt.Errorf("%w after %d of %d rows: %s", ErrPaused, last.RowsDone+last.RowsFailed, last.Rows, last.Reason)
	}
	err = errors.Join(err, worked)
	if err == nil {
		err = ctx.Err()
	}
	return last, err
}

// watch returns when the job has ended, is paused, or cannot be worked on.
func (j *Jobs) watch(ctx context.Context, job Job, progress func(Job), ended chan error) (Job, error) {
	const interval = 250 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		found, err := j.Job(ctx, job.Name)
		switch {
		case ctx.Err() != nil:
			return job, ctx.Err()
		case errors.Is(err, ErrNotFound):
			return job, err
		case err != nil: // the database is away
			j.log.WarnContext(ctx, "the state of the job cannot be read", "job", job.Name, "error", err)
		default:
			job = found
			if progress != nil && (n%4 == 0 || job.State.Ended()) {
				progress(job)
			}
			if job.State.Ended() {
				return job, nil
			}
			if job.State == Paused {
				return job, ErrPaused
			}
		}
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case err := <-ended:
			ended <- nil
			return job, err
		case <-tick.C:
		}
	}
}

// AnswerFile asks an engine for an answer to each row of the file path and writes the rows with their answers to out, which must not be
// there. It is [Jobs.Run] with a database beside out (out + ".jobs.db"): called again after an interrupt or a crash, it goes on.
func AnswerFile(ctx context.Context, path, out string, task Task, engine engines.Engine) (w Written, err error) {
	t, err := table.Open(ctx, path, table.Options{})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	jobs, err := Open(ctx, out+".jobs.db", OpenOptions{})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, jobs.Close()) }()
	_, w, err = jobs.Run(ctx, filepath.Base(out), t, task, RunOptions{
		Work: WorkOptions{Replicas: []Replica{{Name: engine.Name(), Engine: engine}}}, Write: WriteOptions{Out: out},
	})
	return w, err
}
