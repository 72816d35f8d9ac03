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
	"github.com/ragpilot/ragpilot/framework"
)

// wrapped is inner with a store beside it.
type wrapped struct {
	settings
	pilot  *contextpilot.Pilot
	offers *framework.Offers
	inner  schema.Memory
	store  Store

	getter Getter  // nil: nothing is kept within histories
	kept   *keeper // nil if getter is
}

var _ schema.Memory = (*wrapped)(nil)

// Wrap returns a langchaingo memory that adds to inner's history what the store knows about the input, in an order that the pilot
// makes, and stores what is worth it of every turn. It is safe for concurrent use if inner is.
//
// A memory that the history or the input shows already is left out, and the next best one recalled in its place: nothing is recalled
// that the running conversation says. What was recalled stays where it was first shown, see [WithinHistory], and counts among the
// k best; it is not taken out if the conversation says it later.
//
// Whose memories are meant says the context, see [WithScope], or else [WithDefaultScope], or else the conversation of
// the context is taken for a run ([framework.WithConversation]). What stands in the prompt are texts only, as lines or as blocks
// ([WithBlocks]): no times, no scores, and an ID made from the text, so that the same memories are the same bytes in every prompt.
//
// Errors of inner and of the store are returned, see [WithErrors]. Clear clears inner alone: [Store.DeleteAll] removes
// memories.
func Wrap(pilot *contextpilot.Pilot, inner schema.Memory, store Store, opts ...Option) schema.Memory {
	w := &wrapped{settings: newSettings(opts), pilot: pilot, offers: framework.OffersOf(pilot), inner: inner, store: store}
	if getter, ok := store.(Getter); ok && w.recall == "" && w.place == WithinHistory {
		w.getter, w.kept = getter, newKeeper()
	}
	return w
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

// Clear clears inner, and what is kept of where memories stood in this conversation.
func (w *wrapped) Clear(ctx context.Context) error {
	if w.kept != nil {
		if c, err := w.conversationOf(ctx); err == nil { // without a scope nothing is kept
			w.kept.forget(c)
		}
	}
	return w.inner.Clear(ctx)
}

// LoadMemoryVariables returns inner's variables with the recalled memories.
func (w *wrapped) LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	loaded, err := w.inner.LoadMemoryVariables(ctx, inputs)
	if err != nil {
		return nil, err
	}
	key := w.inner.GetMemoryKey(ctx)
	variables := maps.Clone(loaded)
	if variables == nil {
		variables = map[string]any{}
	}
	if history, ok := pastOf(loaded[key]); ok && w.kept != nil {
		with, err := w.within(ctx, inputs, history)
		if err = w.report(err); err != nil {
			return nil, err
		}
		if with != nil {
			variables[key] = with
		}
		return variables, nil
	}
	found, err := w.recallFor(ctx, inputs, loaded[key])
	if err = w.report(err); err != nil {
		return nil, err
	}
	front, behind := found.stable, found.found
	switch {
	case w.recall != "":
		variables[w.recall] = found.found
		behind = ""
	case w.place == BeforeHistory:
		front, behind = joined(front, behind), ""
	}
	if front == "" && behind == "" {
		return variables, nil
	}
	variables[key], err = beside(variables[key], front, behind)
	if err != nil {
		return nil, fmt.Errorf("memory: recall: variable %q: %w", key, err)
	}
	return variables, nil
}

// report returns an error of a recall, or nil if WithErrors takes it.
func (w *wrapped) report(err error) error {
	if err == nil {
		return nil
	}
	if w.failed == nil {
		return err
	}
	w.failed(err)
	return nil
}

// beside puts memories to a history of either form that langchaingo's memories give. Among messages they are a user's: a system
// message is moved to the front by some clients, which changes the prompt from its beginning at every turn.
func beside(history any, front, behind string) (any, error) {
	switch h := history.(type) {
	case nil:
		return joined(front, behind), nil
	case string:
		return joined(front, h, behind), nil
	case []llms.ChatMessage:
		messages := make([]llms.ChatMessage, 0, len(h)+2)
		if front != "" {
			messages = append(messages, llms.HumanChatMessage{Content: front})
		}
		messages = append(messages, h...)
		if behind != "" {
			messages = append(messages, llms.HumanChatMessage{Content: behind})
		}
		return messages, nil
	}
	return nil, fmt.Errorf("%w: a history of type %T; give the memories a variable of their own", ErrInvalid, history)
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n\n")
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
			return err
		}
		w.failed(err)
	}
	return nil
}

func (w *wrapped) save(ctx context.Context, inputs, outputs map[string]any) error {
	question, err := pick(inputs, w.input, "input", "question", "query", "human_input")
	if err != nil {
		return fmt.Errorf("memory: save: %w", err)
	}
	answer, err := pick(outputs, w.output, "text", "output", "answer", "response")
	if err != nil {
		return fmt.Errorf("memory: save: %w", err)
	}
	scope, err := w.scopeOf(ctx)
	if err != nil {
		return fmt.Errorf("memory: save: %w", err)
	}
	_, err = w.store.Add(ctx, scope, []Message{
		{Role: User, Content: question}, {Role: Assistant, Content: answer},
	}, w.add)
	return err
}

// scopeOf returns whose memories are meant.
func (w *wrapped) scopeOf(ctx context.Context) (Scope, error) {
	if scope := ScopeFrom(ctx); scope != (Scope{}) {
		return scope, nil
	}
	if w.scope != (Scope{}) {
		return w.scope, nil
	}
	if run := framework.ConversationFrom(ctx); run != "" {
		return Scope{Run: run}, nil
	}
	return Scope{}, fmt.Errorf("%w, by WithScope or WithDefaultScope", ErrNoScope)
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
