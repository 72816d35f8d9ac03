package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"time"
)

// How many heartbeats a process may miss before it counts as dead. With SQLite a heartbeat waits for the lock of the file, on a busy disk
// for many seconds, and whether a process of this machine exists can be asked.
const (
	missedBeats      = 5
	missedByExisting = 30
)

// process is this process while it works or loads: a row of batch_process whose number grows with each heartbeat.
type process struct {
	q      *Queue
	id     string // the ID of its River client as well
	cancel context.CancelFunc
	done   chan struct{}
}

// enter makes the row of this process and keeps it alive until leave.
func (q *Queue) enter(ctx context.Context, name string) (*process, error) {
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "")
	for len(name) > 60 { // River takes IDs of 100 bytes
		name = name[:len(name)-1]
	}
	p := &process{q: q, id: strings.ToValidUTF8(name, "") + "-" + hex.EncodeToString(random[:]), done: make(chan struct{})}
	if err := patiently(ctx, func() error { return p.beat(ctx) }); err != nil {
		return nil, err
	}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go p.keep(ctx)
	return p, nil
}

func (p *process) keep(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(p.q.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := p.beat(ctx); err != nil && ctx.Err() == nil {
			p.q.log.WarnContext(ctx, "no heartbeat could be stored", "process", p.id, "error", err)
		}
	}
}

// beat counts one up. A process that was taken for dead comes back so.
func (p *process) beat(ctx context.Context) error {
	host, _ := os.Hostname() // "" is not compared
	_, err := p.q.write.ExecContext(ctx, `INSERT INTO batch_process (id, host, pid, beat, seen) VALUES ($1, $2, $3, 1, $4)
		ON CONFLICT (id) DO UPDATE SET beat = batch_process.beat + 1, seen = excluded.seen`, p.id, host, os.Getpid(), time.Now().UnixMilli())
	return err
}

// leave removes the row.
func (p *process) leave() {
	p.cancel()
	<-p.done
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := p.q.write.ExecContext(ctx, "DELETE FROM batch_process WHERE id = $1", p.id); err != nil {
		p.q.log.WarnContext(ctx, "the process is not signed off; others find out", "process", p.id, "error", err)
	}
}

// watch finds processes that are dead: their heartbeat has not changed for some time, by this process's own clock, while the database
// could be read. So neither clocks that differ nor a database that was away make a live process look dead.
type watch struct {
	mu   sync.Mutex
	last time.Time           // of the last look
	seen map[string]sighting // guarded by mu
}

type sighting struct {
	beat  int64
	since time.Time
}

// look removes the rows of dead processes.
func (w *watch) look(ctx context.Context, q *Queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.last) > 3*q.heartbeat {
		w.seen = nil // the database was away, or this process stood still
	}
	seen := map[string]sighting{}
	var dead []string
	host, _ := os.Hostname()
	err := each(ctx, q.read, func(scan func(dest ...any) error) error {
		var id, on string
		var pid int
		var s sighting
		if err := scan(&id, &on, &pid, &s.beat); err != nil {
			return err
		}
		s.since = now
		if before, ok := w.seen[id]; ok && before.beat == s.beat {
			s.since = before.since
		}
		seen[id] = s
		missed := missedBeats
		if q.pool == nil && host != "" && on == host { // a file is of one machine, most of the time; the name of the machine says if not
			switch exists, known := alive(pid); {
			case known && !exists:
				missed = 0
			case known:
				missed = missedByExisting
			}
		}
		if now.Sub(s.since) >= time.Duration(missed)*q.heartbeat {
			dead = append(dead, id)
		}
		return nil
	}, "SELECT id, host, pid, beat FROM batch_process")
	if err != nil {
		return err
	}
	w.seen, w.last = seen, now
	for _, id := range dead {
		q.log.WarnContext(ctx, "a process of batch jobs has died", "process", id)
		if _, err := q.write.ExecContext(ctx, "DELETE FROM batch_process WHERE id = $1 AND beat = $2", id, seen[id].beat); err != nil {
			return err
		}
	}
	return nil
}

// release lets others have the subtrees of processes that are not there any more. River has no call for it: its rescuer goes by the time
// that a job has run, which for a subtree may be long, and JobRetry leaves running jobs alone. So this is one UPDATE of River's table.
// It changes what River itself changes when it gives a job back at a stop (state, attempt), leaves scheduled_at alone, so that the
// subtree is the next in the order, and takes only jobs of batches. A process that was wrongly taken for dead loses nothing: answers are
// unique.
func (q *Queue) release(ctx context.Context) error {
	return q.transaction(ctx, func(tx execer) error {
		var dead []subtreeArgs
		err := each(ctx, tx, func(scan func(dest ...any) error) error {
			var s subtreeArgs
			err := scan(&s.Job, &s.Subtree)
			dead = append(dead, s)
			return err
		}, `UPDATE river_job SET state = 'available', attempt = CASE WHEN attempt > 0 THEN attempt - 1 ELSE 0 END
			WHERE state = 'running' AND kind = $1 AND `+q.dialect.lastTaker+` NOT IN (SELECT id FROM batch_process)
			RETURNING CAST(args ->> 'job' AS BIGINT), CAST(args ->> 'subtree' AS BIGINT)`, subtreeArgs{}.Kind())
		for _, s := range dead {
			if err == nil {
				err = countDeath(ctx, tx, s)
			}
		}
		return err
	})
}

// removeAbandoned removes jobs whose loading has ended without an end: the process is dead.
func (q *Queue) removeAbandoned(ctx context.Context) error {
	if q.pool == nil { // one look is enough where process IDs can be asked for
		if err := (&watch{}).look(ctx, q); err != nil {
			return err
		}
	}
	var left []int64
	err := each(ctx, q.write, func(scan func(dest ...any) error) error {
		var job int64
		err := scan(&job)
		left = append(left, job)
		return err
	}, "SELECT id FROM batch_job WHERE state = $1 AND loader NOT IN (SELECT id FROM batch_process)", Loading)
	if err != nil {
		return err
	}
	for _, job := range left {
		if err := q.remove(ctx, job); err != nil {
			return err
		}
	}
	return nil
}
