package memory

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory/internal/statement"
)

// maxSearched is how many memories Wrap asks for at most, to have k that the conversation does not show: what servers give.
const maxSearched = 1000

// recalled are memories as they stand in a prompt; either may be "".
type recalled struct {
	stable string // in front of the history, see WithStable
	found  string // what the search found for the input
}

// recallFor looks up what is to stand beside a history.
func (w *wrapped) recallFor(ctx context.Context, inputs map[string]any, history any) (recalled, error) {
	q, err := w.look(ctx, inputs, history)
	if err != nil {
		return recalled{}, err
	}
	out := recalled{stable: q.stable}
	if len(q.hits) == 0 {
		return out, nil
	}
	plan := w.plan(ctx, q.query, q.hits, contextpilot.Request{})
	if len(plan.Items) == 0 { // nothing fits the budget
		return out, nil
	}
	_, messages := history.([]llms.ChatMessage) // the model wrapper looks for blocks in the last one, which is the input
	if w.recall != "" || !messages {
		w.hold(plan)
	}
	out.found = headed(w.heading, &plan)
	return out, nil
}

// looked is what the store has for an input.
type looked struct {
	query  string
	hits   []Hit  // the k best that neither the history nor the input shows
	stable string // as it stands in the prompt, or ""
}

// look asks the store.
func (w *wrapped) look(ctx context.Context, inputs map[string]any, history any) (looked, error) {
	query, err := pick(inputs, w.input, "input", "question", "query", "human_input")
	if err != nil {
		return looked{}, fmt.Errorf("memory: recall: %w", err)
	}
	q := looked{query: query}
	texts := append(shownBy(history), spaced(query))
	scope, err := w.scopeOf(ctx)
	if err != nil {
		return looked{}, fmt.Errorf("memory: recall: %w", err)
	}
	if q.hits, err = w.find(ctx, scope, query, texts); err != nil || w.stable == nil {
		return q, err
	}
	all, err := w.store.GetAll(ctx, scope, ListOptions{Filter: w.stable.filter})
	if err != nil {
		return looked{}, err
	}
	q.stable = w.renderStable(query, all[max(0, len(all)-w.stable.most):], texts)
	return q, nil
}

// find returns the k best memories that neither the history nor the query shows.
func (w *wrapped) find(ctx context.Context, scope Scope, query string, history shown) ([]Hit, error) {
	k, opts := w.k, w.searched()
	most := max(k, maxSearched)
	for n := max(k, 2*min(k, maxSearched/2)); ; n = min(2*n, most) {
		hits, err := w.store.Search(ctx, scope, query, n, opts)
		if err != nil {
			return nil, err
		}
		other := make([]Hit, 0, min(k, len(hits)))
		seen := make(map[string]bool, len(hits)) // scopes within this one may have the same text
		for i := range hits {
			if text := hits[i].Memory.Text; len(other) < k && !seen[text] && !history.has(text) {
				seen[text] = true
				other = append(other, hits[i])
			}
		}
		if len(other) == k || len(hits) < n || n >= maxSearched {
			return other, nil
		}
	}
}

// searched are the options of a search: what is stable is left out.
func (w *wrapped) searched() SearchOptions {
	opts := w.search
	if w.stable != nil {
		opts.Filter = Not(w.stable.filter)
		if !w.search.Filter.IsZero() {
			opts.Filter = And(w.search.Filter, opts.Filter)
		}
	}
	return opts
}

// plan plans what was found; req says where it stands.
func (w *wrapped) plan(ctx context.Context, query string, hits []Hit, req contextpilot.Request) contextpilot.Plan {
	req.Blocks = make([]contextpilot.Block, len(hits))
	for i := range hits {
		req.Blocks[i] = contextpilot.Block{ID: hits[i].Memory.BlockID(), Text: hits[i].Memory.Text, Score: hits[i].Score}
	}
	// As in retriever.Wrap, the conversation is left to the model wrapper, which sees the messages.
	req.NoEcho = true // memories stand in the prompts of later turns as well
	req.Scope, req.Query, req.HeadTokens, req.Budget = w.cache, query, w.headTokens, w.budget
	plan := w.pilot.Plan(req)
	plan.Session = framework.ConversationFrom(ctx)
	w.plans(plan)
	return plan
}

