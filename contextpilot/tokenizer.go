package contextpilot

// Tokenizer counts the tokens of a text. Implementations must be safe for concurrent use and must not
// block for long: [Pilot.Plan] calls Count for every block whose Tokens field is 0. Exact tokenizers live
// outside the core (engines/openai asks the engine and caches, engines/tiktoken counts in process).
type Tokenizer interface {
	Count(text string) int
}

// Estimate is the Tokenizer used when none is configured: one token for every four bytes, rounded up.
// That is within about a quarter of a BPE vocabulary's count for prose in most scripts, and costs nothing.
// An estimate moves predictions, what fits into Request.Budget and Request.Room, whether an order note pays, and what
// Config.Capacity drops from the index.
type Estimate struct{}

// Count returns the estimated number of tokens of text.
func (Estimate) Count(text string) int { return (len(text) + 3) / 4 }

// maxTokens bounds the length of one text or answer: what claims to be longer counts as this, so that sums do not
// wrap around.
const maxTokens = 1 << 20

// tokenCount makes a number that a caller, a tokenizer or an engine has given usable.
func tokenCount(n int) int32 { return int32(min(max(n, 0), maxTokens)) }
