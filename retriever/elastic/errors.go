package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// ErrMapping: a document, or a mapping, does not fit the fields of the index as they are mapped, for example a word in a
// field of numbers. It wraps store.ErrBadDocument.
var ErrMapping = fmt.Errorf("%w: it does not fit the mapping", store.ErrBadDocument)

// ServerError is what the server, or a proxy in front of it, answered in place of a result.
type ServerError struct {
	Status int
	Type   string // such as "index_not_found_exception"; "" if the answer is not Elasticsearch's
	Reason string
}

// Error returns status, type and reason.
func (e *ServerError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("status %d: %.200s", e.Status, e.Reason)
	}
	return fmt.Sprintf("status %d: %s: %.500s", e.Status, e.Type, e.Reason)
}

// cause is an error of the server in JSON. The outermost one often only says that something failed.
type cause struct {
	Type     string  `json:"type"`
	Reason   string  `json:"reason"`
	CausedBy *cause  `json:"caused_by"`
	Roots    []cause `json:"root_cause"`
	Shards   []struct {
		Reason cause `json:"reason"`
	} `json:"failed_shards"`
}

// flat returns the type that says most, and all reasons, the outermost first.
func (c cause) flat() (kind, reason string) {
	kind = c.Type
	if len(c.Roots) > 0 {
		kind = c.Roots[0].Type
	}
	var reasons []string
	add := func(r string) {
		if r != "" && (len(reasons) == 0 || reasons[len(reasons)-1] != r) {
			reasons = append(reasons, r)
		}
	}
	for at := &c; at != nil; at = at.CausedBy {
		add(at.Reason)
	}
	if len(c.Shards) > 0 { // the others say the same
		for at := &c.Shards[0].Reason; at != nil; at = at.CausedBy {
			add(at.Reason)
		}
	}
	return kind, strings.Join(reasons, ": ")
}

// maxErrorBytes bounds what is read of an error's body.
const maxErrorBytes = 64 << 10

// answered makes an error of an answer that is not 2xx.
func answered(res *http.Response, bad error) error {
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil {
		return unreachable(err)
	}
	e := &ServerError{Status: res.StatusCode}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	var c cause
	if json.Unmarshal(raw, &body) == nil && json.Unmarshal(body.Error, &c) == nil {
		e.Type, e.Reason = c.flat()
	} else {
		e.Reason = string(bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("?")))
	}
	return e.typed(bad)
}

// typed wraps the error with what it stands for. What the server calls a bad request is bad.
func (e *ServerError) typed(bad error) error {
	kind := e.kind(bad)
	if kind == nil {
		return e
	}
	if strings.Contains(e.Reason, "dimension") && errors.Is(kind, bad) {
		return fmt.Errorf("%w: %w: that of Options.Embedder, and that of the field Options.Layout.Vector: %w", bad, store.ErrDimension, e)
	}
	if errors.Is(kind, store.ErrNoIndex) {
		return fmt.Errorf("%w (Create makes it): %w", kind, e)
	}
	return fmt.Errorf("%w: %w", kind, e)
}

func (e *ServerError) kind(bad error) error {
	switch e.Type {
	case "index_not_found_exception", "alias_not_found_exception", "aliases_not_found_exception":
		return store.ErrNoIndex
	case "mapper_parsing_exception", "document_parsing_exception", "strict_dynamic_mapping_exception":
		return ErrMapping
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return store.ErrUnauthorized
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return store.ErrUnavailable
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return bad
	case http.StatusNotFound:
		if e.Type != "" {
			return store.ErrNoIndex
		}
	}
	return nil
}

// unreachable is an error of the connection. The end of a context is not one of the store's.
func unreachable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}
