package queue

import "context"

// QueryText returns the first column of a result.
func QueryText(ctx context.Context, q *Queue, query string, args ...any) (texts []string, err error) {
	err = each(ctx, q.write, func(scan func(dest ...any) error) error {
		var text string
		err := scan(&text)
		texts = append(texts, text)
		return err
	}, query, args...)
	return texts, err
}

// StoreAs stores an answer as a worker of its own process does.
func StoreAs(q *Queue, process string, job int64, rows int, a Answer) error {
	w := q.newWriter(process)
	defer w.stop()
	return w.store(job, rows, a)
}

// CountDeath notes that a process has died in a subtree.
func CountDeath(ctx context.Context, q *Queue, job int64, subtree int) error {
	return countDeath(ctx, q.write, subtreeArgs{Job: job, Subtree: subtree})
}
