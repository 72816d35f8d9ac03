package selfhosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// ask sends one question and returns the answer's body. A missing endpoint is ErrNotOffered.
func (e *Engine) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	patient, cancel := context.WithTimeout(ctx, e.config.Patience)
	defer cancel()
	answer, err := e.chats.Do(patient, method, path, body)
	if err != nil && patient.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: no answer for %v: %w", engines.ErrUnreachable, e.config.Patience, err)
	}
	if status, ok := errors.AsType[*openai.StatusError](err); ok {
		switch status.Code {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return nil, fmt.Errorf("%w: %w", ErrNotOffered, err)
		}
	}
	return answer, err
}

// read asks for JSON and decodes it into to.
func (e *Engine) read(ctx context.Context, path string, to any) error {
	body, err := e.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return nil
}

// parsed asks for a document and reads it with parse; the zero value if the server does not give it.
func parsed[T any](ctx context.Context, e *Engine, path string, parse func([]byte) (T, error)) T {
	body, err := e.ask(ctx, http.MethodGet, path, nil)
	if err == nil {
		if v, err := parse(body); err == nil {
			return v
		}
	}
	return *new(T)
}

// Health returns nil if the server reports that it is well (GET /health).
func (e *Engine) Health(ctx context.Context) error {
	_, err := e.ask(ctx, http.MethodGet, "/health", nil)
	return err
}

// Tokenize returns the tokens of a text, without the special tokens that stand around a whole prompt.
func (e *Engine) Tokenize(ctx context.Context, text string) ([]uint32, error) {
	return e.tokens(ctx, textQuestion(e.chats.Model(), text))
}

// TokenizeChat returns the tokens of a chat as the server will read it, with its template and up to where the answer
// begins. These are the tokens that cache blocks are made of. Releases whose tokenizer takes no messages refuse it.
func (e *Engine) TokenizeChat(ctx context.Context, messages []engines.Message) ([]uint32, error) {
	return e.tokens(ctx, chatQuestion(e.chats.Model(), messages))
}

// TokenizeRequest returns the tokens of the prompt of a body that was made for the chats or the plain completions, with all in it that
// changes them: tools, templates and their arguments. Several prompts in one body are refused.
func (e *Engine) TokenizeRequest(ctx context.Context, body []byte) ([]uint32, error) {
	question, tokens, err := requestQuestion(body)
	if err != nil || tokens != nil {
		return tokens, err
	}
	return e.tokens(ctx, question)
}

func (e *Engine) tokens(ctx context.Context, question []byte) ([]uint32, error) {
	answer, err := e.ask(ctx, http.MethodPost, "/tokenize", question)
	if err != nil {
		return nil, err
	}
	return parseTokens(answer)
}

// ResetCache empties the server's prefix cache and reports Cleared to the subscribers at once: vLLM's own event comes only
// with its next request. vLLM needs development mode for it (VLLM_SERVER_DEV_MODE=1), ErrNotOffered otherwise. While
// requests use the cache it is not emptied, ErrBusy; where a vLLM release does not report that, success is assumed.
func (e *Engine) ResetCache(ctx context.Context) error {
	body, err := e.ask(ctx, http.MethodPost, e.dialect.reset, nil)
	if status, ok := errors.AsType[*openai.StatusError](err); ok && status.Code == e.dialect.busyStatus {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return err
	}
	var answer struct {
		Success *bool `json:"success"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Success != nil && !*answer.Success {
		return fmt.Errorf("%s: reset of the prefix cache: %w", e.dialect.name, ErrBusy)
	}
	e.chats.Report(contextpilot.Event{Kind: contextpilot.Cleared, Scope: e.config.Server.Scope})
	return nil
}

// EventSource is where one rank of the engine publishes its cache events.
type EventSource struct {
	Rank int
	// Endpoint is the ZeroMQ address to subscribe at, and Replay the one to ask for past events, "" if there is none. A
	// wildcard host is replaced by the host of Config.Server.BaseURL.
	Endpoint, Replay string
	Topic            string // prefix of the messages' topic; "": all
	BufferSteps      int    // batches that Replay can give back; 0: not known (vLLM only)
	BlockSize        int    // tokens of a page; 0: not known (SGLang only)
	// MayDial says that the engine may not listen at Endpoint but connect to it, because it names a host: if nothing
	// comes while Replay has events, listen there.
	MayDial bool
	// Local says that Endpoint can be used on the engine's own machine only.
	Local bool
}

// EventSources asks the server where it publishes its cache events, in the order of ranks. None: it publishes none, or is an
// SGLang release that does not say where. A vLLM release without this endpoint is ErrNotOffered. In both cases the address must
// be configured.
func (e *Engine) EventSources(ctx context.Context) ([]EventSource, error) {
	return e.dialect.sources(ctx, e)
}

// Metrics reads the server's metrics (GET /metrics). Names that older releases had count as well.
func (e *Engine) Metrics(ctx context.Context) (Metrics, error) {
	body, err := e.ask(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return Metrics{}, err
	}
	samples, err := ParseMetrics(body)
	if err != nil {
		return Metrics{}, err
	}
	m := e.dialect.metrics(samples)
	m.Started = samples.Started()
	return m, nil
}
