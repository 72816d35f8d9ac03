package memory

import "errors"

// Causes that callers may want to tell apart, by errors.Is.
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
	// ErrEmbedder: the store's vectors are by another embedder than the one given.
	ErrEmbedder = errors.New("the stored vectors are of another embedder")
	// ErrInvalid: an argument cannot be stored.
	ErrInvalid = errors.New("invalid argument")
)
