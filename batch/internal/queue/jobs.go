package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// queueName is the River queue of a job: each has its own.
func queueName(job int64) string { return "batch-" + strconv.FormatInt(job, 10) }

const jobColumns = "id, name, spec, state, reason, requests, num_rows, subtrees, created, ended"

func scanJob(scan func(dest ...any) error) (job Job, err error) {
	var spec, reason []byte
	var created, ended int64
	err = scan(&job.ID, &job.Name, &spec, &job.State, &reason, &job.Requests, &job.Rows, &job.Subtrees, &created, &ended)
	job.Spec, job.Reason, job.Created, job.Ended = spec, string(reason), moment(created), moment(ended)
	return job, err
}

// moment returns a time that is stored as milliseconds; 0 is the zero time.
func moment(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli).UTC()
}

// Jobs returns all jobs, the oldest first.
func (q *Queue) Jobs(ctx context.Context) (jobs []Job, err error) {
	err = each(ctx, q.read, func(scan func(dest ...any) error) error {
		job, err := scanJob(scan)
		jobs = append(jobs, job)
		return err
	}, "SELECT "+jobColumns+" FROM batch_job ORDER BY id")
	return jobs, err
}

// Job returns the job with an ID or a name.
func (q *Queue) Job(ctx context.Context, idOrName string) (Job, error) {
	where, value := "name = $1", any(idOrName)
	if id, err := strconv.ParseInt(idOrName, 10, 64); err == nil {
		where, value = "id = $1", id
	}
	job, err := scanJob(q.read.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM batch_job WHERE "+where, value).Scan)
	if isNoRows(err) {
		err = ErrNotFound
	}
	if err != nil {
		return Job{}, fmt.Errorf("batch job %q: %w", idOrName, err)
	}
	return job, nil
}

func (q *Queue) byID(ctx context.Context, job int64) (Job, error) {
	return q.Job(ctx, strconv.FormatInt(job, 10))
}

// Pause lets no new request of a running job start. Those in flight end and are stored. It leaves River's queue as it is: the state stops
// workers, and one that pauses a job while another process resumes it would leave a queue that gives out nothing.
func (q *Queue) Pause(ctx context.Context, job int64, reason string) error {
	return q.move(ctx, job, Paused, reason, Running, Paused)
}

// Resume lets a paused job go on, in the order of its subtrees, also where its queue was paused in River's UI.
func (q *Queue) Resume(ctx context.Context, job int64) error {
	if err := ignoreNotFound(q.client.QueueResume(ctx, queueName(job), nil)); err != nil {
		return err
	}
	if err := q.reorder(ctx, job); err != nil {
		return err
	}
	return q.move(ctx, job, Running, "", Paused, Running)
}

// Reopen lets a job that has ended go on: what failed is forgotten and done again, and what was not done is done. Answers stay, and so do
// the tokens and attempts that failures have cost.
func (q *Queue) Reopen(ctx context.Context, job int64) error {
	if err := ignoreNotFound(q.client.QueueResume(ctx, queueName(job), nil)); err != nil {
		return err
	}
	err := q.transaction(ctx, func(tx execer) error {
		if err := q.moveIn(ctx, tx, job, Running, "", Finished, Cancelled, Failed); err != nil {
			return err
		}
		if q.dialect.lockSums != "" {
			if _, err := tx.ExecContext(ctx, q.dialect.lockSums); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			"DELETE FROM batch_answer WHERE job = $1 AND (failure_code <> '' OR LENGTH(failure_message) > 0 OR failure_status <> 0)",
			"UPDATE batch_progress SET failed = 0, rows_failed = 0 WHERE job = $1",
			"DELETE FROM batch_death WHERE job = $1",
		} {
			if _, err := tx.ExecContext(ctx, statement, job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return q.complete(ctx, job) // workers do so as well
}

// Cancel ends a job. Requests in flight end and are stored; the rest is not done.
func (q *Queue) Cancel(ctx context.Context, job int64, reason string) error {
	return q.end(ctx, job, Cancelled, reason)
}

// Fail ends a job that cannot go on, as Cancel does.
func (q *Queue) Fail(ctx context.Context, job int64, reason string) error {
	return q.end(ctx, job, Failed, reason)
}

func (q *Queue) end(ctx context.Context, job int64, state State, reason string) error {
	if err := q.move(ctx, job, state, reason, Running, Paused, state); err != nil {
		return err
	}
	return q.deleteRiverJobs(ctx, job)
}

// deleteRiverJobs deletes the River jobs of a batch job that do not run; its workers see that it has ended and cancel those that do.
func (q *Queue) deleteRiverJobs(ctx context.Context, job int64, states ...rivertype.JobState) error {
	if len(states) == 0 {
		states = []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}
	}
	const atOnce = 5000
	for {
		result, err := q.client.JobDeleteMany(ctx, river.NewJobDeleteManyParams().Queues(queueName(job)).States(states...).First(atOnce))
		if err != nil || len(result.Jobs) < atOnce {
			return err
		}
	}
}

// Delete removes a job that has ended, with its requests and answers.
func (q *Queue) Delete(ctx context.Context, job int64) error {
	found, err := q.byID(ctx, job)
	if err != nil {
		return err
	}
	if !found.State.Ended() {
		return fmt.Errorf("batch job %q is %s: %w", found.Name, found.State, ErrState)
	}
	return q.remove(ctx, job)
}

// remove removes all of a job. The job itself goes last, so that what was interrupted is found again.
func (q *Queue) remove(ctx context.Context, job int64) error {
	if err := q.deleteRiverJobs(ctx, job, append([]rivertype.JobState{
		rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded,
	}, unfinished...)...); err != nil {
		return err
	}
	for _, table := range []string{"batch_request", "batch_row", "batch_subtree", "batch_answer", "batch_progress", "batch_death"} {
		if _, err := q.write.ExecContext(ctx, "DELETE FROM "+table+" WHERE job = $1", job); err != nil {
			return err
		}
	}
	_, err := q.write.ExecContext(ctx, "DELETE FROM batch_job WHERE id = $1", job)
	return err
}

// move changes the state of a job that is in one of the states from.
func (q *Queue) move(ctx context.Context, job int64, to State, reason string, from ...State) error {
	return q.moveIn(ctx, q.write, job, to, reason, from...)
}

// moveIn is move in a transaction.
func (q *Queue) moveIn(ctx context.Context, tx execer, job int64, to State, reason string, from ...State) error {
	ended := int64(0)
	if to.Ended() {
		ended = time.Now().UnixMilli()
	}
	from = append(from, from[0], from[0]) // three at least
	result, err := tx.ExecContext(ctx, "UPDATE batch_job SET state = $1, reason = $2, ended = $3 WHERE id = $4 AND state IN ($5, $6, $7)",
		to, []byte(reason), ended, job, from[0], from[1], from[2])
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	found, err := q.byID(ctx, job)
	if err != nil {
		return err
	}
	return fmt.Errorf("batch job %q is %s: %w", found.Name, found.State, ErrState)
}

// reorder lets subtrees that were taken and given back go first again, in their order: River puts such jobs behind all others.
func (q *Queue) reorder(ctx context.Context, job int64) error {
	_, err := q.write.ExecContext(ctx, `UPDATE river_job SET scheduled_at = created_at
		WHERE state = 'available' AND queue = $1 AND scheduled_at > created_at AND attempt = 0`, queueName(job))
	return err
}

// finish ends a job whose requests all have an answer or a failure.
func (q *Queue) finish(ctx context.Context, job int64) error {
	_, err := q.write.ExecContext(ctx, `UPDATE batch_job SET state = $1, reason = $2, ended = $3 WHERE id = $4 AND state IN ($5, $6)
		AND requests = (SELECT COALESCE(SUM(done + failed), 0) FROM batch_progress WHERE job = $4)`,
		Finished, []byte{}, time.Now().UnixMilli(), job, Running, Paused)
	return err
}

// Wait returns the job once it has ended; with an error, as it was read last. While the database cannot be reached it goes on waiting, as
// workers do.
func (q *Queue) Wait(ctx context.Context, job int64) (Job, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	away := false
	var last Job
	for {
		found, err := q.byID(ctx, job)
		switch {
		case err == nil && found.State.Ended():
			return found, nil
		case err == nil:
			last = found
		case errors.Is(err, ErrNotFound) || hopeless(err) || q.closed.Load():
			return last, err
		case !away && ctx.Err() == nil:
			q.log.WarnContext(ctx, "the state of a batch job cannot be read yet", "error", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, river.ErrNotFound) {
		return nil // River knows a queue once a worker has looked at it
	}
	return err
}
