package elastic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// BulkError names the documents of a batch that the server refused; the others of the batch were stored. It wraps what each
// refusal stands for: ErrMapping, store.ErrBadDocument, store.ErrUnavailable and so on.
type BulkError struct {
	Items []ItemError
	// Stored is how many documents of the batch were stored.
	Stored int
}

// ItemError is a document that was refused.
type ItemError struct {
	ID  string // the document's
	Err error  // wraps a [ServerError] and what it stands for
}

// maxNamed bounds the documents that an error's text names.
const maxNamed = 3

// Error names the first of the documents.
func (e *BulkError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d documents refused", len(e.Items), len(e.Items)+e.Stored)
	for i, item := range e.Items {
		if i == maxNamed {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; %q: %v", item.ID, item.Err)
	}
	return b.String()
}

// Unwrap returns the documents' errors.
func (e *BulkError) Unwrap() []error {
	out := make([]error, len(e.Items))
	for i, item := range e.Items {
		out[i] = item.Err
	}
	return out
}

// bulkAnswer is what is read of a bulk request's answer.
type bulkAnswer struct {
	Errors bool                  `json:"errors"`
	Items  []map[string]bulkItem `json:"items"`
}

type bulkItem struct {
	Status int    `json:"status"`
	Error  *cause `json:"error"`
}

// failures returns nil, or a BulkError. A deletion of what is not there has the status 404 and no error.
func (a *bulkAnswer) failures(ids []string) error {
	if len(a.Items) != len(ids) {
		return fmt.Errorf("%w: the server answered about %d documents of %d", store.ErrUnavailable, len(a.Items), len(ids))
	}
	if !a.Errors {
		return nil
	}
	out := &BulkError{Stored: len(ids)}
	for i, item := range a.Items {
		for _, result := range item {
			if result.Error == nil {
				continue
			}
			e := &ServerError{Status: result.Status}
			e.Type, e.Reason = result.Error.flat()
			out.Items = append(out.Items, ItemError{ID: ids[i], Err: e.typed(store.ErrBadDocument)})
			out.Stored--
		}
	}
	if len(out.Items) == 0 {
		return nil
	}
	if out.Stored == 0 && (all(out.Items, tooBusy) || all(out.Items, noIndex)) {
		return out.Items[0].Err // it is the same for each document, and the batch can be sent again
	}
	return out
}

func noIndex(err error) bool { return errors.Is(err, store.ErrNoIndex) }

func all(items []ItemError, is func(error) bool) bool {
	return !slices.ContainsFunc(items, func(item ItemError) bool { return !is(item.Err) })
}
