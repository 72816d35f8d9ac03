package engines

import "errors"

// Errors that callers can act on; they are wrapped with what was being done and with which engine.
var (
	// ErrUnreachable: no connection to the engine could be made, or none lasted until it began to answer.
	ErrUnreachable = errors.New("engine unreachable")
	// ErrNotTaken: the engine has not looked at the request, so any other may be asked. It is wrapped together with ErrUnreachable
	// if no connection could be made, and with ErrRefused if the engine has too much to do or is not ready.
	ErrNotTaken = errors.New("engine did not take the request")
	// ErrInterrupted: the engine took the request and the answer broke off; pieces of it may have been given. It was
	// not repeated.
	ErrInterrupted = errors.New("answer interrupted")
	// ErrRefused: the engine answered with an error status.
	ErrRefused = errors.New("engine refused the request")
)
