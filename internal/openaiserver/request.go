package openaiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// ReadBody reads the body of a request, of at most limit bytes, into b. It waits no longer than the timeout (0: as long as it takes), nor
// than the request's context lasts. The error is a [Refusal], or the cause with which the server
// ended the context.
func ReadBody(w http.ResponseWriter, r *http.Request, b *bytes.Buffer, limit int64, timeout time.Duration) error {
	ctx, control := r.Context(), http.NewResponseController(w)
	stop := func() bool { return true }
	if timeout > 0 {
		_ = control.SetReadDeadline(time.Now().Add(timeout)) // where that cannot be done, there is no slow client
		stop = context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	stop()
	tooLong, isTooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		if timeout > 0 {
			_ = control.SetReadDeadline(time.Time{})
		}
		return nil
	case isTooLong:
		return &Refusal{http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body has more than %d bytes", tooLong.Limit)}
	case !errors.Is(context.Cause(ctx), ctx.Err()): // the server ended it
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Refusal{http.StatusRequestTimeout, "", fmt.Sprintf("the body did not come in %v", timeout)}
	}
	return Wrong("", "the body could not be read")
}

// Given reports whether there is a value other than null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Content reads the content of a message: nothing, a text, or a list of texts, which are joined by line breaks, as vLLM does.
func Content(raw json.RawMessage, message int) (string, error) {
	if !Given(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", Wrong("messages", "messages[%d].content %s: want a text, or a list of texts", message, Excerpt(raw))
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", Wrong("messages", "messages[%d].content[%d].type %q: want text", message, i, Shorten(p.Type, 80))
		}
		texts[i] = *p.Text
	}
	return strings.Join(texts, "\n"), nil
}

// Excerpt is a value for an error message.
func Excerpt(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return Shorten(string(raw), 80)
	}
	return Shorten(b.String(), 80)
}

// Shorten cuts a text for an error message.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
