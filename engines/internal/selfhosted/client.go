package selfhosted

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// ErrNotOffered: the server does not have an endpoint, in its version or as it was started.
var ErrNotOffered = errors.New("not offered by this server")

// DefaultPatience bounds one question to a server that is no chat.
const DefaultPatience = 5 * time.Second

// Client asks a server what it has beside the chats. Safe for concurrent use.
type Client struct {
	Chats    *openai.Engine
	Patience time.Duration // bounds each question
	Scope    contextpilot.Scope
}

// Ask sends one question and returns the answer's body. An endpoint that is not there is ErrNotOffered.
func (c *Client) Ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	patient, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	answer, err := c.Chats.Do(patient, method, path, body)
	if err != nil && patient.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: no answer for %v: %w", engines.ErrUnreachable, c.Patience, err)
	}
	if status, ok := errors.AsType[*openai.StatusError](err); ok {
		switch status.Code {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return nil, fmt.Errorf("%w: %w", ErrNotOffered, err)
		}
	}
	return answer, err
}

// Read asks for JSON and decodes it into to.
func (c *Client) Read(ctx context.Context, path string, to any) error {
	body, err := c.Ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return nil
}

// Schema asks for the server's own description; an empty one if it is hidden.
func (c *Client) Schema(ctx context.Context) Schema {
	body, err := c.Ask(ctx, http.MethodGet, "/openapi.json", nil)
	if err != nil {
		return Schema{}
	}
	s, err := ParseSchema(body)
	if err != nil {
		return Schema{}
	}
	return s
}

// Models asks for the models that are served; none if the server does not say.
func (c *Client) Models(ctx context.Context) Models {
	body, err := c.Ask(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return Models{}
	}
	m, err := ParseModels(body)
	if err != nil {
		return Models{}
	}
	return m
}

// Metrics reads /metrics.
func (c *Client) Metrics(ctx context.Context) (Metrics, error) {
	body, err := c.Ask(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return Metrics{}, err
	}
	return ParseMetrics(body)
}

// Tokenize returns the tokens of a text, without the special tokens that stand around a whole prompt.
func (c *Client) Tokenize(ctx context.Context, text string) ([]uint32, error) {
	return c.tokens(ctx, textQuestion(c.Chats.Model(), text))
}

// TokenizeChat returns the tokens of a chat with its template.
func (c *Client) TokenizeChat(ctx context.Context, messages []engines.Message) ([]uint32, error) {
	return c.tokens(ctx, chatQuestion(c.Chats.Model(), messages))
}

// TokenizeRequest returns the tokens of the prompt of a request's body.
func (c *Client) TokenizeRequest(ctx context.Context, body []byte) ([]uint32, error) {
	question, tokens, err := requestQuestion(body)
	if err != nil || tokens != nil {
		return tokens, err
	}
	return c.tokens(ctx, question)
}

func (c *Client) tokens(ctx context.Context, question []byte) ([]uint32, error) {
	answer, err := c.Ask(ctx, http.MethodPost, "/tokenize", question)
	if err != nil {
		return nil, err
	}
	return parseTokens(answer)
}

// Cleared tells the subscribers that the cache is empty.
func (c *Client) Cleared() {
	c.Chats.Report(contextpilot.Event{Kind: contextpilot.Cleared, Scope: c.Scope})
}

// Sink gives events to the subscribers, with the scope of this engine where they have none.
func (c *Client) Sink(events ...contextpilot.Event) {
	scoped := make([]contextpilot.Event, len(events))
	for i, event := range events {
		if event.Scope == (contextpilot.Scope{}) {
			event.Scope = c.Scope
		}
		scoped[i] = event
	}
	c.Chats.Report(scoped...)
}

// Answered is the support for an endpoint that was tried: yes without an error, no if the server says that it is not
// there, not known otherwise.
func Answered(what string, err error) Support {
	status, told := errors.AsType[*openai.StatusError](err)
	switch {
	case err == nil:
		return Yes(what + " answers")
	case errors.Is(err, ErrNotOffered):
		return No(what + " is not there")
	case told:
		return Unknown(fmt.Sprintf("%s: status %d", what, status.Code))
	case errors.Is(err, engines.ErrUnreachable), errors.Is(err, engines.ErrInterrupted):
		return Unknown(what + " was not answered")
	}
	return Unknown(what + " was answered in another form")
}

// NewID makes a request ID.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req-" + hex.EncodeToString(b[:])
}