// hold keeps a plan for the model wrapper, without an order note: memories stand in the prompts of later turns as well, and no note
// would.
func (w *wrapped) hold(plan contextpilot.Plan) {
	if !w.noHold {
		plan.Hint = ""
		w.offers.Offer(plan)
	}
}

// renderStable returns memories in the order in which they came to be, but for those that the history shows.
func (w *wrapped) renderStable(query string, all []Memory, history shown) string {
	var blocks []contextpilot.Block
	for i := range all {
		if !history.has(all[i].Text) {
			blocks = append(blocks, contextpilot.Block{ID: all[i].BlockID(), Text: all[i].Text})
		}
	}
	if len(blocks) == 0 {
		return ""
	}
	plan := w.pilot.Plan(contextpilot.Request{Scope: w.cache, Query: query, Blocks: blocks, HeadTokens: w.headTokens, Fixed: true})
	return headed(w.stable.heading, &plan)
}

func headed(heading string, plan *contextpilot.Plan) string {
	text := strings.TrimSuffix(plan.Context(), "\n")
	if heading == "" {
		return text
	}
	return heading + "\n" + text
}

// shown are texts that a prompt has anyway, with single spaces.
type shown []string

// shownBy returns the texts of a history of either form that langchaingo's memories give.
func shownBy(history any) shown {
	switch h := history.(type) {
	case string:
		return shown{spaced(h)}
	case []llms.ChatMessage:
		texts := make(shown, len(h))
		for i, m := range h {
			texts[i] = spaced(m.GetContent())
		}
		return texts
	}
	return nil
}

// has reports whether one of the texts has all that a memory says: its text, or each of its sentences if others stood between
// them when it was stored.
func (s shown) has(text string) bool {
	whole := spaced(text)
	if whole == "" {
		return false
	}
	var sentences []string
	for _, t := range s {
		if showsPart(t, whole) {
			return true
		}
		if sentences == nil {
			sentences = statement.Sentences(text)
		}
		all := len(sentences) > 1
		for i := 0; all && i < len(sentences); i++ {
			all = showsPart(t, spaced(sentences[i]))
		}
		if all {
			return true
		}
	}
	return false
}

// spaced returns a text as stores have it, with single spaces.
func spaced(text string) string { return strings.Join(strings.Fields(readable(text)), " ") }

// showsPart reports whether text has part, and no word of text is cut by that.
func showsPart(text, part string) bool {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(part):])
		first, size := utf8.DecodeRuneInString(part)
		last, _ := utf8.DecodeLastRuneInString(part)
		if cut := word(before) && word(first) || word(last) && word(after); !cut {
			return true
		}
		from = i + size
	}
}

// maxListed is the length in bytes up to which a memory stands as a line: the tags of a block weigh little beside a longer one.
const maxListed = 256

// linePunctuation may stand in a line beside letters, marks, digits and single spaces. Colons may stand between digits.
const linePunctuation = ".,;!?'\"()-–—/%&+€$£°’‘“”…@=~_*"

// asLine returns a memory as a line of a list: "- " and its text. ok: the text is such that it cannot be taken for anything else,
// neither by a model nor by what reads prompts: one line that begins with a letter or a digit, without brackets and tags, without
// a colon as roles and notes have it, and without what is not printed. The text alone decides.
func asLine(text string) (line string, ok bool) {
	first, _ := utf8.DecodeRuneInString(text)
	if len(text) > maxListed || !utf8.ValidString(text) || !unicode.In(first, unicode.L, unicode.Nd) {
		return "", false
	}
	last := first
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), r == '\u02d0',
			r == '\u02d1': // not printed, or like a colon
			return "", false
		case unicode.In(r, unicode.L, unicode.M, unicode.Nd), strings.ContainsRune(linePunctuation, r):
		case r == ' ' && last != ' ':
		case r == ':' && unicode.Is(unicode.Nd, last) && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
		default:
			return "", false
		}
		last = r
	}
	return "- " + text, true
}
