package engines

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Role names who speaks in a [Message].
type Role string

// The roles that chat engines know.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of a chat; its JSON is that of the OpenAI API.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
}

// BlockSpan says where a block stands: bytes From to To-1 of the content of a message, which begins and ends there at whole characters.
type BlockSpan struct {
	Message int `json:"message"` // index into the messages
	From    int `json:"from"`
	To      int `json:"to"`
}

// BlockSpans says where the blocks of a plan stand, if its Prompt is the content of a message.
func BlockSpans(message int, plan *contextpilot.Plan) []BlockSpan {
	spans := plan.Spans()
	blocks := make([]BlockSpan, len(spans))
	for i, s := range spans {
		blocks[i] = BlockSpan{Message: message, From: s[0], To: s[1]}
	}
	return blocks
}

// Request is one call of an engine.
type Request struct {
	// ID is the request ID that the pilot planned with. Empty: the engine chooses one.
	ID string
	// Model is the served model's name; empty: the engine's default.
	Model string
	// Messages is the whole chat, oldest first.
	Messages []Message
	// Blocks says where the blocks of the messages begin and end, in order: see [BlockSpans]. An engine that keeps what it
	// computed of each block (the local engine with Config.Reuse) needs it; others ignore it.
	Blocks []BlockSpan
	// MaxTokens bounds the answer; 0: the engine's default.
	MaxTokens int
	// Temperature is left to the engine when nil.
	Temperature *float64
	// Extra holds further members of the request body, which win over those set by the engine package. An empty value (not null) removes the
	// member of that name.
	Extra map[string]json.RawMessage
	// Header holds further HTTP headers; engines without HTTP ignore it.
	Header http.Header
}

// Usage is what an engine reports of one answer.
type Usage struct {
	PromptTokens int
	OutputTokens int
	// CachedTokens is the part of PromptTokens that was read from the prefix cache.
	CachedTokens int
	// CachedKnown distinguishes a reported 0 from a count that the engine does not give.
	CachedKnown bool
}

// Response is a finished answer.
type Response struct {
	ID     string // the request's ID
	Text   string
	Finish string // the engine's finish reason, for example "stop" or "length"
	// Choices are the choices of an answer that was not streamed, as the server sent them: they may hold tool calls, log probabilities, and
	// more answers than Text. An engine over HTTP does not stream if [Request].Extra has the member stream with the value false; nil: the
	// answer was streamed, or the engine has only Text.
	Choices json.RawMessage
	Usage   Usage
	// Context says how the answer fits the compressed context that it was given from; nil: there was none, or it is not known.
	Context *ContextFit
	// TTFT is the time from the call to the first piece of the answer, Total to its end. A simulator reports
	// modelled times and does not wait.
	TTFT, Total time.Duration
}

// ContextFit says whether a compressed context was made for a question, by where the answer looks in it.
type ContextFit struct {
	// Drift is how far what the answer attended to is from what the notes did by which the context was chosen, in nats of relative
	// entropy more than pieces of the notes themselves.
	Drift float64 `json:"drift"`
	// OtherTask: it is so far that the question is probably of another task than the context's, which may lack what was asked for.
	OtherTask bool `json:"other_task"`
}

// Engine generates answers. Implementations are safe for concurrent use.
type Engine interface {
	// Name says what answers, for tables and logs; a simulator says that it is one.
	Name() string
	// Generate runs one request. Each piece of the answer is given to onText (which may be nil) as it arrives,
	// never twice; an error from onText cancels the request and is returned. An error after the first piece
	// wraps [ErrInterrupted], and the Response then holds what had arrived.
	Generate(ctx context.Context, req Request, onText func(piece string) error) (Response, error)
	// Subscribe registers sink for what the engine reports about its cache: Shrunk, Gone and Cleared, and Served
	// when an answer is complete. Sinks are called one event batch at a time, in order, and must not block.
	// The returned function ends the subscription. An engine that cannot report evictions only reports Served.
	Subscribe(sink func(events ...contextpilot.Event)) (cancel func())
}

// Errors that callers can act on; they are wrapped with what was being done and with which engine.
var (
	// ErrUnreachable: no connection to the engine could be made, or none lasted until it began to answer.
	ErrUnreachable = errors.New("engine unreachable")
	// ErrNotTaken: the engine has not looked at the request, so any other may be asked. It is wrapped together with ErrUnreachable
	// if no connection could be made, and with ErrRefused if the engine has too much to do or is not ready.
	ErrNotTaken = errors.New("engine did not take the request")
	// ErrInterrupted: the engine took the request and the answer broke off; pieces of it may have been given. It was
	// not repeated.
	ErrInterrupted = errors.New("answer interrupted")
	// ErrRefused: the engine answered with an error status.
	ErrRefused = errors.New("engine refused the request")
)
