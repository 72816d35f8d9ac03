package contextpilot

import "errors"

// Errors that callers can test for with errors.Is; they are wrapped with the field and the value.
var (
	// ErrBadConfig: a field of Config cannot be used.
	ErrBadConfig = errors.New("bad config")
	// ErrUnknownPolicy: no policy has that name.
	ErrUnknownPolicy = errors.New("unknown policy")
	// ErrBadRequest: a batch cannot be planned as it is.
	ErrBadRequest = errors.New("bad request")
	// ErrFault: a stage failed; Plan.Fault wraps it with the stage's name. The plan is retrieval order then.
	ErrFault = errors.New("stage fault")
)
