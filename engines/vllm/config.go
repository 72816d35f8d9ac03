package vllm

import (
	"errors"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Errors of the endpoints that vLLM has beside the chats.
var (
	// ErrNotOffered: this server does not have the endpoint, in its version or as it was started.
	ErrNotOffered = selfhosted.ErrNotOffered
	// ErrBusy: the cache could not be emptied because requests are using it.
	ErrBusy = errors.New("cache is in use")
)

// DefaultPatience bounds one question to the server that is no chat.
const DefaultPatience = selfhosted.DefaultPatience

// Config describes one vLLM server, for one tenant. Only Server.BaseURL is needed.
type Config struct {
	// Server says where it is and how to talk to it. Two of its defaults are others here: IDs is IDHeader and IDRequest,
	// the places that vLLM reads, and MaxEventBytes is 16 MiB if PromptTokens is set.
	Server openai.Config

	// Salt returns the cache salt of a tenant, "" for none. vLLM takes up to 128 characters without '@', '/', '\' and NUL.
	// nil: [Salt]. A tenant's prompts share cached prefixes only with prompts of the same salt. To share them between all
	// tenants, return "".
	Salt func(tenant string) string
	// Sessions sends the session of a request, where the server takes it. It comes back in the cache events of new blocks;
	// engines may also plan with it what to keep.
	Sessions bool
	// PromptTokens asks for the prompt's tokens with every answer, where the server gives them.
	PromptTokens bool
	// OnPrompt is told the tokens of a prompt, when an answer has brought them; it must not block. It is called
	// concurrently, before the answer's text.
	OnPrompt func(Prompt)
	// Patience bounds each question that is no chat; 0: DefaultPatience.
	Patience time.Duration
}

// Prompt is a prompt as the server has read it.
type Prompt struct {
	Scope     contextpilot.Scope
	RequestID string
	Salt      string   // the cache salt it was sent with; "": none
	Tokens    []uint32 // with the chat's template; the receiver may keep them
}

// Salt returns the cache salt of a tenant: its name if that is up to 128 letters, digits, '_', '.' and '-', and a hash of
// it otherwise. Different tenants have different salts; no tenant has none.
func Salt(tenant string) string { return selfhosted.Salt(tenant) }

// New returns an engine for the server, which is not contacted. The configuration is copied. Errors are those of
// [openai.New], or name a field of this package's Config.
func New(config Config) (*Engine, error) {
	if config.Patience < 0 {
		return nil, fmt.Errorf("vllm: Config.Patience %v is negative", config.Patience)
	}
	if config.Patience == 0 {
		config.Patience = DefaultPatience
	}
	if config.Salt == nil {
		config.Salt = Salt
	}
	if config.Server.IDs == 0 {
		config.Server.IDs = openai.IDHeader | openai.IDRequest
	}
	if config.Server.Label == "" && config.Server.BaseURL != "" {
		config.Server.Label = label(config.Server.BaseURL)
	}
	if config.Server.MaxEventBytes == 0 && config.PromptTokens {
		config.Server.MaxEventBytes = 16 << 20 // a million tokens take 7 MiB
	}
	chats, err := openai.New(config.Server)
	if err != nil {
		return nil, fmt.Errorf("vllm: %w", err)
	}
	client := &selfhosted.Client{Chats: chats, Patience: config.Patience, Scope: config.Server.Scope}
	return &Engine{config: config, chats: chats, client: client}, nil
}
