package vllm

import "github.com/ragpilot/ragpilot/engines/internal/selfhosted"

// These types are the same for vLLM and SGLang. Fields that only one of the servers fills in say so.
type (
	// Engine sends chats to one vLLM server and asks it for what it has beside them: Chat, Generate, Detect, Features,
	// Health, Metrics, Tokenize, TokenizeChat, TokenizeRequest, Tokenizer, ResetCache, EventSources, Follow, Subscribe, Name and
	// Close. It is safe for concurrent use.
	Engine = selfhosted.Engine
	// Config describes one server, for one tenant. Only Server.BaseURL is needed.
	Config = selfhosted.Config
	// Request is a chat with a tenant, a session, a priority, and whether its prompt's tokens are asked for.
	Request = selfhosted.Request
	// Response is an answer with the prompt's tokens.
	Response = selfhosted.Response
	// Prompt is a prompt as the server has read it.
	Prompt = selfhosted.Prompt
	// Features is what was found out about a server.
	Features = selfhosted.Features
	// Support says whether the server has a feature, and how that is known.
	Support = selfhosted.Support
	// Metrics is a reading of the server's metrics.
	Metrics = selfhosted.Metrics
	// EventSource is where one rank of the engine publishes its cache events.
	EventSource = selfhosted.EventSource
	// Source reports what the engine's cache lost, for example a subscriber of its cache events.
	Source = selfhosted.Source
)

// Errors of the endpoints that vLLM has beside the chats.
var (
	// ErrNotOffered: this server does not have the endpoint, in its version or as it was started.
	ErrNotOffered = selfhosted.ErrNotOffered
	// ErrBusy: the cache could not be emptied because requests are using it.
	ErrBusy = selfhosted.ErrBusy
)

// DefaultPatience is the timeout of one question to the server that is no chat.
const DefaultPatience = selfhosted.DefaultPatience

// Salt returns the cache salt of a tenant: its name if that is up to 128 letters, digits, '_', '.' and '-', and a hash of
// it otherwise. Different tenants have different salts; no tenant has none.
func Salt(tenant string) string { return selfhosted.Salt(tenant) }

// New returns an engine for the server, which is not contacted. The configuration is copied. Errors are those of
// openai.New, or name a field of Config.
func New(config Config) (*Engine, error) { return selfhosted.New(selfhosted.VLLM, config) }
