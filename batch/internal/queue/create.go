package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// loadSize is how many requests are stored in one transaction: enough that a commit costs little, and few enough that answers of other
// jobs, which wait for it on SQLite, do not wait long.
const loadSize = 5000

// maxRow bounds row numbers, whose bits are kept in memory while a job is loaded.
const maxRow = math.MaxInt32

// subtree is a row of batch_subtree.
type subtree struct{ number, first, last, rows int }

// Create stores a job with its requests and lets workers have it. Requests come in the order of Seq, without gaps, and so do the
// subtrees. All or nothing: if it fails, or its process dies, workers never see the job, and it is removed.
func (q *Queue) Create(ctx context.Context, job NewJob, requests iter.Seq2[Request, error]) (Job, error) {
	created, err := q.create(ctx, job, requests)
	if err != nil {
		return Job{}, fmt.Errorf("batch job %q: %w", job.Name, err)
	}
	return created, nil
}

func (q *Queue) create(ctx context.Context, job NewJob, requests iter.Seq2[Request, error]) (created Job, err error) {
	if _, number := strconv.ParseInt(job.Name, 10, 64); job.Name == "" || len(job.Name) > 200 || number == nil {
		return Job{}, errors.New("a name has 1 to 200 bytes and is not a number")
	}
	if !utf8.ValidString(job.Name) || strings.ContainsFunc(job.Name, unicode.IsControl) {
		return Job{}, errors.New("a name is UTF-8 and has no control characters")
	}
	loader, err := q.enter(ctx, "load")
	if err != nil {
		return Job{}, err
	}
	defer loader.leave()
	if err := q.removeAbandoned(ctx); err != nil {
		return Job{}, err
	}
	l := load{q: q}
	err = q.write.QueryRowContext(ctx, `INSERT INTO batch_job
		(name, spec, state, reason, requests, num_rows, subtrees, created, ended, loader) VALUES ($1, $2, $3, $4, 0, 0, 0, $5, 0, $6)
		ON CONFLICT (name) DO NOTHING RETURNING id`,
		job.Name, bytes(job.Spec), Loading, []byte{}, time.Now().UnixMilli(), loader.id).Scan(&l.job)
	if isNoRows(err) {
		return Job{}, ErrExists
	} else if err != nil {
		return Job{}, err
	}
	if err = l.all(ctx, requests); err == nil {
		err = l.start(ctx, job.Name)
	}
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if undo := q.remove(after, l.job); undo != nil { // another process does it later
			q.log.WarnContext(ctx, "a batch job that could not be loaded is not removed yet", "job", job.Name, "error", undo)
		}
		return Job{}, err
	}
	return q.byID(ctx, l.job)
}

// load is a job that is being loaded.
type load struct {
	q        *Queue
	job      int64
	requests int
	rows     int
	taken    []uint64 // bits: rows that a request has
	subtrees []subtree
	batch    []Request
}

func (l *load) all(ctx context.Context, requests iter.Seq2[Request, error]) error {
	for request, err := range requests {
		if err == nil {
			err = l.add(&request)
		}
		if err != nil {
			return err
		}
		if l.batch = append(l.batch, request); len(l.batch) == loadSize {
			if err := l.flush(ctx); err != nil {
				return err
			}
		}
	}
	return l.flush(ctx)
}

// add checks a request and counts it.
func (l *load) add(r *Request) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("request %d: %s", l.requests, fmt.Sprintf(format, args...))
	}
	if r.Seq != l.requests {
		return fail("Seq = %d, want %d", r.Seq, l.requests)
	}
	n := len(l.subtrees)
	switch {
	case r.Subtree == n:
		l.subtrees = append(l.subtrees, subtree{number: n, first: r.Seq})
	case r.Subtree != n-1:
		return fail("Subtree = %d, want %d or %d", r.Subtree, max(n-1, 0), n)
	}
	last := &l.subtrees[len(l.subtrees)-1]
	last.last = r.Seq
	last.rows += len(r.Rows)
	for _, row := range r.Rows {
		if row < 0 || row > maxRow {
			return fail("row %d, want 0 to %d", row, maxRow)
		}
		for row/64 >= len(l.taken) {
			l.taken = append(l.taken, 0)
		}
		if l.taken[row/64]&(1<<(row%64)) != 0 {
			return fail("row %d belongs to an earlier request as well", row)
		}
		l.taken[row/64] |= 1 << (row % 64)
	}
	l.requests++
	l.rows += len(r.Rows)
	return nil
}

