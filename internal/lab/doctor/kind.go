package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sglang"
	"github.com/ragpilot/ragpilot/engines/vllm"
)

// Kind is a kind of server.
type Kind string

// The kinds that are recognised.
const (
	VLLM     Kind = "vllm"
	SGLang   Kind = "sglang"
	LlamaCPP Kind = "llamacpp"
	Other    Kind = "other"
	Local    Kind = "local" // no server: a model in the process, which [Run] does not examine
)

// String returns the engine's name.
func (k Kind) String() string {
	switch k {
	case VLLM:
		return "vLLM"
	case SGLang:
		return "SGLang"
	case LlamaCPP:
		return "llama.cpp"
	case Local:
		return "none, a model in this process"
	}
	return "OpenAI-compatible server"
}

// model is an entry of /v1/models.
type model struct {
	ID     string `json:"id"`
	Owner  string `json:"owned_by"`
	Window int    `json:"max_model_len"`
}

// facts are what a server says of itself, whatever its kind. What it does not say is zero.
type facts struct {
	version  string
	window   int  // tokens of prompt and answer together
	block    int  // tokens of a block
	capacity int  // tokens that the cache holds
	cacheOff bool // the server says that it reuses nothing
	cacheOn  bool // it says that it does
	started  time.Time

	reportFlag string // the server's flag that reports cached tokens; "": always, or not known
	salt       string // the member of a body that separates caches; "": none is known
	hasSalt    bool   // the server says that it takes that member
	takesID    bool   // an answer has the request's ID
	publishes  bool   // events can be had, as far as is known
	sources    []source
	sourcesErr error

	slots *slots // llama.cpp only

	// count and template ask the server's tokenizer for the tokens of a text and of a chat; nil: there is none.
	count    func(ctx context.Context, text string) (int, error)
	template func(ctx context.Context, messages []engines.Message) ([]uint32, error)
	// prompt asks it for the tokens of a chat's body, with its tools.
	prompt   func(ctx context.Context, body []byte) ([]uint32, error)
	counters func(ctx context.Context) (counters, error)
}

// counters are what the metrics have counted so far, in tokens of prompts.
type counters struct {
	prompts int64 // some of them at least, so that it grows with each new prompt
	hits    int64 // that came from the cache
}

// kindOf recognises a server by who owns its models, else by an endpoint that only one kind has.
func kindOf(ctx context.Context, chats *openai.Engine, models []model) Kind {
	for _, m := range models {
		switch strings.ToLower(m.Owner) {
		case "vllm":
			return VLLM
		case "sglang":
			return SGLang
		case "llamacpp":
			return LlamaCPP
		}
	}
	for _, e := range []struct {
		path, member string
		kind         Kind
	}{
		{"/props", "total_slots", LlamaCPP},
		{"/version", "version", VLLM},
		{"/server_info", "page_size", SGLang},
		{"/get_server_info", "page_size", SGLang},
	} {
		body, err := chats.Do(ctx, http.MethodGet, e.path, nil)
		var members map[string]json.RawMessage
		if err == nil && json.Unmarshal(body, &members) == nil && members[e.member] != nil {
			return e.kind
		}
	}
	return Other
}

// own reports whether a server in the form of vLLM's is `ragpilot engine serve`, which has other flags.
func (f *facts) own() bool { return strings.HasPrefix(f.version, "ragpilot") }

// look asks a server of a kind what it says of itself.
func look(ctx context.Context, kind Kind, server openai.Config, chats *openai.Engine, slotDir string) (facts, error) {
	switch kind {
	case VLLM:
		return lookSelfHosted(ctx, vllm.New, server, "--enable-prompt-tokens-details")
	case SGLang:
		return lookSelfHosted(ctx, sglang.New, server, "--enable-cache-report")
	case LlamaCPP:
		return lookLlamaCPP(ctx, server, chats, slotDir)
	}
	return facts{}, nil
}
