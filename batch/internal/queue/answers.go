package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// pageSize is how many answers are read at a time: a reader that is slow keeps no transaction open.
const pageSize = 1000

const answerColumns = `a.seq, a.text, a.finish, a.prompt_tokens, a.cached_tokens, a.output_tokens, a.cached_known, a.attempts, a.took,
	a.replica, a.failure_code, a.failure_message, a.failure_status, a.at`

// answerInto returns where answerColumns are read into, and what completes the answer then.
func answerInto(a *Answer) (to []any, done func()) {
	var text, message []byte
	var took, at int64
	to = []any{
		&a.Seq, &text, &a.Finish, &a.Usage.PromptTokens, &a.Usage.CachedTokens, &a.Usage.OutputTokens, &a.Usage.CachedKnown, &a.Attempts, &took,
		&a.Replica, &a.Failure.Code, &message, &a.Failure.Status, &at,
	}
	return to, func() {
		a.Text, a.Failure.Message, a.Took, a.At = string(text), string(message), time.Duration(took), moment(at)
	}
}

// Answers returns the answers that are stored, in the order of Seq.
func (q *Queue) Answers(ctx context.Context, job int64) iter.Seq2[Answer, error] {
	return pages(func(after int) (page []Answer, last int, err error) {
		err = each(ctx, q.read, func(scan func(dest ...any) error) error {
			var a Answer
			to, done := answerInto(&a)
			if err := scan(to...); err != nil {
				return err
			}
			done()
			page, last = append(page, a), a.Seq
			return nil
		}, "SELECT "+answerColumns+" FROM batch_answer a WHERE a.job = $1 AND a.seq > $2 ORDER BY a.seq LIMIT $3", job, after, pageSize)
		return page, last, err
	})
}

// RowAnswer is the answer of a row. Rows of one request have the same answer.
type RowAnswer struct {
	Row int
	Answer
}

// Rows returns the answers that are stored in the order of rows.
func (q *Queue) Rows(ctx context.Context, job int64) iter.Seq2[RowAnswer, error] {
	return pages(func(after int) (page []RowAnswer, last int, err error) {
		err = each(ctx, q.read, func(scan func(dest ...any) error) error {
			var a RowAnswer
			to, done := answerInto(&a.Answer)
			if err := scan(append(to, &a.Row)...); err != nil {
				return err
			}
			done()
			page, last = append(page, a), a.Row
			return nil
		}, "SELECT "+answerColumns+`, r.num FROM batch_row r JOIN batch_answer a ON a.job = r.job AND a.seq = r.seq
			WHERE r.job = $1 AND r.num > $2 ORDER BY r.num LIMIT $3`, job, after, pageSize)
		return page, last, err
	})
}

// pages returns what the pages hold, one after the other. The first page is that after -1.
func pages[T any](read func(after int) (page []T, last int, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		after := -1
		for {
			page, last, err := read(after)
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if len(page) < pageSize {
				return
			}
			after = last
		}
	}
}

// Progress returns how far a job is. It reads sums that are kept with the answers, and so costs the same for a job of any size.
func (q *Queue) Progress(ctx context.Context, job int64) (Progress, error) {
	p := Progress{Replicas: map[string]Counts{}}
	found, err := q.byID(ctx, job)
	if err != nil {
		return p, err
	}
	p.Requests, p.Rows = found.Requests, found.Rows
	err = each(ctx, q.read, func(scan func(dest ...any) error) error {
		var replica string
		var c Counts
		var first, last int64
		if err := scan(&replica, &c.Done, &c.Failed, &c.RowsDone, &c.RowsFailed, &c.PromptTokens, &c.CachedTokens, &c.OutputTokens,
			&c.Attempts, &first, &last); err != nil {
			return err
		}
		c.FirstAnswer, c.LastAnswer = moment(first), moment(last)
		sum := p.Replicas[replica]
		sum.add(&c)
		p.Replicas[replica] = sum
		p.add(&c)
		return nil
	}, `SELECT replica, done, failed, rows_done, rows_failed, prompt_tokens, cached_tokens, output_tokens, attempts, first_at, last_at
		FROM batch_progress WHERE job = $1`, job)
	return p, err
}

// openRequests reads the requests from $2 to $3 that have no answer. The bounds are values, and stand at answers as well: PostgreSQL would
// otherwise take them for wide, and read all answers for each subtree.
const openRequests = `SELECT r.seq, r.num_rows, r.text, r.body FROM batch_request r WHERE r.job = $1 AND r.seq BETWEEN $2 AND $3
	AND NOT EXISTS (SELECT 1 FROM batch_answer a WHERE a.job = $1 AND a.seq = r.seq AND a.seq BETWEEN $2 AND $3) ORDER BY r.seq`

// open returns the requests of a subtree that have no answer, in their order.
func (q *Queue) open(ctx context.Context, args subtreeArgs) (requests []Request, err error) {
	var first, last int
	err = q.read.QueryRowContext(ctx, "SELECT first, last FROM batch_subtree WHERE job = $1 AND subtree = $2", args.Job, args.Subtree).
		Scan(&first, &last)
	if isNoRows(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	err = each(ctx, q.read, func(scan func(dest ...any) error) error {
		var rows, text, body []byte
		r := Request{Subtree: args.Subtree}
		if err := scan(&r.Seq, &rows, &text, &body); err != nil {
			return err
		}
		if err := json.Unmarshal(rows, &r.Rows); err != nil {
			return fmt.Errorf("rows of request %d: %w", r.Seq, err)
		}
		r.Text = string(text)
		if len(body) > 0 {
			r.Body = body
		}
		requests = append(requests, r)
		return nil
	}, openRequests, args.Job, first, last)
	return requests, err
}
