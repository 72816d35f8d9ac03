package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	driver "modernc.org/sqlite"
)

// commitSize bounds how many answers are stored in one transaction.
const commitSize = 256

// commitTimeout bounds one try to store answers: a connection that was cut without a notice would be waited for much longer.
const commitTimeout = 30 * time.Second

// errStopped: the worker has ended before the answer could be stored.
var errStopped = errors.New("the worker has stopped")

// writer stores answers. Those that come while a transaction is under way share the next one: a commit waits for the disk, and does so
// once for all. Who stores waits until it is done, so that not more answers are in memory than calls were in flight.
type writer struct {
	q       *Queue
	process string
	in      chan *entry
	quit    chan struct{} // closed: nothing more comes
	give    context.CancelFunc
	ctx     context.Context // ends when what cannot be stored is given up
	done    chan struct{}
}

type entry struct {
	job    int64
	rows   int
	answer Answer
	result chan error
}

func (q *Queue) newWriter(process string) *writer {
	w := &writer{q: q, process: process, in: make(chan *entry, commitSize), quit: make(chan struct{}), done: make(chan struct{})}
	w.ctx, w.give = context.WithCancel(context.Background())
	go w.run()
	return w
}

// store returns once the answer is stored.
func (w *writer) store(job int64, rows int, a Answer) error {
	if a.At.IsZero() {
		a.At = time.Now()
	}
	e := &entry{job: job, rows: rows, answer: a, result: make(chan error, 1)}
	select {
	case w.in <- e:
	case <-w.done:
		return errStopped
	}
	select {
	case err := <-e.result:
		return err
	case <-w.done:
		select {
		case err := <-e.result:
			return err
		default:
			return errStopped
		}
	}
}

// stop ends the writer once it has stored what has come.
func (w *writer) stop() {
	close(w.quit)
	<-w.done
	w.give()
}

func (w *writer) run() {
	defer close(w.done)
	for {
		var batch []*entry
		select {
		case e := <-w.in:
			batch = append(batch, e)
		case <-w.quit:
			select {
			case e := <-w.in:
				batch = append(batch, e)
			default:
				return
			}
		}
	fill:
		for len(batch) < commitSize {
			select {
			case e := <-w.in:
				batch = append(batch, e)
			default:
				break fill
			}
		}
		err := w.commit(batch)
		for _, e := range batch {
			e.result <- err
		}
	}
}

// commit stores answers, and tries until it can: a disk that is full, or a database that is away, comes back.
func (w *writer) commit(batch []*entry) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		ctx, cancel := context.WithTimeout(w.ctx, commitTimeout)
		err := w.q.storeAnswers(ctx, w.process, batch)
		cancel()
		if err == nil || hopeless(err) {
			return err
		}
		if w.ctx.Err() != nil {
			return errors.Join(errStopped, err)
		}
		w.q.log.WarnContext(w.ctx, "answers cannot be stored yet", "answers", len(batch), "error", err)
		select {
		case <-time.After(wait):
		case <-w.ctx.Done():
		}
	}
}

var answerFields = []string{
	"job", "seq", "text", "finish", "prompt_tokens", "cached_tokens", "output_tokens", "cached_known", "attempts", "took", "replica",
	"failure_code", "failure_message", "failure_status", "at",
}

// storeAnswers stores the answers that are not there yet, and the sums of these.
func (q *Queue) storeAnswers(ctx context.Context, process string, batch []*entry) error {
	type key struct {
		job int64
		seq int
	}
	entries := map[key]*entry{} // the first of each
	var keys []key
	for _, e := range batch {
		k := key{e.job, e.answer.Seq}
		if entries[k] == nil {
			entries[k] = e
			keys = append(keys, k)
		}
	}
	// Two workers that store the same answers do so in the same order, or each could wait for the other.
	slices.SortFunc(keys, func(a, b key) int {
		if a.job != b.job {
			return int(a.job - b.job)
		}
		return a.seq - b.seq
	})
	args := make([]any, 0, len(keys)*len(answerFields))
	for _, k := range keys {
		a := &entries[k].answer
		args = append(args, k.job, a.Seq, []byte(a.Text), clean(a.Finish), a.Usage.PromptTokens, a.Usage.CachedTokens, a.Usage.OutputTokens,
			a.Usage.CachedKnown, a.Attempts, int64(a.Took), clean(a.Replica), clean(a.Failure.Code), []byte(a.Failure.Message),
			a.Failure.Status, a.At.UnixMilli())
	}
	return q.transaction(ctx, func(tx execer) error {
		sums := newSums()
		err := each(ctx, tx, func(scan func(dest ...any) error) error {
			var k key
			if err := scan(&k.job, &k.seq); err != nil {
				return err
			}
			sums.add(entries[k])
			return nil
		}, insertInto("batch_answer", answerFields, len(keys))+" ON CONFLICT (job, seq) DO NOTHING RETURNING job, seq", args...)
		if err != nil {
			return err
		}
		return sums.store(ctx, tx, process)
	})
}

