package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// refusal is an error that a client is told.
type refusal struct {
	status  int
	param   string // the member of the body that is wrong; "": none
	message string
}

func (e *refusal) Error() string { return strconv.Itoa(e.status) + " " + e.message }

// wrong refuses a member of the body.
func wrong(param, format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

// errShutdown is why requests end when the server is to end.
var errShutdown = errors.New("the server is shutting down")

func closing() *refusal {
	return &refusal{http.StatusServiceUnavailable, "", errShutdown.Error()}
}

// told is what a client is told of an error, if there still is one.
func (s *Server) told(ctx context.Context, err error) (e refusal, there bool) {
	if known, ok := errors.AsType[*refusal](err); ok {
		return *known, true
	}
	switch {
	case errors.Is(context.Cause(ctx), errShutdown), errors.Is(err, local.ErrClosed):
		return *closing(), true
	case ctx.Err() != nil:
		return refusal{}, false
	case errors.Is(err, engines.ErrRefused):
		_, message, _ := strings.Cut(err.Error(), engines.ErrRefused.Error()+": ")
		param, _, _ := strings.Cut(message, " ")
		param = strings.TrimSuffix(param, ":")
		if !engineMembers[param] && param != "prompt" {
			param = ""
		}
		return *wrong(param, "%s", shorten(message, 512)), true
	}
	s.config.Logger.ErrorContext(ctx, "a completion failed", "error", err)
	return refusal{http.StatusInternalServerError, "", "internal error"}, true
}

// body is an error in OpenAI's shape.
func (e *refusal) body() []byte {
	kind := "invalid_request_error"
	switch {
	case e.status == http.StatusNotFound:
		kind = "not_found_error"
	case e.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.status >= 500:
		kind = "server_error"
	}
	var param *string
	if e.param != "" {
		param = &e.param
	}
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	return encode(map[string]body{"error": {e.message, kind, param, e.status}})
}

func refuse(w http.ResponseWriter, e *refusal) {
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.status, e.body())
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// encode renders what cannot fail to render, with HTML characters as they are.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // nothing here has what JSON has not
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// shorten cuts a text for an error message.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
