package engines

import "errors"

// Errors that callers can act on; they are wrapped with what was being done and with which engine.
var (
	// ErrUnreachable: no connection to the engine could be made, or none lasted until it began to answer.
	ErrUnreachable = errors.New("engine unreachable")
	// ErrInterrupted: the engine took the request and the answer broke off; pieces of it may have been given. It was
	// not repeated.
	ErrInterrupted = errors.New("answer interrupted")
	// ErrRefused: the engine answered with an error status.
	ErrRefused = errors.New("engine refused the request")
)
