package tracing

// Names of attributes. Those of HTTP and of generative AI are OpenTelemetry's semantic conventions (version 1.41), the
// others are ours. Those under "gen_ai.usage" and [PredictedTokens] are missing where the number is not known.
const (
	Method       = "http.request.method"
	Route        = "http.route"
	StatusCode   = "http.response.status_code"
	RequestBytes = "http.request.body.size"
	ErrorType    = "error.type"
	Address      = "server.address"
	Port         = "server.port"

	Model        = "gen_ai.request.model"
	PromptTokens = "gen_ai.usage.input_tokens"
	CachedTokens = "gen_ai.usage.cache_read.input_tokens"
	OutputTokens = "gen_ai.usage.output_tokens"

	RequestID       = "ragpilot.request_id"
	Tenant          = "ragpilot.tenant"
	Session         = "ragpilot.session"                 // a hash
	Group           = "ragpilot.group"                   // planned, held-out or plain
	Messages        = "ragpilot.messages"                // of a conversation
	Documents       = "ragpilot.documents"               // found in texts that were looked at
	References      = "ragpilot.references"              // documents and results in whose place a reference stands, or nothing
	Blocks          = "ragpilot.blocks"                  // of lines, compared with earlier ones
	BlocksReplaced  = "ragpilot.blocks.replaced"         // of them
	CharactersSaved = "ragpilot.characters_saved"        // not sent
	PredictedTokens = "ragpilot.prefix.predicted_tokens" // expected in the engine's cache
	Remembered      = "ragpilot.remembered"              // an order was chosen before
)

// FirstByte is the event of the first byte of an upstream's answer, Ordered that of an order chosen for the documents of
// one text.
const (
	FirstByte = "first byte"
	Ordered   = "ordered"
)
