package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Bounds of what is kept of an error answer.
const (
	maxErrorBody    = 64 << 10
	maxErrorMessage = 500
)

// StatusError is an answer of the server that is an error. It wraps [engines.ErrRefused].
type StatusError struct {
	// Code is the HTTP status; in an error reported inside a 200 answer, the code given there or 0.
	Code int
	// Message is the server's own text, shortened to 500 bytes, on one line.
	Message string
	// RetryAfter is what the server asked for, 0 if it did not.
	RetryAfter time.Duration
}

// OfRequest reports whether the request is to blame, with its model, its key or what it asks for, as no other server would
// take it either: the statuses 400 to 499 but for 408, 425 and 429, which depend on the server's time and load.
func (e *StatusError) OfRequest() bool {
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Code >= 400 && e.Code < 500
}

// Error returns the status and the server's message.
func (e *StatusError) Error() string {
	var b strings.Builder
	b.WriteString(engines.ErrRefused.Error())
	if e.Code != 0 {
		fmt.Fprintf(&b, ": status %d", e.Code)
		if text := http.StatusText(e.Code); text != "" {
			b.WriteString(" " + text)
		}
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Unwrap returns [engines.ErrRefused].
func (e *StatusError) Unwrap() error { return engines.ErrRefused }

// notTakenError marks the failure of a request that the server has not looked at. It is an [engines.ErrNotTaken], and
// says what it wraps.
type notTakenError struct{ error }

func (e notTakenError) Unwrap() error        { return e.error }
func (e notTakenError) Is(target error) bool { return target == engines.ErrNotTaken }

// timeoutError says which of Config.Timeouts ran out. It is an os.ErrDeadlineExceeded.
type timeoutError struct {
	what  string
	after time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s for %v", e.what, e.after) }
func (e *timeoutError) Timeout() bool { return true }
func (e *timeoutError) Unwrap() error { return os.ErrDeadlineExceeded }

// readStatusError builds the error for an answer whose status is not 200. It reads a bounded part of the body.
func readStatusError(response *http.Response, now time.Time) *StatusError {
	// What could be read before a fault is still worth showing.
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	return &StatusError{
		Code:       response.StatusCode,
		Message:    errorMessage(body, response.Header.Get("Content-Type")),
		RetryAfter: pause.RetryAfter(response.Header.Get("Retry-After"), now),
	}
}

// errorMessage finds the human text of an error body in the shapes that the engines use.
func errorMessage(body []byte, contentType string) string {
	var shapes struct {
		Error   json.RawMessage `json:"error"`   // OpenAI, vLLM, llama.cpp: {"message":…}; some proxies: a string
		Message string          `json:"message"` // older vLLM and SGLang
		Detail  json.RawMessage `json:"detail"`  // FastAPI: a string or a list
	}
	if json.Unmarshal(body, &shapes) == nil {
		if reported := parseReported(shapes.Error); reported != nil && reported.Message != "" {
			return reported.Message
		}
		if shapes.Message != "" {
			return excerpt(shapes.Message, maxErrorMessage)
		}
		var detail string
		if json.Unmarshal(shapes.Detail, &detail) == nil && detail != "" {
			return excerpt(detail, maxErrorMessage)
		}
	}
	text := string(body)
	if strings.Contains(contentType, "html") {
		text = stripTags(text)
	}
	return excerpt(text, maxErrorMessage)
}

// parseReported reads an "error" member: an object with message and code, or just a string. Nil if there is none.
func parseReported(raw json.RawMessage) *StatusError {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &StatusError{Message: excerpt(text, maxErrorMessage)}
	}
	var object struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"` // a number, or in OpenAI's answers a word
	}
	if json.Unmarshal(raw, &object) != nil || object.Message == "" {
		return &StatusError{Message: excerpt(string(raw), maxErrorMessage)}
	}
	code, err := strconv.Atoi(string(object.Code))
	if err != nil {
		code = 0
	}
	return &StatusError{Code: code, Message: excerpt(object.Message, maxErrorMessage)}
}

// excerpt makes server text fit for one line of a log: no control characters, no runs of spaces, at most limit
// bytes.
func excerpt(text string, limit int) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		if b.Len()+utf8.RuneLen(r)+1 > limit {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// stripTags leaves the text of an error page. It is for reading, not for safety.
func stripTags(html string) string {
	var b strings.Builder
	inTag := false
	for _, r := range html {
		switch {
		case r == '<':
			inTag = true
			b.WriteByte(' ')
		case r == '>':
			inTag = false
		case !inTag:
			b.WriteRune(r)
		}
	}
	return b.String()
}
