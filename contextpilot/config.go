package contextpilot

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// What the zero [Config] stands for.
const (
	// DefaultPolicy is the policy.
	DefaultPolicy = "best"
	// DefaultOrderNote and DefaultLocationNote are the wordings of ContextPilot §5.3 and §6.
	DefaultOrderNote    = "Please read the context in the following priority order: {order} and answer the question."
	DefaultLocationNote = "Please refer to [{label}] in the previous conversation."
	// DefaultTopNote is the wording of the short order note.
	DefaultTopNote = "Relevance: {order}."
	// DefaultTop is the number of blocks that it names, and DefaultNoteTokens what it may cost: an engine block.
	DefaultTop        = 3
	DefaultNoteTokens = 16
)

// Config configures a [Pilot]. The zero value is the recommended setup; New copies it.
type Config struct {
	// Policy names the order policy, see [PolicyNames]. Empty: [DefaultPolicy].
	Policy string
	// NewPolicy makes a policy of your own; it wins over Policy. It must return a fresh instance each time: it is
	// called by New to check it, for each scope, and for each PlanBatch, which uses its instance outside of any lock.
	NewPolicy func() Policy
	// Dedup says which blocks of earlier turns become references.
	Dedup Dedup
	// Limits bound how far an order may depart from the retriever's.
	Limits Limits
	// Top says how the retriever's best block is brought next to the question. EchoTokens is the upper bound of an echo's text in tokens;
	// 0: [DefaultEchoTokens]; [EchoWhole]: echoes are whole blocks.
	Top        Top
	EchoTokens int
	// Notes words the order and location notes, and switches them.
	Notes Notes
	// Tokenizer counts tokens of blocks that come without a count; nil: [Estimate].
	Tokenizer Tokenizer
	// BlockSize is the engine's cache block in tokens: a prefix shorter than one block is not reused. 0: 16.
	BlockSize int
	// Capacity is the number of tokens that the engine's cache holds, as far as known. With it the index drops
	// the least recently used blocks as an LRU engine would; 0: only events shrink the index (and MaxRequests).
	Capacity int
	// LoadCost is what it costs to load one token's cache entries from a tier (as named by events), with the cost of
	// computing the token as 1. The engine's own memory costs 0; a tier that is not listed costs 1, so that nothing
	// in it is worth having. At most 14 tiers, 0 ≤ cost ≤ 1. It weighs in the choice of an order; what a plan expects in
	// the cache includes all tiers.
	LoadCost map[string]float64
	// Recompute is for an engine that keeps each block by itself and finds it at any place in a prompt: the part of such a block's
	// tokens that it computes again, at most 1. A block that the scope has sent anywhere then counts as cached but for that part:
	// see [Prefix]. It moves predictions, and no order. 0: only the beginning of a prompt is found.
	Recompute float64
	// MaxRequests bounds the live requests of all scopes together, and the blocks of their prompts, with pieces of long
	// questions, at 64 for each. The tenant that has most of them loses the oldest of its largest scope, a thousandth of the
	// bound at a time. 0: 1,000,000; negative: no bound.
	MaxRequests int
	// MaxHistory bounds the blocks of earlier requests that policies remember, in all scopes together, to order later ones so
	// that they meet. The tenant that has most of them loses the oldest of its largest scope. 0: 64 for each of MaxRequests;
	// negative: no bound but a policy's own.
	MaxHistory int
	// MaxScopes bounds the scopes. The least recently used goes, with its index: one of the tenant that needs another, or of
	// the one that has most, so that a tenant with no more than its share, MaxScopes ÷ tenants, loses none to others. 0: 64.
	MaxScopes int
	// Recorder receives measurements; nil: none.
	Recorder Recorder
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Dedup says when a block counts as shown.
type Dedup uint8

const (
	// DedupContent replaces a block if its text was shown before, under whatever ID; the reference names the
	// block that was shown. The default.
	DedupContent Dedup = iota
	// DedupID replaces a block only if it was shown under the same ID with the same text.
	DedupID
	// DedupOff makes no references. Repeats within one request are left out in any case.
	DedupOff
)

// Recorder receives measurements. Methods are called after the locks of scopes are released, concurrently, and
// must be cheap. They must not call [Pilot.PlanTogether], whose calls wait for each other.
type Recorder interface {
	// Planned is called once for every plan with the time it took, also for those that [Stats] does not count in the end
	// because they were taken back.
	Planned(scope Scope, p *Plan, took time.Duration)
	// Observed is called once for every event; applied is false if its request was not known.
	Observed(ev Event, applied bool)
}

// limits that are not worth a setting.
const (
	maxShown = 4096    // blocks that a Position knows as shown; of more, the oldest quarter goes
	maxTurns = 1024    // steps of a Position
	maxPath  = 8192    // blocks of a conversation's prompt that the index follows
	maxSent  = 1 << 14 // blocks remembered as sent in a scope, least recently used first; with Recompute only
)

func (c Config) withDefaults() (Config, error) {
	name := ""
	if c.NewPolicy == nil {
		name = cmp.Or(c.Policy, DefaultPolicy)
		if _, err := NewPolicy(name); err != nil {
			return c, fmt.Errorf("%w: Policy: %w", ErrBadConfig, err)
		}
		c.NewPolicy = func() Policy {
			p, _ := NewPolicy(name)
			return p
		}
	} else if c.NewPolicy() == nil {
		return c, fmt.Errorf("%w: NewPolicy returned nil", ErrBadConfig)
	}
	if c.Dedup > DedupOff {
		return c, fmt.Errorf("%w: Dedup %d", ErrBadConfig, c.Dedup)
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"BlockSize", c.BlockSize}, {"Capacity", c.Capacity}, {"MaxScopes", c.MaxScopes}} {
		if f.value < 0 {
			return c, fmt.Errorf("%w: %s %d is negative", ErrBadConfig, f.name, f.value)
		}
	}
	if c.Top > TopNear {
		return c, fmt.Errorf("%w: Top %d", ErrBadConfig, c.Top)
	}
	if c.EchoTokens < EchoWhole {
		return c, fmt.Errorf("%w: EchoTokens %d", ErrBadConfig, c.EchoTokens)
	}
	switch {
	case name == "retrieval", c.Top == TopAuto && name != DefaultPolicy:
		c.Top = TopAnywhere
	case c.Top == TopAuto:
		c.Top = TopNear
	}
	if c.Notes.Hint == HintAuto {
		c.Notes.Hint = HintTop
		if c.Top == TopNear {
			c.Notes.Hint = HintNone
		}
	}
	c.EchoTokens = cmp.Or(c.EchoTokens, DefaultEchoTokens)
	if !(c.Recompute >= 0 && c.Recompute <= 1) {
		return c, fmt.Errorf("%w: Recompute %v: want 0 to 1", ErrBadConfig, c.Recompute)
	}
	if err := checkTiers(c.LoadCost); err != nil {
		return c, err
	}
	if err := c.Limits.check(); err != nil {
		return c, err
	}
	var err error
	if c.Notes, err = c.Notes.withDefaults(); err != nil {
		return c, err
	}
	if c.Tokenizer == nil {
		c.Tokenizer = Estimate{}
	}
	c.BlockSize = cmp.Or(c.BlockSize, 16)
	c.MaxRequests = max(cmp.Or(c.MaxRequests, 1_000_000), 0)
	c.MaxHistory = max(cmp.Or(c.MaxHistory, nodesPerRequest*c.MaxRequests), 0)
	c.MaxScopes = cmp.Or(c.MaxScopes, 64)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Errors that callers can test for with errors.Is; they are wrapped with the field and the value.
var (
	// ErrBadConfig: a field of Config cannot be used.
	ErrBadConfig = errors.New("bad config")
	// ErrUnknownPolicy: no policy has that name.
	ErrUnknownPolicy = errors.New("unknown policy")
	// ErrBadRequest: a batch cannot be planned as it is.
	ErrBadRequest = errors.New("bad request")
	// ErrFault: a stage failed; Plan.Fault wraps it with the stage's name. The plan is retrieval order then.
	ErrFault = errors.New("stage fault")
)

// Tokenizer counts the tokens of a text. Implementations must be safe for concurrent use and must not
// block for long: [Pilot.Plan] calls Count for every block whose Tokens field is 0. Exact tokenizers live
// outside the core (engines/openai asks the engine and caches).
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
