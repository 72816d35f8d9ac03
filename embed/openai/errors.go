package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Errors of an [Embedder], for errors.Is.
var (
	// ErrUnauthorized: the server wants another key, or does not let this one do it.
	ErrUnauthorized = errors.New("server refused the credentials")
	// ErrNoModel: the server has no such model, or no embeddings under this address.
	ErrNoModel = errors.New("server has no such model")
	// ErrTooLong: a text, or the batch, is longer than the model or the server takes.
	ErrTooLong = errors.New("text is too long for the model")
	// ErrUnavailable: the server cannot be reached, is overloaded or is broken. Later may be better.
	ErrUnavailable = errors.New("server is unavailable")
	// ErrRefused: the server refused the request for another reason, such as dimensions that the model cannot give.
	ErrRefused = errors.New("server refused the request")
	// ErrBadAnswer: the answer is none to this request.
	ErrBadAnswer = errors.New("answer of the server makes no sense")
)

// StatusError is an answer that is not 200. It wraps what it stands for.
type StatusError struct {
	// Status is the HTTP status.
	Status int
	// Message is the server's own text, on one line, shortened to 500 bytes.
	Message string
	// RetryAfter is what the server asked for; 0 if it did not.
	RetryAfter time.Duration

	kind error
}

// Error returns what the error stands for, the status and the server's message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%v: status %d", e.kind, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns one of this package's errors.
func (e *StatusError) Unwrap() error { return e.kind }

// Bounds of what is kept of an error's body.
const (
	maxErrorBody = 64 << 10
	maxMessage   = 500
)

// refused makes an error of an answer that is not 200.
func (e *Embedder) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // what there is of it says enough
	message, code := reported(body)
	if e.opts.Key != "" { // some servers repeat it
		message = strings.ReplaceAll(message, e.opts.Key, "[key]")
	}
	return &StatusError{
		Status: res.StatusCode, Message: oneLine(message), RetryAfter: pause.RetryAfter(res.Header.Get("Retry-After"), time.Now()),
		kind: kindOf(res.StatusCode, message, code),
	}
}

// reported finds the text and the code of an error in the shapes that servers use.
func reported(body []byte) (message, code string) {
	var shape struct {
		Error   json.RawMessage `json:"error"`   // OpenAI, vLLM, llama.cpp: an object; Ollama: a string
		Message string          `json:"message"` // SGLang and older vLLM
		Detail  json.RawMessage `json:"detail"`  // FastAPI
	}
	if json.Unmarshal(body, &shape) != nil {
		return string(body), ""
	}
	var object struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(shape.Error, &object) == nil && object.Message != "" {
		return object.Message, object.Type + " " + string(object.Code)
	}
	for _, raw := range []json.RawMessage{shape.Error, shape.Detail} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text, ""
		}
	}
	if shape.Message != "" {
		return shape.Message, ""
	}
	return string(body), ""
}

// kindOf says what an answer stands for. Servers have no common code for a text that is too long: OpenAI and vLLM answer
// 400, llama.cpp 400 or 500.
func kindOf(status int, message, code string) error {
	lower := strings.ToLower(message + " " + code)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ErrUnauthorized
	case status == http.StatusRequestEntityTooLarge, tooLong(lower):
		return ErrTooLong
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented,
		strings.Contains(lower, "model_not_found"), strings.Contains(lower, "not_supported_error"):
		return ErrNoModel
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return ErrUnavailable
	}
	return ErrRefused
}

// tooLong recognises the texts of OpenAI, vLLM, SGLang, llama.cpp, Ollama and text-embeddings-inference.
func tooLong(lower string) bool {
	for _, s := range []string{
		"context length", "context_length", "context size", "exceed_context_size", "too large to process",
		"input is too long", "maximum input length", "longer than the model", "must have less than",
	} {
		if strings.Contains(lower, s) {
			return true
		}
	}
	return false
}

// oneLine makes server text fit for a log.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}
