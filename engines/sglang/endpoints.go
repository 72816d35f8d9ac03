package sglang

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
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
// begins. These are the tokens that the cache is made of. Releases whose tokenizer takes no messages refuse it.
func (e *Engine) TokenizeChat(ctx context.Context, messages []engines.Message) ([]uint32, error) {
	return e.client.TokenizeChat(ctx, messages)
}

// TokenizeRequest returns the tokens of the prompt of a body that was made for the chats or the plain completions, with all in it that
// changes them: tools, templates and their arguments. Several prompts in one body are refused.
func (e *Engine) TokenizeRequest(ctx context.Context, body []byte) ([]uint32, error) {
	return e.client.TokenizeRequest(ctx, body)
}

// ResetCache empties the server's prefix cache (POST /flush_cache) and reports Cleared to the subscribers at once. While
// requests run or wait it is not emptied, ErrBusy.
func (e *Engine) ResetCache(ctx context.Context) error {
	_, err := e.client.Ask(ctx, http.MethodPost, "/flush_cache", nil)
	if status, ok := errors.AsType[*openai.StatusError](err); ok && status.Code == http.StatusBadRequest {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return err
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
	BlockSize        int    // tokens of a page; 0: not told
	// MayDial says that the engine may not listen at Endpoint but connect to it, because it names a host: if nothing
	// comes while Replay has events, listen there.
	MayDial bool
}

// maxRanks bounds what a server's claim of its number of ranks costs.
const maxRanks = 4096

// EventSources asks the server where it publishes its cache events, in the order of ranks. None: it publishes none, or is
// a release that does not say where; then its address must be configured.
func (e *Engine) EventSources(ctx context.Context) ([]EventSource, error) {
	i, path, err := e.info(ctx)
	if err != nil {
		return nil, err
	}
	p := i.Events
	if p == nil || p.Publisher != "zmq" || p.Port <= 0 {
		return nil, nil
	}
	if p.Ranks > maxRanks {
		return nil, fmt.Errorf("sglang: answer of %s has %d ranks, more than %d", path, p.Ranks, maxRanks)
	}
	sources := make([]EventSource, 0, max(p.Ranks, 1))
	for rank := range max(p.Ranks, 1) {
		at := selfhosted.AtPort(p.Host, p.Port+rank, e.chats.Host())
		s := EventSource{Rank: rank, Endpoint: at.Address, Topic: p.Topic, BlockSize: max(p.BlockSize, 0), MayDial: !at.Wildcard}
		if p.ReplayPort > 0 {
			s.Replay = selfhosted.AtPort(p.Host, p.ReplayPort+rank, e.chats.Host()).Address
		}
		sources = append(sources, s)
	}
	return sources, nil
}
