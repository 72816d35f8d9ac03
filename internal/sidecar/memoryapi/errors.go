package memoryapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/openai"
	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
	"github.com/ragpilot/ragpilot/memory"
)

// refusal is an error with a status of its own.
type refusal struct {
	status int
	detail string
}

func (e *refusal) Error() string { return e.detail }

func badRequest(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func refuse(detail string) action {
	return func(memory.Store, *http.Request) (any, error) {
		return nil, &refusal{http.StatusNotImplemented, detail}
	}
}

// statuses are those of errors; of several that an error wraps the first counts.
var statuses = []struct {
	status int
	errs   []error
}{
	{http.StatusNotFound, []error{memory.ErrNotFound}},
	{http.StatusConflict, []error{memory.ErrExists}},
	{http.StatusBadRequest, []error{memory.ErrNoScope, memory.ErrEmptyText, memory.ErrBadFilter, memory.ErrInvalid, reqbody.ErrGzip}},
	{http.StatusBadGateway, []error{memory.ErrExtraction}},
	{http.StatusInternalServerError, []error{memory.ErrUnknownOutcome, memory.ErrNotErased}}, // not 503: that asks for the same once more
	{http.StatusInsufficientStorage, []error{memory.ErrFull}},
	{http.StatusServiceUnavailable, []error{memory.ErrUnavailable, embed.ErrNotReady}},
	{0, []error{memory.ErrEmbedding}}, // see embeddingStatus
	{http.StatusGatewayTimeout, []error{context.DeadlineExceeded}},
}

func statusOf(err error) int {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused.status
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge
	}
	if _, unknown := errors.AsType[*reqbody.EncodingError](err); unknown {
		return http.StatusUnsupportedMediaType
	}
	for _, s := range statuses {
		if slices.ContainsFunc(s.errs, func(e error) bool { return errors.Is(err, e) }) {
			return cmp.Or(s.status, embeddingStatus(err))
		}
	}
	return http.StatusInternalServerError
}

// failure is the detail of an answer to what is not the client's doing.
func failure(status int, err error) string {
	switch {
	case errors.Is(err, memory.ErrEmbedding) && status != http.StatusGatewayTimeout:
		return "The embedder of the memories failed: " + embedding(err)
	case status == http.StatusBadGateway:
		return "The model that extracts memories failed; nothing was stored"
	case errors.Is(err, embed.ErrNotReady):
		return "The sentence model of the memories is not ready: ask again"
	case errors.Is(err, memory.ErrEmbedder):
		return "Another embedder than this server's has made the vectors of these memories: " +
			"its operator makes them anew with ragpilot memory reembed"
	case status == http.StatusServiceUnavailable:
		return "The memory store is not available"
	case status == http.StatusInsufficientStorage:
		return "The disk of the memory store is full: this was not stored; what is kept can still be read"
	case status == http.StatusGatewayTimeout && errors.Is(err, memory.ErrEmbedding):
		return "The embedder of the memories took too long"
	case status == http.StatusGatewayTimeout:
		return "The memory store took too long"
	case errors.Is(err, memory.ErrUnknownOutcome):
		return "The memory store failed; whether the change was stored is not known"
	case errors.Is(err, memory.ErrNotErased):
		return "The change is stored, but what it removed is not deleted from the memory store's server yet"
	default:
		return "The memory store failed"
	}
}

// embedding is why an embedder failed, without what a server says: that may repeat a key.
func embedding(err error) string {
	for _, cause := range []error{
		openai.ErrUnauthorized, openai.ErrNoModel, openai.ErrTooLong, openai.ErrUnavailable, openai.ErrRefused, openai.ErrBadAnswer,
	} {
		if !errors.Is(err, cause) {
			continue
		}
		if answer, ok := errors.AsType[*openai.StatusError](err); ok {
			return fmt.Sprintf("%v: status %d", cause, answer.Status)
		}
		return cause.Error()
	}
	return "it gave no usable vectors"
}

// embeddingStatus is 503 if the server of the embedder cannot be reached, and otherwise 502.
func embeddingStatus(err error) int {
	_, answered := errors.AsType[*openai.StatusError](err)
	switch {
	case errors.Is(err, openai.ErrUnavailable) && !answered:
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
