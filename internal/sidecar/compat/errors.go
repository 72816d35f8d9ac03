package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// failure is an answer other than 200.
type failure struct {
	status int
	body   any
}

func (f *failure) Error() string { return fmt.Sprintf("answer %d: %v", f.status, f.body) }

// detail is the shape of all errors but /health's: a text, or a list of problems.
type detail struct {
	Detail any `json:"detail"`
}

// problem is a part of a request that is not as it should be, in the words of the reference's validator (pydantic 2).
type problem struct {
	Type  string          `json:"type"`
	Loc   []any           `json:"loc"` // names and positions from "body" or "query" on
	Msg   string          `json:"msg"`
	Input json.RawMessage `json:"input"`
	Ctx   map[string]any  `json:"ctx,omitempty"`
}

var notInitialized = fail(http.StatusServiceUnavailable, "Index not initialized. Call POST /reorder first.")

func fail(status int, text string) *failure { return &failure{status, detail{text}} }

func invalid(problems ...problem) *failure {
	return &failure{http.StatusUnprocessableEntity, detail{problems}}
}

// asFailure is the one place where errors become answers. The text of an error that is not meant for clients stays here.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fail(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fail(http.StatusServiceUnavailable, "the request ended before its answer")
	}
	return fail(http.StatusInternalServerError, "Internal Server Error")
}