// flush stores what has come together.
func (l *load) flush(ctx context.Context) error {
	if len(l.batch) == 0 {
		return nil
	}
	requests := make([][]any, len(l.batch))
	rows := make([][]any, 0, len(l.batch))
	for i := range l.batch {
		r := &l.batch[i]
		numbers, err := json.Marshal(r.Rows)
		if err != nil {
			return err
		}
		requests[i] = []any{l.job, r.Seq, r.Subtree, string(numbers), []byte(r.Text), []byte(r.Body)}
		for _, row := range r.Rows {
			rows = append(rows, []any{l.job, row, r.Seq})
		}
	}
	l.batch = l.batch[:0]
	return errors.Join(
		l.q.insertMany(ctx, "batch_request", []string{"job", "seq", "subtree", "num_rows", "text", "body"}, requests),
		l.q.insertMany(ctx, "batch_row", []string{"job", "num", "seq"}, rows),
	)
}

// start stores the subtrees, inserts their River jobs and lets workers see them.
func (l *load) start(ctx context.Context, name string) error {
	rows := make([][]any, len(l.subtrees))
	for i, s := range l.subtrees {
		rows[i] = []any{l.job, s.number, s.first, s.last}
	}
	if err := l.q.insertMany(ctx, "batch_subtree", []string{"job", "subtree", "first", "last"}, rows); err != nil {
		return err
	}
	if err := l.q.insertSubtrees(ctx, l.job, name, l.subtrees); err != nil {
		return err
	}
	state, ended := Running, int64(0)
	if l.requests == 0 {
		state, ended = Finished, time.Now().UnixMilli()
	}
	result, err := l.q.write.ExecContext(ctx, `UPDATE batch_job SET state = $1, requests = $2, num_rows = $3, subtrees = $4, ended = $5
		WHERE id = $6 AND state = $7`, state, l.requests, l.rows, len(l.subtrees), ended, l.job, Loading)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return ErrLost
}

// insertSubtrees inserts one River job for each subtree.
func (q *Queue) insertSubtrees(ctx context.Context, job int64, name string, subtrees []subtree) error {
	const atOnce = 1000
	for len(subtrees) > 0 {
		some := subtrees[:min(len(subtrees), atOnce)]
		subtrees = subtrees[len(some):]
		params := make([]river.InsertManyParams, len(some))
		for i, s := range some {
			metadata, err := json.Marshal(map[string]any{
				"batch_job": name, "subtree": s.number, "requests": s.last - s.first + 1, "rows": s.rows,
			})
			if err != nil {
				return err
			}
			params[i] = river.InsertManyParams{Args: subtreeArgs{Job: job, Subtree: s.number}, InsertOpts: &river.InsertOpts{
				Queue: queueName(job), MaxAttempts: maxAttempts, Metadata: metadata, Tags: []string{"ragpilot", "batch"},
				UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished},
			}}
		}
		if _, err := q.client.InsertManyFast(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

// unfinished are the states of River jobs that are still to be done.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	rivertype.JobStateScheduled,
}

// insertMany stores rows in one transaction.
func (q *Queue) insertMany(ctx context.Context, table string, columns []string, rows [][]any) error {
	if q.pool != nil {
		_, err := q.pool.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
		return err
	}
	tx, err := q.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	insert, err := tx.PrepareContext(ctx, insertInto(table, columns, 1))
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, row := range rows {
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// bytes returns what is stored for a text that may be nil.
func bytes(text []byte) []byte {
	if text == nil {
		return []byte{}
	}
	return text
}
