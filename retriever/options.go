package retriever

import (
	"slices"

	"github.com/tmc/langchaingo/callbacks"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// Option changes what [Wrap] does.
type Option interface{ apply(*settings) }

type option func(*settings)

func (f option) apply(s *settings) { f(s) }

type settings struct {
	scope      contextpilot.Scope
	idKeys     []string
	headTokens int
	budget     int
	handler    callbacks.Handler
	plans      func(contextpilot.Plan)
	noHold     bool
	places     Places
	versioned  bool
	passages   *passage.Options // nil: documents stay as they were found
}

func defaultIDKeys() []string { return []string{"id", "_id", "doc_id"} }

func newSettings(opts []Option) settings {
	s := settings{
		idKeys:  defaultIDKeys(),
		handler: callbacks.SimpleHandler{},
		plans:   func(contextpilot.Plan) {},
		places:  Places{}.withDefaults(),
	}
	for _, o := range opts {
		o.apply(&s)
	}
	return s
}

// WithScope says which cache the prompts go to. The default is the zero Scope.
func WithScope(scope contextpilot.Scope) Option {
	return option(func(s *settings) { s.scope = scope })
}

// WithIDKeys names the metadata keys that may hold a document's ID; the first one with a non-empty string or a
// number counts. The default is "id", "_id", "doc_id". A document without an ID is identified by its text; WithIDKeys()
// without keys always uses the text.
//
// No ID stands for two texts. Keys that name the document that a chunk was cut from ("document", "doc_id", "source", or
// those of [WithPlaces]) give doc@version, with [passage.ContentVersion] of the chunk's text as the version: "a.md@5f0c27d1".
// So do other IDs that several texts of one result have.
func WithIDKeys(keys ...string) Option {
	keys = slices.Clone(keys)
	return option(func(s *settings) { s.idKeys = keys })
}

// WithHeadTokens says how many tokens stand in front of the documents in every prompt of the scope: system prompt
// and instruction. It makes predictions exact and changes nothing else; wrappers of models take the number
// from the plan.
func WithHeadTokens(n int) Option {
	return option(func(s *settings) { s.headTokens = n })
}

// WithBudget bounds the tokens of the documents of one request; those of the lowest rank that do not fit are left
// out. 0, the default, means no limit. If nothing fits, the result is empty.
func WithBudget(tokens int) Option {
	return option(func(s *settings) { s.budget = tokens })
}

// WithCallbacks sets the handler whose HandleRetrieverStart and HandleRetrieverEnd are called around each retrieval;
// the end, with the planned documents, only if it succeeded. A handler of the inner retriever is called as well.
func WithCallbacks(handler callbacks.Handler) Option {
	return option(func(s *settings) {
		if handler != nil {
			s.handler = handler
		}
	})
}

// WithPlans has f called with each plan, before the documents are returned and by the goroutine that retrieves. The echo and
// the order hint of a plan ([contextpilot.Plan.RenderEcho], Hint) are in none of the documents: a wrapped model adds them; a program
// without one that wants them puts them into its prompt.
func WithPlans(f func(contextpilot.Plan)) Option {
	return option(func(s *settings) {
		if f != nil {
			s.plans = f
		}
	})
}

// WithoutHold keeps the plans away from the wrappers of models, for a retriever whose documents go to a model that is not
// wrapped while another model of the same pilot is: a held plan that no wrapped model claims counts as not sent, see
// [framework.Offers]. If no model is wrapped the option changes nothing.
func WithoutHold() Option { return option(func(s *settings) { s.noHold = true }) }
