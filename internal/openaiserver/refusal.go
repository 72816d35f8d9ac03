package openaiserver

import (
	"fmt"
	"net/http"
	"strconv"
)

// Refusal is an error that a client gets.
type Refusal struct {
	Status  int
	Param   string // the member of the body that is wrong; "": none
	Message string
}

func (e *Refusal) Error() string { return strconv.Itoa(e.Status) + " " + e.Message }

// Wrong refuses a member of the body.
func Wrong(param, format string, args ...any) *Refusal {
	return &Refusal{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

// body is an error in OpenAI's shape.
func (e *Refusal) body() []byte {
	kind := "invalid_request_error"
	switch {
	case e.Status == http.StatusNotFound:
		kind = "not_found_error"
	case e.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.Status >= 500:
		kind = "server_error"
	}
	var param *string
	if e.Param != "" {
		param = &e.Param
	}
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	return encode(map[string]body{"error": {e.Message, kind, param, e.Status}})
}

// Write answers with the error.
func (e *Refusal) Write(w http.ResponseWriter) {
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.Status, e.body())
}

// WriteJSON answers with a value that can be JSON.
func WriteJSON(w http.ResponseWriter, v any) { writeJSON(w, http.StatusOK, encode(v)) }

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
