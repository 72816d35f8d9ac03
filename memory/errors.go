package memory

import "errors"

// Causes that callers can distinguish with errors.Is.
var (
	// ErrNoScope: none of user, agent and run is set.
	ErrNoScope = errors.New("no scope: set at least one of user, agent and run")
	// ErrNotFound: there is no memory of that ID.
	ErrNotFound = errors.New("no such memory")
	// ErrExists: another memory of the same scope has that text.
	ErrExists = errors.New("another memory of the scope has this text")
	// ErrEmptyText: a memory must have a text.
	ErrEmptyText = errors.New("empty text")
	// ErrBadFilter: a filter has an unknown operator or a value that its operator cannot use.
	ErrBadFilter = errors.New("bad filter")
	// ErrExtraction: the model failed, or its answer has not the form that was asked for. Nothing was stored.
	ErrExtraction = errors.New("extraction failed")
	// ErrEmbedding: the embedder failed, or its vectors cannot be used. Nothing was stored. It is wrapped with the embedder's own error.
	ErrEmbedding = errors.New("embedding failed")
	// ErrEmbedder: the store's vectors are by another embedder than the one given.
	ErrEmbedder = errors.New("the stored vectors are of another embedder")
	// ErrInvalid: an argument cannot be stored.
	ErrInvalid = errors.New("invalid argument")
	// ErrFull: the disk has no room for the change. Unless the error is an ErrNotErased too, nothing was stored.
	ErrFull = errors.New("the disk is full")
)

// Errors of backends that are servers, for errors.Is. Each is wrapped with what the server said.
var (
	// ErrUnavailable: the backend's server cannot be reached, is overloaded or is shutting down. Later may be better.
	ErrUnavailable = errors.New("server is unavailable")
	// ErrUnauthorized: the server refused the credentials, or does not let them do this.
	ErrUnauthorized = errors.New("server refused the credentials")
	// ErrUnknownOutcome: the connection or the context ended before the server said whether a change was stored. Look
	// before you repeat it. Such an error may be an ErrUnavailable too.
	ErrUnknownOutcome = errors.New("whether the change was stored is not known")
	// ErrNotErased: a change was stored. No reader finds what it replaced or removed, but that could not be deleted from the
	// server, or from the file of an embedded store, yet. The next change by any process does so.
	ErrNotErased = errors.New("the change is stored, but what it removed is not deleted from the server yet")
	// ErrClosed: the backend was used after Close.
	ErrClosed = errors.New("closed")
)
