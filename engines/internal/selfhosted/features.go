package selfhosted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Features is what was found out about a server.
type Features struct {
	Version   string    // as the server reports it; "": it does not
	Models    []string  // the names it serves
	Adapters  []string  // of these, the adapters (LoRA): their prompts share no blocks with the model's
	Window    int       // tokens of prompt and answer; 0: not known
	BlockSize int       // tokens of a cache block (vLLM) or page (SGLang); 0: not known. Only prefixes of whole ones are reused
	Blocks    int       // cache blocks of each rank; 0: not known (vLLM only)
	MaxTokens int       // tokens that the cache of each rank holds; 0: not known (SGLang only)
	Started   time.Time // when its process was started; zero: not known, as when it collects metrics of several processes

	RequestID    Support // takes our request ID; only an answer shows it
	Session      Support // takes session_id
	Salt         Support // takes cache_salt
	ExtraKey     Support // takes extra_key, which separates prompts like a salt (SGLang only)
	Priority     Support // vLLM: has a member priority, only a request shows whether it schedules by it; SGLang: schedules by it
	PromptTokens Support // gives the prompt's tokens with an answer (SGLang: one that is not streamed)
	CachedTokens Support // reports cached tokens; of vLLM, only an answer shows it
	Tokenize     Support // has a tokenizer to ask
	EventSources Support // says where its cache events are published
	ResetCache   Support // lets its cache be emptied
	Metrics      Support // has metrics
	PrefixCache  Support // reuses prefixes at all; without it there is nothing to gain
}

// Features returns what the last [Engine.Detect] and the answers since then have shown.
func (e *Engine) Features() Features {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.found
	f.Models, f.Adapters = slices.Clone(f.Models), slices.Clone(f.Adapters)
	return f
}

// Detect asks the server what it is and what it can do, with some small GETs and one question to its tokenizer. Call it
// before the first chat, and again when the server was restarted. It fails only if the server is not reachable or not
// healthy; what it could not find out is not known.
func (e *Engine) Detect(ctx context.Context) (Features, error) {
	if err := e.Health(ctx); err != nil {
		return Features{}, err
	}
	f := e.detect(ctx)
	if ctx.Err() != nil {
		return Features{}, fmt.Errorf("%s: what the server can do: %w", e.dialect.name, ctx.Err())
	}
	e.mu.Lock()
	// What only answers show stays, unless another version may answer now.
	if e.found.Version == f.Version && e.found.Started.Equal(f.Started) {
		f.RequestID = e.found.RequestID
		if !f.CachedTokens.Known {
			f.CachedTokens = e.found.CachedTokens
		}
		if e.found.PromptTokens.Known {
			f.PromptTokens = e.found.PromptTokens
		}
	}
	e.found = f
	e.mu.Unlock()
	return e.Features(), nil
}

// detect asks everything. A member of a chat's body is known by the server's schema, otherwise by its version.
func (e *Engine) detect(ctx context.Context) (f Features) {
	api := parsed(ctx, e, "/openapi.json", ParseSchema)
	models := parsed(ctx, e, "/v1/models", ParseModels)
	f.Models, f.Adapters, f.Window = models.IDs, models.Adapters, models.Window

	m, err := e.Metrics(ctx)
	f.Metrics = answered("GET /metrics", err)
	f.BlockSize, f.Blocks, f.Started = m.BlockSize, m.Blocks, m.Started
	switch m.PrefixCaching {
	case "True":
		f.PrefixCache = Yes(cacheConfig + " has enable_prefix_caching")
	case "False":
		f.PrefixCache = No(cacheConfig + " has enable_prefix_caching False")
	}

	e.dialect.describe(ctx, e, &f)
	release := ParseVersion(f.Version)
	for _, member := range e.dialect.members {
		otherwise := Unknown("no schema")
		if member.since != (since{}) {
			otherwise = release.Since(member.since)
		}
		*member.feature(&f) = First(api.Member("ChatCompletionRequest", member.name), otherwise)
	}

	_, err = e.Tokenize(ctx, "a")
	f.Tokenize = answered("POST /tokenize", err)
	f.ResetCache = First(api.Path(e.dialect.reset), Unknown("no schema, and trying it would empty the cache"))
	return f
}

// answered is the support for an endpoint that was tried: yes without an error, no if the server answers that it is not
// there, not known otherwise.
func answered(what string, err error) Support {
	status, isStatus := errors.AsType[*openai.StatusError](err)
	switch {
	case err == nil:
		return Yes(what + " answers")
	case errors.Is(err, ErrNotOffered):
		return No(what + " is not there")
	case isStatus:
		return Unknown(fmt.Sprintf("%s: status %d", what, status.Code))
	case errors.Is(err, engines.ErrUnreachable), errors.Is(err, engines.ErrInterrupted):
		return Unknown(what + " was not answered")
	}
	return Unknown(what + " was answered in another form")
}
