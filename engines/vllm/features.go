package vllm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
)

// Support says whether the server has a feature: Has, how that is Known, and what told it.
type Support struct {
	Known bool   // Has was found out
	Has   bool   // false unless Known
	How   string // what told: the server's version, its schema, one of its answers
}

// String returns "yes", "no" or "not known", with what told.
func (s Support) String() string { return selfhosted.Support(s).String() }

// Features is what was found out about a server.
type Features struct {
	Version   string    // as the server says it; "": it does not
	Models    []string  // the names it serves
	Adapters  []string  // of these, the adapters (LoRA): their prompts share no blocks with the model's
	Window    int       // tokens of prompt and answer; 0: not told
	BlockSize int       // tokens of a cache block; 0: not told. Only prefixes of whole blocks are reused
	Blocks    int       // cache blocks of each rank; 0: not told
	Started   time.Time // when its process was started; zero: not told

	RequestID    Support // takes our request ID; told by an answer
	Session      Support // takes session_id
	Salt         Support // takes cache_salt
	Priority     Support // has a member priority; whether it schedules by it, only a request shows
	PromptTokens Support // gives the prompt's tokens with an answer
	CachedTokens Support // reports cached tokens; told by an answer
	Tokenize     Support // has a tokenizer to ask
	EventSources Support // says where its cache events are published
	ResetCache   Support // lets its cache be emptied
	Metrics      Support // has metrics
	PrefixCache  Support // reuses prefixes at all; without it there is nothing to gain
}

// Features returns what the last [Engine.Detect] and the answers since then have told.
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
	d := detection{engine: e}
	d.server(ctx)
	d.members()
	d.metrics(ctx)
	d.endpoints(ctx)
	if ctx.Err() != nil {
		return Features{}, fmt.Errorf("vllm: what the server can do: %w", ctx.Err())
	}
	e.mu.Lock()
	// What only answers tell stays, unless another version may answer now.
	if e.found.Version == d.found.Version && e.found.Started.Equal(d.found.Started) {
		d.found.RequestID, d.found.CachedTokens = e.found.RequestID, e.found.CachedTokens
		if e.found.PromptTokens.Known {
			d.found.PromptTokens = e.found.PromptTokens
		}
	}
	e.found = d.found
	e.mu.Unlock()
	return e.Features(), nil
}

// detection is one Detect on its way.
type detection struct {
	engine  *Engine
	release selfhosted.Version
	api     selfhosted.Schema
	found   Features
}

func (d *detection) server(ctx context.Context) {
	client := d.engine.client
	var v struct {
		Version string `json:"version"`
	}
	if client.Read(ctx, "/version", &v) == nil {
		d.found.Version = v.Version
	}
	d.release = selfhosted.ParseVersion(d.found.Version)
	d.api = client.Schema(ctx)
	models := client.Models(ctx)
	d.found.Models, d.found.Adapters, d.found.Window = models.IDs, models.Adapters, models.Window
}

// members finds which members the body of a chat may have: by the schema, else by the version. First releases are those
// of the releases that were read; see docs for where in between nothing is known.
func (d *detection) members() {
	member := func(name string, otherwise selfhosted.Support) Support {
		return Support(selfhosted.First(d.api.Member("ChatCompletionRequest", name), otherwise))
	}
	f := &d.found
	f.Session = member("session_id", d.release.Since(0, 28, 0, false))
	f.PromptTokens = member("return_token_ids", d.release.Since(0, 10, 2, true))
	f.Salt = member("cache_salt", selfhosted.Unknown("no schema"))
	f.Priority = member("priority", selfhosted.Unknown("no schema"))
}

func (d *detection) metrics(ctx context.Context) {
	m, err := d.engine.Metrics(ctx)
	d.found.Metrics = Support(selfhosted.Answered("GET /metrics", err))
	switch m.PrefixCaching {
	case "True":
		d.found.PrefixCache = Support(selfhosted.Yes("vllm:cache_config_info has enable_prefix_caching"))
	case "False":
		d.found.PrefixCache = Support(selfhosted.No("vllm:cache_config_info has enable_prefix_caching False"))
	}
	d.found.BlockSize, d.found.Blocks, d.found.Started = m.BlockSize, m.Blocks, m.Started
}

func (d *detection) endpoints(ctx context.Context) {
	_, err := d.engine.EventSources(ctx)
	d.found.EventSources = Support(selfhosted.Answered("GET /kv_event_sources", err))
	_, err = d.engine.Tokenize(ctx, "a")
	d.found.Tokenize = Support(selfhosted.Answered("POST /tokenize", err))
	d.found.ResetCache = Support(selfhosted.First(d.api.Path("/reset_prefix_cache"), selfhosted.Unknown("no schema, and trying it would empty the cache")))
}
