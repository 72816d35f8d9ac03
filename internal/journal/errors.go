package journal

import "errors"

var (
	// ErrLocked: another process, or another Journal of this one, has the directory open.
	ErrLocked = errors.New("journal: in use by another process")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal: closed")
	// ErrTooLarge: a record would not fit into half of Options.MaxBytes. Nothing was written.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrOrder: Replay after the first Append, or either of them from within Replay's callback.
	ErrOrder = errors.New("journal: replay comes first, and alone")
)
