package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// wrapped is inner with a store beside it.
type wrapped struct {
	settings
	pilot *contextpilot.Pilot
	inner schema.Memory
	store Store
}

var _ schema.Memory = (*wrapped)(nil)

// Wrap returns a langchaingo memory that adds to inner's history what the store knows about the input, as blocks that
// the pilot orders, and stores what is worth it of every turn. It is safe for concurrent use if inner is.
//
// Whose memories are meant says the context, see [WithScope], or else [WithDefaultScope], or else the conversation of
// the context is taken for a run ([contextpilot.WithConversation]). The blocks bear texts only: no times, no scores, and
// an ID made from the text, so that the same memories are the same bytes in every prompt.
//
// Errors of inner and of the store are returned, see [WithErrors]. Clear clears inner alone: [Store.DeleteAll] removes
// memories.
func Wrap(pilot *contextpilot.Pilot, inner schema.Memory, store Store, opts ...Option) schema.Memory {
	return &wrapped{settings: newSettings(opts), pilot: pilot, inner: inner, store: store}
}

// GetMemoryKey returns inner's.
func (w *wrapped) GetMemoryKey(ctx context.Context) string { return w.inner.GetMemoryKey(ctx) }

// MemoryVariables returns inner's, and that of the recalled memories if they have one.
func (w *wrapped) MemoryVariables(ctx context.Context) []string {
	names := slices.Clone(w.inner.MemoryVariables(ctx))
	if w.recall != "" {
		names = append(names, w.recall)
	}
	return names
}

// Clear clears inner.
func (w *wrapped) Clear(ctx context.Context) error { return w.inner.Clear(ctx) }

// LoadMemoryVariables returns inner's variables with the recalled memories.
func (w *wrapped) LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	loaded, err := w.inner.LoadMemoryVariables(ctx, inputs)
	if err != nil {
		return nil, err
	}
	recalled, err := w.recalled(ctx, inputs)
	if err != nil {
		if w.failed == nil {
			return nil, fmt.Errorf("memory: recall: %w", err)
		}
		w.failed(err)
	}
	variables := maps.Clone(loaded)
	if variables == nil {
		variables = map[string]any{}
	}
	if w.recall != "" {
		variables[w.recall] = recalled
		return variables, nil
	}
	if recalled == "" {
		return variables, nil
	}
	key := w.inner.GetMemoryKey(ctx)
	variables[key], err = w.beside(variables[key], recalled)
	if err != nil {
		return nil, fmt.Errorf("memory: recall: variable %q: %w", key, err)
	}
	return variables, nil
}

// recalled returns the memories as they stand in the prompt, or "" if there are none.
func (w *wrapped) recalled(ctx context.Context, inputs map[string]any) (string, error) {
	query, err := pick(inputs, w.input, "input", "question", "query", "human_input")
	if err != nil {
		return "", err
	}
	hits, err := w.store.Search(ctx, w.scopeOf(ctx), query, w.k, w.search)
	if err != nil || len(hits) == 0 {
		return "", err
	}
	blocks := make([]contextpilot.Block, len(hits))
	for i := range hits {
		blocks[i] = contextpilot.Block{ID: hits[i].Memory.BlockID(), Text: hits[i].Memory.Text, Score: hits[i].Score}
	}
	// As in retriever.Wrap, the conversation is left to the model wrapper, which sees the messages.
	plan := w.pilot.Plan(contextpilot.Request{
		Scope: w.cache, Query: query, Blocks: blocks, HeadTokens: w.headTokens, Budget: w.budget,
	})
	plan.Session = contextpilot.ConversationFrom(ctx)
	w.plans(plan)
	if len(plan.Items) == 0 { // nothing fits the budget
		return "", nil
	}
	if !w.noHold {
		w.pilot.Hold(plan)
	}
	text := strings.TrimSuffix(plan.Context(), "\n")
	if w.heading != "" {
		text = w.heading + "\n" + text
	}
	return text, nil
}

// beside puts the memories to a history of either form that langchaingo's memories give.
func (w *wrapped) beside(history any, recalled string) (any, error) {
	switch h := history.(type) {
	case nil:
		return recalled, nil
	case string:
		switch {
		case h == "":
			return recalled, nil
		case w.place == BeforeHistory:
			return recalled + "\n\n" + h, nil
		}
		return h + "\n\n" + recalled, nil
	case []llms.ChatMessage:
		message := llms.SystemChatMessage{Content: recalled}
		if w.place == BeforeHistory {
			return slices.Insert(slices.Clone(h), 0, llms.ChatMessage(message)), nil
		}
		return append(slices.Clone(h), message), nil
	}
	return nil, fmt.Errorf("%w: a history of type %T; give the memories a variable of their own", ErrInvalid, history)
}

// SaveContext saves with inner, then in the store.
func (w *wrapped) SaveContext(ctx context.Context, inputs, outputs map[string]any) error {
	if err := w.inner.SaveContext(ctx, inputs, outputs); err != nil {
		return err
	}
	if w.noSave {
		return nil
	}
	if err := w.save(ctx, inputs, outputs); err != nil {
		if w.failed == nil {
			return fmt.Errorf("memory: save: %w", err)
		}
		w.failed(err)
	}
	return nil
}

func (w *wrapped) save(ctx context.Context, inputs, outputs map[string]any) error {
	question, err := pick(inputs, w.input, "input", "question", "query", "human_input")
	if err != nil {
		return err
	}
	answer, err := pick(outputs, w.output, "text", "output", "answer", "response")
	if err != nil {
		return err
	}
	_, err = w.store.Add(ctx, w.scopeOf(ctx), []Message{
		{Role: User, Content: question}, {Role: Assistant, Content: answer},
	}, w.add)
	return err
}

// scopeOf returns whose memories are meant; if nothing says so, the store refuses the zero scope.
func (w *wrapped) scopeOf(ctx context.Context) Scope {
	if scope := ScopeFrom(ctx); scope != (Scope{}) {
		return scope
	}
	if w.scope != (Scope{}) {
		return w.scope
	}
	return Scope{Run: contextpilot.ConversationFrom(ctx)}
}

// pick returns the value of a name, or else the only string, or else that of the first usual name there is.
func pick(values map[string]any, name string, usual ...string) (string, error) {
	if name != "" {
		text, ok := values[name].(string)
		if !ok {
			return "", fmt.Errorf("%w: no string %q among %q", ErrInvalid, name, sortedKeys(values))
		}
		return text, nil
	}
	only, strings := "", 0
	for _, v := range values {
		if text, ok := v.(string); ok {
			only = text
			strings++
		}
	}
	if strings == 1 {
		return only, nil
	}
	for _, name := range usual {
		if text, ok := values[name].(string); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("%w: which of %q to take must be said, see WithKeys", ErrInvalid, sortedKeys(values))
}
