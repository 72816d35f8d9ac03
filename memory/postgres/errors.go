package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ragpilot/ragpilot/memory"
)

// Causes that callers can distinguish with errors.Is. Those of package memory are the same for all backends.
var (
	// ErrUnavailable: the server cannot be reached, has ended the connection, or takes no more. Later may be better.
	ErrUnavailable = memory.ErrUnavailable
	// ErrUnauthorized: the server refused the user or the password, or does not let the user do this.
	ErrUnauthorized = memory.ErrUnauthorized
	// ErrMissing: there is no such database, or a table that Open has made is not there any more.
	ErrMissing = errors.New("database or table is missing")
	// ErrUnknownOutcome: the connection or the context ended before the server said whether a change was stored. Look before you
	// repeat it.
	ErrUnknownOutcome = memory.ErrUnknownOutcome
	// ErrClosed: the backend was used after Close.
	ErrClosed = memory.ErrClosed
)

// kinds are what error codes stand for, or their first two characters; see appendix A of PostgreSQL's documentation.
var kinds = map[string]error{
	"08":    ErrUnavailable,  // connection exception
	"28":    ErrUnauthorized, // invalid authorization specification, such as a wrong password
	"42501": ErrUnauthorized, // insufficient privilege
	"3D000": ErrMissing,      // invalid catalog name: no such database
	"3F000": ErrMissing,      // invalid schema name
	"42P01": ErrMissing,      // undefined table
	"53":    ErrUnavailable,  // insufficient resources, such as too many connections
	"57":    ErrUnavailable,  // operator intervention: shut down, still starting, out of a time set there
	"58":    ErrUnavailable,  // system error, such as of input and output
}

// wrapped says that the error is of this package, and what it stands for; nil stays nil.
func wrapped(err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("postgres: %w: %w", kind, err)
	}
	return fmt.Errorf("postgres: %w", err)
}

func kindOf(err error) error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := kinds[said.Code]; kind != nil {
			return kind
		}
		return kinds[said.Code[:min(2, len(said.Code))]]
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil // the caller's doing
	}
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	_, broken := errors.AsType[net.Error](err)
	if refused || broken || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrUnavailable
	}
	return nil
}

// undecided reports whether a commit that failed so may have been made: the server has not said that it was not.
func undecided(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return false
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || said.SeverityUnlocalized != "ERROR"
}
