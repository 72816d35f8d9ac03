package memory

import "github.com/ragpilot/ragpilot/contextpilot"

// Option changes what [Wrap] does.
type Option interface{ apply(*settings) }

type option func(*settings)

func (f option) apply(s *settings) { f(s) }

// Place says where recalled memories stand if they have no variable of their own.
type Place uint8

const (
	// WithinHistory: a memory stays where it was first shown, in the history, and those that are not shown yet stand behind the
	// history. So each prompt of a conversation begins with the whole one before, as far as the history only grows, and an engine
	// computes a memory once for a conversation.
	//
	// A memory that was deleted, has expired or was changed since is taken out before the next prompt, which breaks the prefix
	// there, once. A history that does not begin with the one before (a window, a summary) has the k best behind it and nothing
	// else, and so has one whose memories would become more than 8 × k (or 64, if that is more), or more tokens than [WithBudget]
	// allows. Where they stand is kept for the 1,000 conversations (scope and [framework.WithConversation]) that were used last, at
	// most 64 KiB each.
	//
	// The store must be a [Getter], as [Local] is, and the memories have no variable of their own ([WithRecallKey]). Otherwise this
	// is BehindHistory.
	WithinHistory Place = iota
	// BehindHistory: memories stand behind the history and are gone from there in the next prompt. They are computed at each turn.
	BehindHistory
	// BeforeHistory: what is found for another input costs the whole history. See [WithStable] for memories that seldom change.
	BeforeHistory
)

type settings struct {
	scope      Scope
	k          int
	search     SearchOptions
	add        AddOptions
	input      string
	output     string
	recall     string
	heading    string
	place      Place
	stable     *stable
	cache      contextpilot.Scope
	headTokens int
	budget     int
	failed     func(error)
	plans      func(contextpilot.Plan)
	noHold     bool
	blocks     bool
	noSave     bool
}

// stable says which memories stand in front of the history.
type stable struct {
	filter  Filter
	most    int
	heading string
}

func newSettings(opts []Option) settings {
	s := settings{heading: "Known from earlier conversations:", plans: func(contextpilot.Plan) {}}
	for _, o := range opts {
		o.apply(&s)
	}
	if s.k < 1 {
		s.k = DefaultK
	}
	return s
}

// WithDefaultScope says whose memories are meant where the context does not, see [WithScope].
func WithDefaultScope(scope Scope) Option { return option(func(s *settings) { s.scope = scope }) }

// WithK bounds how many memories are recalled; 0, the default, means [DefaultK].
func WithK(k int) Option { return option(func(s *settings) { s.k = k }) }

// WithSearch sets filter, threshold and the like of the search.
func WithSearch(opts SearchOptions) Option { return option(func(s *settings) { s.search = opts }) }

// WithAdd sets the extractor, the metadata and the like of what is stored of each turn.
func WithAdd(opts AddOptions) Option { return option(func(s *settings) { s.add = opts }) }

// WithKeys names the chain's input that is searched for and stored, and the output that is stored. An empty name
// means the only one that is a string, or else "input", "question", "query" or "human_input"; "text", "output",
// "answer" or "response".
func WithKeys(input, output string) Option {
	return option(func(s *settings) { s.input, s.output = input, output })
}

// WithRecallKey puts the recalled memories into a variable of their own, as a string that is empty if there are none. The
// chain's prompt must show it. The other way, and the default, is to put them beside the history, where every prompt
// that shows the history shows them too.
func WithRecallKey(name string) Option { return option(func(s *settings) { s.recall = name }) }

// WithHeading sets the line in front of the recalled memories; empty: none. It should always be the same.
func WithHeading(line string) Option { return option(func(s *settings) { s.heading = line }) }

// WithPlace says where beside the history the memories stand; the default is [WithinHistory].
func WithPlace(place Place) Option { return option(func(s *settings) { s.place = place }) }

// WithStable has the memories that match the filter, such as [Eq]("kind", "preference"), stand in front of the history in every
// prompt whatever the input is: all of them, or the newest most of them (0: [DefaultK]), in the order in which they came to be,
// but for one that the conversation says itself. Their bytes are the same from turn to turn and from conversation to conversation
// until one of them changes or is said, so that an engine computes them once. The search leaves them out. heading is the line in
// front of them; empty: none.
//
// It is for what always holds and seldom changes. Each turn lists the memories of the scope.
func WithStable(filter Filter, most int, heading string) Option {
	if most < 1 {
		most = DefaultK
	}
	return option(func(s *settings) { s.stable = &stable{filter, most, heading} })
}

// WithCache says which engine's cache the prompts go to; the default is the zero Scope. It is what WithScope is for other
// wrappers: here that is the name of a memory's own scope.
func WithCache(scope contextpilot.Scope) Option { return option(func(s *settings) { s.cache = scope }) }

// WithHeadTokens says how many tokens stand in front of the memories in every prompt; it only makes predictions exact.
func WithHeadTokens(n int) Option { return option(func(s *settings) { s.headTokens = n }) }

// WithBudget bounds the tokens of the recalled memories' texts; the last of the search that do not fit are left out. A budget near what
// one turn recalls has [WithinHistory] begin anew at each turn. With [WithinHistory] it
// bounds all that stand in the history as well. 0, the default, means no limit.
func WithBudget(tokens int) Option { return option(func(s *settings) { s.budget = tokens }) }

// WithErrors gives errors of the store to f and goes on without memories, instead of failing the chain: when nothing
// could be recalled, and when a turn could not be stored after its answer was made. f is called by the goroutine that runs the
// chain.
func WithErrors(f func(error)) Option { return option(func(s *settings) { s.failed = f }) }

// WithPlans has f called with the plan of each recall.
func WithPlans(f func(contextpilot.Plan)) Option {
	return option(func(s *settings) {
		if f != nil {
			s.plans = f
		}
	})
}

// WithBlocks has every memory stand in the prompt as a block under its ID, where [WithinHistory] has those as lines, "- text", that are one
// line of at most 256 bytes in which nothing could be taken for markup, a note or a role. A line takes half the tokens of a block or
// less. A model can cite a block, and only for blocks the model wrapper engines/langchain finds the plan again, and says what became of it.
func WithBlocks() Option { return option(func(s *settings) { s.blocks = true }) }

// WithoutHold keeps the plans away from the model wrapper engines/langchain, for prompts that show memories and the
// documents of retriever.Wrap together: of several plans in one prompt it follows the last one made and takes the others
// back, and the memories would be ordered anew at every turn.
func WithoutHold() Option { return option(func(s *settings) { s.noHold = true }) }

// WithoutSaving recalls memories as usual, and stores nothing of the turn.
func WithoutSaving() Option { return option(func(s *settings) { s.noSave = true }) }
