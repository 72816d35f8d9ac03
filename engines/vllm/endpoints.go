package vllm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
)

// Health returns nil if the server says that it is well (GET /health).
func (e *Engine) Health(ctx context.Context) error {
	_, err := e.client.Ask(ctx, http.MethodGet, "/health", nil)
	return err
}

// Tokenize returns the tokens of a text, without the special tokens that stand around a whole prompt.
func (e *Engine) Tokenize(ctx context.Context, text string) ([]uint32, error) {
	return e.client.Tokenize(ctx, text)
}

// TokenizeChat returns the tokens of a chat as the server will read it, with its template and up to where the answer
// begins. These are the tokens that cache blocks are made of.
func (e *Engine) TokenizeChat(ctx context.Context, messages []engines.Message) ([]uint32, error) {
	return e.client.TokenizeChat(ctx, messages)
}

// TokenizeRequest returns the tokens of the prompt of a body that was made for the chats or the plain completions, with all in it that
// changes them: tools, templates and their arguments. Several prompts in one body are refused.
func (e *Engine) TokenizeRequest(ctx context.Context, body []byte) ([]uint32, error) {
	return e.client.TokenizeRequest(ctx, body)
}

// ResetCache empties the server's prefix cache and reports Cleared to the subscribers at once: the engine's own event
// comes only with its next request. It needs a server in development mode (VLLM_SERVER_DEV_MODE=1), ErrNotOffered
// otherwise. While requests use the cache it is not emptied, ErrBusy; releases that do not say so are believed.
func (e *Engine) ResetCache(ctx context.Context) error {
	body, err := e.client.Ask(ctx, http.MethodPost, "/reset_prefix_cache", nil)
	if err != nil {
		return err
	}
	var answer struct {
		Success *bool `json:"success"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Success != nil && !*answer.Success {
		return fmt.Errorf("vllm: reset of the prefix cache: %w", ErrBusy)
	}
	e.client.Cleared()
	return nil
}

// EventSource is where one rank of the engine publishes its cache events.
type EventSource struct {
	Rank int
	// Endpoint is the ZeroMQ address to subscribe at, and Replay the one to ask for past events, "" if there is none. A
	// wildcard host is replaced by the host of Config.Server.BaseURL.
	Endpoint, Replay string
	Topic            string // prefix of the messages' topic; "": all
	BufferSteps      int    // batches that Replay can give back; 0: not told
	// MayDial says that the engine may not listen at Endpoint but connect to it, because it names a host: if nothing
	// comes while Replay has events, listen there.
	MayDial bool
	// Local says that Endpoint can be used on the engine's own machine only.
	Local bool
}

// EventSources asks the server where it publishes its cache events, in the order of ranks. None: it publishes none. A
// release without this endpoint is ErrNotOffered; its address must be configured.
func (e *Engine) EventSources(ctx context.Context) ([]EventSource, error) {
	var ranks map[string]struct {
		Publisher string `json:"publisher"`
		Endpoint  string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
		Topic     string `json:"topic"`
		Steps     int    `json:"buffer_steps"`
	}
	if err := e.client.Read(ctx, "/kv_event_sources", &ranks); err != nil {
		return nil, err
	}
	var sources []EventSource
	for name, r := range ranks {
		rank, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("vllm: answer of /kv_event_sources has the rank %q", name)
		}
		if r.Publisher != "zmq" || r.Endpoint == "" {
			continue
		}
		at := selfhosted.Resolve(r.Endpoint, e.chats.Host())
		s := EventSource{
			Rank: rank, Endpoint: at.Address, Topic: r.Topic, BufferSteps: max(r.Steps, 0),
			MayDial: !at.Wildcard && !at.Local, Local: at.Local,
		}
		if r.Replay != "" {
			s.Replay = selfhosted.Resolve(r.Replay, e.chats.Host()).Address
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b EventSource) int { return cmp.Compare(a.Rank, b.Rank) })
	return sources, nil
}
