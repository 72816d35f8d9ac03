package vllm

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Request is a chat with what vLLM takes beside it.
type Request struct {
	engines.Request
	// Tenant separates this prompt's cache from other tenants'. Empty: the tenant of Config.Server.Scope. Events name the
	// configured scope all the same: a pilot that plans for several tenants needs an engine for each.
	Tenant string
	// Session names the conversation. It is sent if Config.Sessions is set and the server takes it.
	Session string
	// Priority is sent if it is not nil; lower is earlier. A server without priority scheduling refuses any but 0.
	Priority *int
}

// Response is an answer with what vLLM tells beside it.
type Response struct {
	engines.Response
	// PromptTokens are the prompt's tokens, with the chat's template; nil if they were not asked for, or not given.
	PromptTokens []uint32
}

// Chat runs one request; see [openai.Engine.Generate] for onText and for errors. A request without an ID gets one. Members
// of req.Extra and of Config.Server.Extra win over those that this package sets.
func (e *Engine) Chat(ctx context.Context, req Request, onText func(piece string) error) (Response, error) {
	if req.ID == "" {
		req.ID = selfhosted.NewID()
	}
	own := e.config.Salt(cmp.Or(req.Tenant, e.config.Server.Scope.Tenant))
	sent := req.Request
	sent.Extra = selfhosted.With(req.Extra, selfhosted.With(e.config.Server.Extra, e.members(req, own)))

	salt, salted := selfhosted.Text(sent.Extra["cache_salt"]) // the request may have its own

	var prompt selfhosted.Prompt
	echo := ""
	told := false
	response, err := e.chats.Generate(openai.WithChunks(ctx, func(data []byte) {
		prompt.Chunk(data)
		if echo == "" {
			echo = selfhosted.AnswerID(data)
		}
		if prompt.Tokens != nil && !told && salted && e.config.OnPrompt != nil {
			told = true
			e.config.OnPrompt(Prompt{Scope: e.config.Server.Scope, RequestID: req.ID, Salt: salt, Tokens: slices.Clone(prompt.Tokens)})
		}
	}), sent, onText)
	if err == nil {
		asked := string(sent.Extra["return_token_ids"]) == "true"
		e.learn(answer{id: req.ID, echo: echo, usage: response.Usage, asked: asked, tokens: prompt.Tokens != nil})
	}
	return Response{Response: response, PromptTokens: prompt.Tokens}, err
}

// members are the body's members that this package sets.
func (e *Engine) members(req Request, salt string) map[string]json.RawMessage {
	found := e.Features()
	m := map[string]json.RawMessage{}
	if salt != "" {
		m["cache_salt"] = selfhosted.Quote(salt)
	}
	if req.Session != "" && e.config.Sessions && found.Session.Has {
		m["session_id"] = selfhosted.Quote(req.Session)
	}
	if req.Priority != nil {
		m["priority"] = json.RawMessage(strconv.Itoa(*req.Priority))
	}
	if e.config.PromptTokens && found.PromptTokens.Has {
		m["return_token_ids"] = json.RawMessage("true")
	}
	return m
}

// answer is what a finished answer tells about the server.
type answer struct {
	id, echo      string
	usage         engines.Usage
	asked, tokens bool // the prompt's tokens
}

// learn enters it into the features. A count of cached tokens that is missing proves nothing: some releases leave a 0 out.
func (e *Engine) learn(a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &e.found
	switch {
	case a.usage.CachedKnown:
		f.CachedTokens = Support(selfhosted.Yes("an answer has cached_tokens"))
	case !f.CachedTokens.Has:
		f.CachedTokens = Support(selfhosted.Unknown("an answer has no cached_tokens: a 0 that is left out, or no --enable-prompt-tokens-details"))
	}
	if a.echo != "" {
		f.RequestID = Support(selfhosted.No("an answer has the ID " + strconv.Quote(a.echo)))
		if strings.Contains(a.echo, a.id) {
			f.RequestID = Support(selfhosted.Yes("an answer's ID has the request's in it"))
		}
	}
	switch {
	case a.tokens:
		f.PromptTokens = Support(selfhosted.Yes("an answer has prompt_token_ids"))
	case a.asked:
		f.PromptTokens = Support(selfhosted.No("an answer that was asked for prompt_token_ids has none"))
	}
}
