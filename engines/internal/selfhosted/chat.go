package selfhosted

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Request is a chat with what vLLM and SGLang take beside it.
type Request struct {
	engines.Request
	// Tenant separates this prompt's cache from other tenants'. Empty: the tenant of Config.Server.Scope. Events name the
	// configured scope all the same: a pilot that plans for several tenants needs an engine for each.
	Tenant string
	// Session names the conversation. It is sent if Config.Sessions is set and the server takes it.
	Session string
	// Priority is sent if it is not nil; with vLLM, lower is earlier. A vLLM server without priority scheduling refuses any
	// but 0.
	Priority *int
	// PromptTokens asks for the prompt's tokens with this answer, as Config.PromptTokens does with every one.
	// [Engine.TokenizeChat] gives them without an answer.
	PromptTokens bool
}

// Response is an answer with what vLLM and SGLang return beside it.
type Response struct {
	engines.Response
	// PromptTokens are the prompt's tokens, with the chat's template; nil if they were not asked for, or not given.
	PromptTokens []uint32
}

// Chat runs one request; see [openai.Engine.Generate] for onText and for errors. A request without an ID gets one. Members
// of req.Extra and of Config.Server.Extra win over those that this package sets.
func (e *Engine) Chat(ctx context.Context, req Request, onText func(piece string) error) (Response, error) {
	if req.ID == "" {
		req.ID = newID()
	}
	own := e.config.Salt(cmp.Or(req.Tenant, e.config.Server.Scope.Tenant))
	sent := req.Request
	sent.Extra = With(req.Extra, With(e.config.Server.Extra, e.members(req, own)))
	salt, salted := e.dialect.salt(sent.Extra) // the request may have its own

	var prompt PromptTokens
	echo := ""
	reported := false
	response, err := e.chats.Generate(openai.WithChunks(ctx, func(data []byte) {
		prompt.Chunk(data)
		if echo == "" {
			echo = answerID(data)
		}
		if prompt.Tokens != nil && !reported && salted && e.config.OnPrompt != nil {
			reported = true
			e.config.OnPrompt(Prompt{Scope: e.config.Server.Scope, RequestID: req.ID, Salt: salt, Tokens: slices.Clone(prompt.Tokens)})
		}
	}), sent, onText)
	if err == nil {
		asked := string(sent.Extra[e.dialect.promptTokens]) == "true"
		e.learn(answer{id: req.ID, echo: echo, usage: response.Usage, asked: asked, tokens: prompt.Tokens != nil})
	}
	return Response{Response: response, PromptTokens: prompt.Tokens}, err
}

// members are the body's members that this package sets.
func (e *Engine) members(req Request, salt string) map[string]json.RawMessage {
	found := e.Features()
	m := map[string]json.RawMessage{}
	if salt != "" {
		name := "cache_salt"
		if found.Salt.Known && !found.Salt.Has && found.ExtraKey.Has {
			name = "extra_key"
		}
		m[name] = encode(salt)
	}
	if req.Session != "" && e.config.Sessions && found.Session.Has {
		m["session_id"] = encode(req.Session)
	}
	if req.Priority != nil {
		m["priority"] = json.RawMessage(strconv.Itoa(*req.Priority))
	}
	if (req.PromptTokens || e.config.PromptTokens) && found.PromptTokens.Has {
		m[e.dialect.promptTokens] = json.RawMessage("true")
		if !e.dialect.streamsTokens {
			m["stream"] = json.RawMessage("false")
			m["stream_options"] = nil // refused without a stream
		}
	}
	return m
}

// answer is what a finished answer shows of the server.
type answer struct {
	id, echo      string
	usage         engines.Usage
	asked, tokens bool // the prompt's tokens
}

// learn enters it into the features. A missing count of cached tokens proves nothing unless the server has described how it
// was started: some releases leave a 0 out.
func (e *Engine) learn(a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &e.found
	switch {
	case a.usage.CachedKnown:
		f.CachedTokens = Yes("an answer has cached_tokens")
	case !f.CachedTokens.Known:
		f.CachedTokens = Unknown("an answer has no cached_tokens: a 0 that is left out, or no " + e.dialect.cachedFlag)
	}
	switch {
	case a.echo == "":
	case strings.Contains(a.echo, a.id):
		f.RequestID = Yes("an answer's ID has the request's in it")
	default:
		f.RequestID = No("an answer has the ID " + strconv.Quote(a.echo))
	}
	switch {
	case a.tokens:
		f.PromptTokens = Yes("an answer has prompt_token_ids")
	case a.asked:
		f.PromptTokens = No("an answer that was asked for prompt_token_ids has none")
	}
}

// newID makes a request ID.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req-" + hex.EncodeToString(b[:])
}

// answerID returns the ID of a chunk of an answer, "" if it has none.
func answerID(data []byte) string {
	var chunk struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return ""
	}
	return chunk.ID
}

// MaxSalt is the length in characters that vLLM takes; it forbids '@', '/', '\' and NUL.
const MaxSalt = 128

// hashed is the front of salts that do not show their tenant.
const hashed = "h-"

// Salt returns the cache salt of a tenant: its name if that is short and of letters, digits, '_', '.' and '-', a hash of
// it otherwise. Different tenants have different salts. No tenant has none.
func Salt(tenant string) string {
	if tenant == "" || plain(tenant) {
		return tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return hashed + hex.EncodeToString(sum[:])
}

func plain(s string) bool {
	if len(s) > MaxSalt || len(s) >= len(hashed) && s[:len(hashed)] == hashed {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// PromptTokens collects a prompt's tokens from the chunks of an answer. They stand in one chunk only, on its top level or in
// the first choice.
type PromptTokens struct {
	Tokens []uint32
	found  bool
}

var tokensMember = []byte(`"prompt_token_ids"`)

// Chunk reads one chunk. A chunk that cannot be read has none.
func (p *PromptTokens) Chunk(data []byte) {
	if p.found || !bytes.Contains(data, tokensMember) {
		return
	}
	var chunk struct {
		Tokens  []uint32 `json:"prompt_token_ids"`
		Choices []struct {
			Index  int      `json:"index"`
			Tokens []uint32 `json:"prompt_token_ids"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return
	}
	tokens := chunk.Tokens
	for _, c := range chunk.Choices {
		if c.Index == 0 && tokens == nil {
			tokens = c.Tokens
		}
	}
	if tokens != nil { // null is no answer
		p.Tokens, p.found = tokens, true
	}
}