// sums are what answers add to batch_progress.
type sums struct {
	of   map[sumKey]*Counts
	keys []sumKey
}

type sumKey struct {
	job     int64
	replica string
}

func newSums() *sums { return &sums{of: map[sumKey]*Counts{}} }

func (s *sums) add(e *entry) {
	a := &e.answer
	k := sumKey{e.job, clean(a.Replica)}
	if s.of[k] == nil {
		s.of[k] = &Counts{}
		s.keys = append(s.keys, k)
	}
	c := Counts{
		PromptTokens: int64(a.Usage.PromptTokens), CachedTokens: int64(a.Usage.CachedTokens), OutputTokens: int64(a.Usage.OutputTokens),
		Attempts: int64(a.Attempts), FirstAnswer: a.At, LastAnswer: a.At,
	}
	if a.Failure != (Failure{}) {
		c.Failed, c.RowsFailed = 1, e.rows
	} else {
		c.Done, c.RowsDone = 1, e.rows
	}
	s.of[k].add(&c)
}

func (s *sums) store(ctx context.Context, tx execer, process string) error {
	for _, k := range s.keys {
		c := s.of[k]
		if _, err := tx.ExecContext(ctx, `INSERT INTO batch_progress
			(job, process, replica, done, failed, rows_done, rows_failed, prompt_tokens, cached_tokens, output_tokens, attempts, first_at, last_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
			ON CONFLICT (job, process, replica) DO UPDATE SET
				done = batch_progress.done + excluded.done,
				failed = batch_progress.failed + excluded.failed,
				rows_done = batch_progress.rows_done + excluded.rows_done,
				rows_failed = batch_progress.rows_failed + excluded.rows_failed,
				prompt_tokens = batch_progress.prompt_tokens + excluded.prompt_tokens,
				cached_tokens = batch_progress.cached_tokens + excluded.cached_tokens,
				output_tokens = batch_progress.output_tokens + excluded.output_tokens,
				attempts = batch_progress.attempts + excluded.attempts,
				first_at = CASE WHEN excluded.first_at < batch_progress.first_at THEN excluded.first_at ELSE batch_progress.first_at END,
				last_at = CASE WHEN excluded.last_at > batch_progress.last_at THEN excluded.last_at ELSE batch_progress.last_at END`,
			k.job, process, k.replica, c.Done, c.Failed, c.RowsDone, c.RowsFailed, c.PromptTokens, c.CachedTokens, c.OutputTokens, c.Attempts,
			c.FirstAnswer.UnixMilli(), c.LastAnswer.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

// clean returns a text as a text column of PostgreSQL takes it.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}

// sqliteError is SQLite's code for a statement that is wrong, such as one that names a column that is not there.
const sqliteError = 1

// hopeless reports whether trying again cannot help: the statement or its values are wrong.
func hopeless(err error) bool {
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(failed.Code, "22") || strings.HasPrefix(failed.Code, "23") || strings.HasPrefix(failed.Code, "42")
	}
	const sqliteTooBig, sqliteConstraint, sqliteMismatch = 18, 19, 20
	if failed, ok := errors.AsType[*driver.Error](err); ok {
		code := failed.Code() & 0xff
		return code == sqliteError || code == sqliteTooBig || code == sqliteConstraint || code == sqliteMismatch
	}
	return false
}

// broken reports whether a database takes no answers at all: a table is not as it should be, or may not be written.
func broken(err error) bool {
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(failed.Code, "42")
	}
	failed, ok := errors.AsType[*driver.Error](err)
	return ok && failed.Code() == sqliteError
}
