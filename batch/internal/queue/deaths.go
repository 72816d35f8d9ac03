package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

const (
	// maxDeaths is how many processes may die in a subtree, one after the other without a new answer, before its requests run alone.
	maxDeaths = 5
	// maxAloneDeaths is how many processes may die of a request that runs alone, before the request fails.
	maxAloneDeaths = 2
)

// errBusy: a subtree that has to run alone in its process cannot do so now.
var errBusy = errors.New("another subtree runs alone")

// countDeath notes that a process has died while it had the subtree.
func countDeath(ctx context.Context, tx execer, dead subtreeArgs) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO batch_death (job, subtree, answered, deaths, seq, starts)
		SELECT s.job, s.subtree,
			(SELECT COUNT(*) FROM batch_answer a WHERE a.job = s.job AND a.seq BETWEEN s.first AND s.last), 1, -1, 0
		FROM batch_subtree s WHERE s.job = $1 AND s.subtree = $2
		ON CONFLICT (job, subtree) DO UPDATE SET answered = excluded.answered,
			deaths = CASE WHEN batch_death.answered = excluded.answered OR batch_death.deaths >= $3 THEN batch_death.deaths + 1 ELSE 1 END`,
		dead.Job, dead.Subtree, maxDeaths)
	return err
}

// deadly reports whether the requests of a subtree have to run alone.
func (q *Queue) deadly(ctx context.Context, s subtreeArgs) (bool, error) {
	var deaths int
	err := q.read.QueryRowContext(ctx, "SELECT deaths FROM batch_death WHERE job = $1 AND subtree = $2", s.Job, s.Subtree).Scan(&deaths)
	if isNoRows(err) {
		return false, nil
	}
	return deaths >= maxDeaths, err
}

// startAlone notes that a request starts alone, and returns how often it did so without a return.
func (q *Queue) startAlone(ctx context.Context, s subtreeArgs, seq int) (starts int, err error) {
	err = q.write.QueryRowContext(ctx, `UPDATE batch_death SET starts = CASE WHEN seq = $3 THEN starts + 1 ELSE 1 END, seq = $3
		WHERE job = $1 AND subtree = $2 RETURNING starts`, s.Job, s.Subtree, seq).Scan(&starts)
	return starts, err
}

// returned notes that the process has outlived the request that ran alone.
func (q *Queue) returned(ctx context.Context, s subtreeArgs) error {
	_, err := q.write.ExecContext(ctx, "UPDATE batch_death SET starts = 0 WHERE job = $1 AND subtree = $2", s.Job, s.Subtree)
	return err
}

// oneByOne calls Do for one request after the other, while nothing else runs in this process: whose request ends the process is then
// known. That request fails, and no other one.
func (w *worker) oneByOne(ctx context.Context, job *river.Job[subtreeArgs], run *run) error {
	if !w.isolate(ctx, job.ID, run.stop) {
		return errBusy
	}
	defer w.setAlone(0)
	for _, request := range run.left() {
		select {
		case <-run.stop:
			return nil
		default:
		}
		starts, err := w.q.startAlone(ctx, job.Args, request.Seq)
		if err != nil {
			return errors.Join(errBusy, err)
		}
		if starts > maxAloneDeaths {
			message := fmt.Sprintf("%d processes died while they worked on this request alone", maxAloneDeaths)
			if err := run.store(Answer{Seq: request.Seq, Failure: Failure{Code: "deaths", Message: message}}); err != nil {
				return errors.Join(errBusy, err)
			}
			continue
		}
		err = run.do(ctx, w.opts.Do, []Request{request})
		if back := w.q.returned(context.WithoutCancel(ctx), job.Args); back != nil {
			w.q.log.WarnContext(ctx, "the return of a request that ran alone is not stored", "job", run.job.Name, "error", back)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isolate stops all other subtrees of this process, and returns true once they have ended, and false if this one is to stop first or
// another one is alone.
func (w *worker) isolate(ctx context.Context, id int64, stop <-chan struct{}) bool {
	w.mu.Lock()
	busy := w.alone != 0
	if !busy {
		w.alone = id
		w.shutGate()
	}
	w.mu.Unlock()
	if busy {
		return false
	}
	for {
		w.mu.Lock()
		others := len(w.running) - 1
		for other, r := range w.running {
			if other != id {
				r.stop()
			}
		}
		w.mu.Unlock()
		if others == 0 {
			return true
		}
		select {
		case <-stop:
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
			continue
		}
		w.setAlone(0)
		return false
	}
}

func (w *worker) setAlone(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alone = id
	w.shutGate()
}
