package membench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/memory"
)

// side is one conversation of an arm.
type side interface {
	// turn sends a message with all that the arm puts beside it.
	turn(ctx context.Context, turn Turn) error
}

// newSide begins a conversation behind what was said before.
func (r *armRun) newSide(user string, session int, before *conversation) side {
	scope := memory.Scope{User: user}
	switch r.name {
	case ArmOurs:
		model := langchain.Wrap(r.pilot, langchain.Model(r.engine))
		return &wrappedSide{
			name: fmt.Sprintf("%s-%d", user, session),
			call: func(ctx context.Context, prompt string) (string, error) {
				return model.Call(ctx, prompt) //nolint:staticcheck // what to call instead is in langchaingo, which only adapters import
			},
			recall: memory.Wrap(r.pilot, before, r.store, memory.WithDefaultScope(scope), memory.WithK(r.k)),
		}
	case ArmTopK:
		return &plainSide{engine: r.engine, history: before, recall: func(ctx context.Context, question string) ([]memory.Hit, error) {
			return r.store.Search(ctx, scope, question, r.k, memory.SearchOptions{})
		}, save: func(ctx context.Context, turn Turn) error { return talk(ctx, r.store, user, turn) }}
	default:
		return &plainSide{engine: r.engine, history: before}
	}
}

// plainSide sends prompts without a pilot.
type plainSide struct {
	engine  engines.Engine
	history *conversation
	recall  func(ctx context.Context, question string) ([]memory.Hit, error) // nil: there is no memory
	save    func(ctx context.Context, turn Turn) error
}

// turn puts what was recalled between the conversation and the message.
func (s *plainSide) turn(ctx context.Context, turn Turn) error {
	history := s.history.String()
	if s.recall != nil {
		hits, err := s.recall(ctx, turn.Text)
		if err != nil {
			return err
		}
		if len(hits) > 0 {
			lines := []string{history, "", "Known from earlier conversations:"}
			for i := range hits {
				lines = append(lines, hits[i].Memory.Text)
			}
			history = strings.Join(lines, "\n")
		}
	}
	_, err := s.engine.Generate(ctx, engines.Request{
		Messages: []engines.Message{{Role: engines.User, Content: prompt(history, turn.Text)}},
	}, nil)
	if err != nil {
		return err
	}
	s.history.add(turn.Text, turn.Answer)
	if s.save == nil {
		return nil
	}
	return s.save(ctx, turn)
}

// wrappedSide sends prompts as langchaingo's conversation chain does with [memory.Wrap] and [langchain.Wrap].
type wrappedSide struct {
	name   string
	call   func(ctx context.Context, prompt string) (string, error)
	recall interface {
		LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error)
		SaveContext(ctx context.Context, inputs, outputs map[string]any) error
	}
}

// turn is what a chain does with one input.
func (s *wrappedSide) turn(ctx context.Context, turn Turn) error {
	ctx = framework.WithConversation(ctx, s.name)
	inputs := map[string]any{"input": turn.Text}
	variables, err := s.recall.LoadMemoryVariables(ctx, inputs)
	if err != nil {
		return err
	}
	history, _ := variables[historyKey].(string)
	answer, err := s.call(ctx, prompt(history, turn.Text))
	if err != nil {
		return err
	}
	return s.recall.SaveContext(ctx, inputs, map[string]any{"text": answer})
}

// prompt is that of langchaingo's conversation chain.
func prompt(history, input string) string {
	return "The following is a friendly conversation between a human and an AI. The AI is talkative and provides lots of specific details " +
		"from its context. " +
		"If the AI does not know the answer to a question, it truthfully says it does not know.\n\nCurrent conversation:\n" + history +
		"\nHuman: " + input + "\nAI:"
}

const historyKey = "history"

// conversation is what was said, as a string that only grows, as langchaingo's conversation buffer has it: a memory for chains.
type conversation struct{ text strings.Builder }

// newConversation begins with statements, but those that were deleted.
func newConversation(said []Said, deleted []string) *conversation {
	c := &conversation{}
	for _, s := range said {
		if !slices.Contains(deleted, s.Text) {
			c.line(s.speaker(), s.Text)
		}
	}
	return c
}

func (s Said) speaker() string {
	if s.Speaker == "" {
		return "Human"
	}
	return s.Speaker
}

func (c *conversation) line(speaker, text string) {
	if c.text.Len() > 0 {
		c.text.WriteByte('\n')
	}
	c.text.WriteString(speaker + ": " + text)
}

func (c *conversation) add(text, answer string) {
	c.line("Human", text)
	c.line("AI", answer)
}

func (c *conversation) String() string { return c.text.String() }

// GetMemoryKey and the methods below make it a memory of a chain.
func (c *conversation) GetMemoryKey(context.Context) string { return historyKey }

// MemoryVariables names the history.
func (c *conversation) MemoryVariables(context.Context) []string { return []string{historyKey} }

// Clear forgets everything.
func (c *conversation) Clear(context.Context) error {
	c.text.Reset()
	return nil
}

// LoadMemoryVariables returns the history.
func (c *conversation) LoadMemoryVariables(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{historyKey: c.String()}, nil
}

// SaveContext adds a turn.
func (c *conversation) SaveContext(_ context.Context, inputs, outputs map[string]any) error {
	text, _ := inputs["input"].(string)
	answer, _ := outputs["text"].(string)
	c.add(text, answer)
	return nil
}
