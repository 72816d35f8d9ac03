package store

import "errors"

// Errors of stores, for errors.Is. Each is wrapped with what was being done and with what the server said.
var (
	// ErrUnavailable: the store cannot be reached, is overloaded or is shutting down. Later may be better.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrUnauthorized: the store refused the credentials, or does not let them do this.
	ErrUnauthorized = errors.New("store refused the credentials")
	// ErrNoIndex: the index, or collection, does not exist.
	ErrNoIndex = errors.New("index does not exist")
	// ErrBadQuery: the query cannot be answered: it is empty, K is below 1, the tenant is missing, or a filter or
	// vector does not fit the index.
	ErrBadQuery = errors.New("bad query")
	// ErrBadDocument: a document cannot be stored, or what is stored cannot be read as a document.
	ErrBadDocument = errors.New("bad document")
	// ErrBadOption: an option of langchaingo's vectorstores cannot be honoured by the store, or by this method of it. The
	// error names it.
	ErrBadOption = errors.New("option cannot be honoured")
	// ErrDimension: a vector has another length than the index wants. Such an error is also an ErrBadQuery or an
	// ErrBadDocument.
	ErrDimension = errors.New("vector has the wrong length")
	// ErrClosed: the store was used after Close.
	ErrClosed = errors.New("store is closed")
)
