package contextpilot

// Block is one retrieved passage: a document, a chunk, a memory.
type Block struct {
	// ID is the block's stable identity, for example "doc@version#chunk". Empty: derived from Text.
	ID string
	// Text is what the model reads. The core never changes it.
	Text string
	// Tokens is the length of the rendered block; 0: counted by Config.Tokenizer.
	Tokens int
	// Score is the retriever's score, for the caller's use; the order of Request.Blocks is the rank.
	Score float64
}

// Scope separates caches that can never share a prefix: another model, tenant (cache salt) or engine replica.
// The zero Scope is the only one most programs need.
type Scope struct{ Model, Tenant, Replica string }

// Request is one prompt to be planned. The Pilot keeps no reference to its slices after Plan returns,
// except that the Plan itself holds a copy of the Blocks slice.
type Request struct {
	// ID is sent to the engine, and events name it. Empty: assigned, see [Plan.RequestID]. Planning an ID that
	// is still live replaces the earlier plan in the index, and [Stats] count both: what a retry needs.
	ID string
	// Session names the conversation, for records and for [Pilot.PlanBatch], which keeps the order of its turns. Nothing is kept
	// under that name. Empty: a request that belongs to none.
	Session string
	// Scope says which cache the prompt goes to.
	Scope Scope
	// Query is the question behind the blocks. It is used for token accounting only.
	Query string
	// Blocks are the retrieved blocks, best first.
	Blocks []Block
	// Fixed keeps the blocks in the order in which they stand here, whatever the policy: for a prompt whose order is decided, such
	// as one that is sent again after its cache was evicted. Limits do not matter then.
	Fixed bool
	// NoEcho is for a caller that cannot show a [Plan]'s Echo. Where an echo would be made, the block stays as it is.
	NoEcho bool
	// EchoText returns what an echo of a block without Text shows; "": nothing can be shown. It is called for one block at most, and must not
	// call the Pilot. Nil: such blocks have no echo.
	EchoText func(block int) string
	// Prior holds the texts of the conversation that the prompt being sent has in front of these blocks,
	// oldest first, without the shared system prompt. A block is replaced by a reference only if its rendered
	// text is found in here, and a turn up to Behind has shown it. Empty: nothing earlier is resent, so every block is sent in full.
	Prior []string
	// Behind is where the prompt goes on: [Plan].End of the turn whose answer is the last of Prior. Where Prior does not show all
	// that the turns up to there have shown, what stands in front of the blocks counts as unknown to the engine.
	Behind Position
	// HeadTokens is the length of what stands in front of everything (system prompt, instruction), the same
	// for all requests of a scope. It only enters predictions.
	HeadTokens int
	// Budget is the number of tokens that this turn's blocks may take; blocks of the lowest rank that do not
	// fit are left out and named in [Plan.LeftOut]. 0: no limit.
	Budget int
	// Room is the number of tokens that this turn's message, [Plan.Prompt] of Query, may take with everything in it:
	// what the engine's window leaves of itself when the other messages, and what is reserved for the answer, are taken
	// off. Blocks and references of the lowest rank that do not fit are left out and named in [Plan.LeftOut], also
	// after a fault. Blocks are counted as they are rendered. 0: no limit; negative: there is no room for any block.
	Room int
}
