package selfhosted

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Errors of the endpoints that a server has beside the chats.
var (
	// ErrNotOffered: this server does not have the endpoint, in its version or as it was started.
	ErrNotOffered = errors.New("not offered by this server")
	// ErrBusy: the cache could not be emptied because requests are using it.
	ErrBusy = errors.New("cache is in use")
)

// DefaultPatience is the timeout of one question to the server that is no chat.
const DefaultPatience = 5 * time.Second

// Config describes one server, for one tenant. Only Server.BaseURL is needed.
type Config struct {
	// Server says where it is and how to talk to it. Its defaults differ: IDs is where the server reads a request's ID
	// (vLLM: IDHeader and IDRequest, SGLang: IDRid), and MaxEventBytes is 16 MiB if PromptTokens is set.
	Server openai.Config

	// Salt returns the cache salt of a tenant, "" for none. vLLM takes up to 128 characters without '@', '/', '\' and NUL.
	// nil: [Salt]. A tenant's prompts share cached prefixes only with prompts of the same salt. To share them between all
	// tenants, return "".
	Salt func(tenant string) string
	// Sessions sends the session of a request, where the server takes it. It comes back in the cache events of new blocks;
	// engines may also plan with it what to keep.
	Sessions bool
	// PromptTokens asks for the prompt's tokens with every answer, where the server gives them. SGLang does not stream such
	// an answer: it comes in one piece.
	PromptTokens bool
	// OnPrompt gets the tokens of a prompt when an answer has brought them; it must not block. It is called concurrently,
	// before the answer's text.
	OnPrompt func(Prompt)
	// Patience is the timeout of each question that is no chat; 0: DefaultPatience.
	Patience time.Duration
}

// Prompt is a prompt as the server has read it.
type Prompt struct {
	Scope     contextpilot.Scope
	RequestID string
	Salt      string   // the cache salt it was sent with; "": none
	Tokens    []uint32 // with the chat's template; the receiver may keep them
}

// New returns an engine for the server, which is not contacted. The configuration is copied. Errors are those of
// [openai.New], or name a field of Config.
func New(dialect *Dialect, config Config) (*Engine, error) {
	if config.Patience < 0 {
		return nil, fmt.Errorf("%s: Config.Patience %v is negative", dialect.name, config.Patience)
	}
	config.Patience = cmp.Or(config.Patience, DefaultPatience)
	if config.Salt == nil {
		config.Salt = Salt
	}
	server := &config.Server
	server.IDs = cmp.Or(server.IDs, dialect.ids)
	if u, err := url.Parse(server.BaseURL); err == nil && server.Label == "" && server.BaseURL != "" { // openai.New reports the error
		server.Label = dialect.name + ":" + u.Redacted()
	}
	if server.MaxEventBytes == 0 && config.PromptTokens {
		server.MaxEventBytes = 16 << 20 // a million tokens take 7 MiB
	}
	chats, err := openai.New(*server)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dialect.name, err)
	}
	return &Engine{dialect: dialect, config: config, chats: chats}, nil
}
