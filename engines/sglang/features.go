package sglang

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
	How   string // what told: the server's version, its schema, its settings, one of its answers
}

// String returns "yes", "no" or "not known", with what told.
func (s Support) String() string { return selfhosted.Support(s).String() }

// Features is what was found out about a server.
type Features struct {
	Version   string    // as the server says it; "": it does not
	Models    []string  // the names it serves
	Adapters  []string  // of these, the adapters (LoRA): their prompts share no blocks with the model's
	Window    int       // tokens of prompt and answer; 0: not told
	BlockSize int       // tokens of a page of the cache; 0: not told. Only prefixes of whole pages are reused
	MaxTokens int       // tokens that the cache of each rank holds; 0: not told
	Started   time.Time // when its process was started; zero: not told, as when it collects metrics of several processes

	RequestID    Support // takes our request ID; told by an answer
	Session      Support // takes session_id
	Salt         Support // takes cache_salt
	ExtraKey     Support // takes extra_key, which separates prompts like a salt
	Priority     Support // schedules by priority
	PromptTokens Support // gives the prompt's tokens with an answer that is not streamed
	CachedTokens Support // reports cached tokens
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
	d.settings(ctx)
	d.members()
	d.endpoints(ctx)
	if ctx.Err() != nil {
		return Features{}, fmt.Errorf("sglang: what the server can do: %w", ctx.Err())
	}
	e.mu.Lock()
	// What only answers tell stays, unless another version may answer now.
	if e.found.Version == d.found.Version && e.found.Started.Equal(d.found.Started) {
		d.found.RequestID = e.found.RequestID
		if !d.found.CachedTokens.Known {
			d.found.CachedTokens = e.found.CachedTokens
		}
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
	engine *Engine
	api    selfhosted.Schema
	found  Features
}

func (d *detection) server(ctx context.Context) {
	d.api = d.engine.client.Schema(ctx)
	models := d.engine.client.Models(ctx)
	d.found.Models, d.found.Adapters, d.found.Window = models.IDs, models.Adapters, models.Window
}

func (d *detection) settings(ctx context.Context) {
	f := &d.found
	i, path, err := d.engine.info(ctx)
	if err != nil {
		f.EventSources = Support(selfhosted.Answered("GET "+path, err))
		return
	}
	f.Version, f.BlockSize, f.MaxTokens = i.Version, max(i.PageSize, 0), max(i.MaxTokens, 0)
	f.CachedTokens = setting(i.CacheReport, path+" has enable_cache_report")
	f.Priority = setting(i.Priority, path+" has enable_priority_scheduling")
	switch off := i.NoCache; {
	case off == nil:
	case *off:
		f.PrefixCache = Support(selfhosted.No(path + " has disable_radix_cache"))
	default:
		f.PrefixCache = Support(selfhosted.Yes(path + " has disable_radix_cache: false"))
	}
	if i.Events != nil {
		f.EventSources = Support(selfhosted.Yes(path + " has kv_events"))
		f.BlockSize = max(i.Events.BlockSize, f.BlockSize)
	} else {
		f.EventSources = Support(selfhosted.Unknown(path + " has no kv_events: none are published, or the release does not say"))
	}
}

// setting is the support for what a server was started with or without.
func setting(on *bool, what string) Support {
	switch {
	case on == nil:
		return Support{}
	case *on:
		return Support(selfhosted.Yes(what))
	}
	return Support(selfhosted.No(what + ": false"))
}

// members finds which members the body of a chat may have: by the schema, else by the version. First releases are those
// of the releases that were read.
func (d *detection) members() {
	release := selfhosted.ParseVersion(d.found.Version)
	member := func(name string, otherwise selfhosted.Support) Support {
		return Support(selfhosted.First(d.api.Member("ChatCompletionRequest", name), otherwise))
	}
	f := &d.found
	f.Session = member("session_id", release.Since(0, 5, 20, false))
	f.Salt = member("cache_salt", release.Since(0, 5, 20, false))
	f.ExtraKey = member("extra_key", selfhosted.Unknown("no schema"))
	f.PromptTokens = member("return_prompt_token_ids", release.Since(0, 5, 23, false))
}

func (d *detection) endpoints(ctx context.Context) {
	f := &d.found
	m, err := d.engine.Metrics(ctx)
	f.Metrics = Support(selfhosted.Answered("GET /metrics", err))
	f.Started = m.Started
	_, err = d.engine.Tokenize(ctx, "a")
	f.Tokenize = Support(selfhosted.Answered("POST /tokenize", err))
	f.ResetCache = Support(selfhosted.First(d.api.Path("/flush_cache"), selfhosted.Unknown("no schema, and trying it would empty the cache")))
}
