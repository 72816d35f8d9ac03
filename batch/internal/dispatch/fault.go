package dispatch

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Kinds of errors, as [ReplicaStats] counts them.
const (
	KindBusy        = "busy"        // status 429 or 503: too much to do
	KindUnreachable = "unreachable" // no connection, or a gateway that has none
	KindTimeout     = "timeout"     // no answer, or no more of it, in time
	KindInterrupted = "interrupted" // the answer broke off
	KindServer      = "server"      // any other status from 500, and errors without a name
	KindRefused     = "refused"     // the request is wrong
	KindDenied      = "denied"      // no request of this kind would be taken: key or model
	KindSchema      = "schema"      // the answer does not match the schema
)

// Codes of a [Failure].
const (
	CodeRefused  = "refused"   // the engine says that the request is wrong
	CodeTooLarge = "too_large" // the prompt is too long for the model, or the body for the server
	CodeAttempts = "attempts"  // it failed Config.Attempts times
	CodeSchema   = "schema"    // no answer matched the schema
)

// maxMessage bounds a Failure's message, in bytes.
const maxMessage = 500

// maxAfter bounds the wait that an engine may ask for: one try an hour burdens none, and a wait of days would look like the end.
const maxAfter = time.Hour

// fault is what went wrong with an attempt.
type fault struct {
	kind   string
	code   string        // of the Failure, if it is permanent
	status int           // HTTP status; 0: there was none
	after  time.Duration // what the engine asked to wait
	err    error
}

var (
	tooLong = regexp.MustCompile(
		`(?i)context.{0,9}(length|size|window)|maximum.{0,20}(context|length)|too (long|large)|exceed|prompt of \d+ tokens`)
	noModel = regexp.MustCompile(`(?i)\bmodel\b.*(not exist|not found|unknown|not served|only .* is served)|no such model`)
)

// classify says what an engine's error means. The caller's context has not ended.
func classify(err error) fault {
	f := fault{err: err, kind: KindServer}
	status, reported := errors.AsType[*openai.StatusError](err)
	if reported {
		f.status, f.after = status.Code, min(status.RetryAfter, maxAfter)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.kind = KindTimeout
	case errors.Is(err, engines.ErrInterrupted):
		f.kind = KindInterrupted
	case reported && f.status >= 400:
		f.byStatus(status.Message)
	case errors.Is(err, engines.ErrNotTaken) && errors.Is(err, engines.ErrRefused):
		f.kind = KindBusy
	case errors.Is(err, engines.ErrUnreachable), errors.Is(err, engines.ErrNotTaken):
		f.kind = KindUnreachable
	case errors.Is(err, engines.ErrRefused) && !reported:
		f.wrong(err.Error())
	}
	return f
}

func (f *fault) byStatus(message string) {
	switch f.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		f.kind = KindBusy
	case http.StatusBadGateway:
		f.kind = KindUnreachable
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		f.kind = KindTimeout
	case http.StatusUnauthorized, http.StatusForbidden:
		f.kind = KindDenied
	case http.StatusRequestEntityTooLarge:
		f.kind, f.code = KindRefused, CodeTooLarge
	case http.StatusTooEarly:
	default:
		if f.status < 500 {
			f.wrong(message)
		}
	}
}

// wrong classifies a request that the engine says is wrong.
func (f *fault) wrong(message string) {
	f.kind, f.code = KindRefused, CodeRefused
	switch {
	case noModel.MatchString(message):
		f.kind, f.code = KindDenied, ""
	case tooLong.MatchString(message):
		f.code = CodeTooLarge
	}
}

// failure is what is stored of a permanent fault.
func (f *fault) failure(code string) Failure {
	return Failure{Code: code, Message: shorten(f.err.Error()), Status: f.status}
}

// shorten makes a text fit for one line.
func shorten(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
