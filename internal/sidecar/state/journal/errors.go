package journal

import (
	"errors"

	"github.com/ragpilot/ragpilot/internal/storage/durable"
)

var (
	// ErrLocked: another process, or another Journal of this one, has the directory open.
	ErrLocked = durable.ErrLocked
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal: closed")
	// ErrTooLarge: a record would not fit into half of Options.MaxBytes. Nothing was written.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrOrder: Replay after the first Append, or either of them from within Replay's callback.
	ErrOrder = errors.New("journal: replay comes first, and alone")
)
