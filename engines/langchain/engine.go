package langchain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// ModelOption changes what [Model] does.
type ModelOption func(*engineModel)

// WithModelName sets the served model's name for calls that do not choose one.
func WithModelName(name string) ModelOption {
	return func(m *engineModel) { m.name = name }
}

// WithMaxTokens bounds the answers of calls that do not set a bound.
func WithMaxTokens(n int) ModelOption {
	return func(m *engineModel) { m.maxTokens = n }
}

// WithContext has every call answered behind a compressed context of the local engine, by its name in the engine's Config.Contexts. Other
// engines refuse the member "context", or pass it over.
func WithContext(name string) ModelOption {
	return func(m *engineModel) { m.context = name }
}

// engineModel is an engine as langchaingo sees it.
type engineModel struct {
	engine    engines.Engine
	name      string
	maxTokens int
	context   string
}

var _ llms.Model = (*engineModel)(nil)

// Model returns the engine as a model. Roles: system, human and AI; several text parts of a message are joined by line
// feeds. Behind [Wrap] the engine also learns where the plan's blocks stand, so that one that keeps what it computed of each (the local
// engine with Config.Reuse) finds them. The request's ID is the one that [Wrap] puts into the context, otherwise the engine's
// own. The usage is in GenerationInfo under the names of langchaingo's OpenAI client: PromptTokens, CompletionTokens, TotalTokens
// and, if the engine reports it, PromptCachedTokens; RequestID is there as well.
//
// What an engine cannot take is an error that names it and wraps [errors.ErrUnsupported]: images and other parts that
// are not text, tool messages, tools, and more than one answer. Options for lengths in characters and metadata are ignored,
// as the OpenAI client of langchaingo does.
func Model(engine engines.Engine, opts ...ModelOption) llms.Model {
	m := &engineModel{engine: engine}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Call sends a single prompt.
func (m *engineModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent runs one request. With a streaming function the answer is streamed to it.
func (m *engineModel) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	req, o, err := m.request(messages, options)
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	req.ID, req.Blocks = RequestID(ctx), blockSpans(ctx, req.Messages)
	response, err := m.engine.Generate(ctx, req, streamTo(ctx, &o))
	if err != nil {
		return nil, fmt.Errorf("langchain: %w", err)
	}
	u := response.Usage
	info := map[string]any{
		"RequestID": response.ID, "PromptTokens": u.PromptTokens, "CompletionTokens": u.OutputTokens,
		"TotalTokens": u.PromptTokens + u.OutputTokens,
	}
	if u.CachedKnown {
		info["PromptCachedTokens"] = u.CachedTokens
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{
		{Content: response.Text, StopReason: response.Finish, GenerationInfo: info},
	}}, nil
}

// streamTo returns what an engine is to call with each piece, or nil.
func streamTo(ctx context.Context, o *llms.CallOptions) func(piece string) error {
	plain, reasoning := o.StreamingFunc, o.StreamingReasoningFunc
	if plain == nil && reasoning == nil {
		return nil
	}
	return func(piece string) error {
		if plain != nil {
			if err := plain(ctx, []byte(piece)); err != nil {
				return err
			}
		}
		if reasoning != nil {
			return reasoning(ctx, nil, []byte(piece))
		}
		return nil
	}
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w by engines: %s", errors.ErrUnsupported, fmt.Sprintf(format, args...))
}

type blocksKey struct{}

// withBlocks keeps how a plan's blocks are written, for [Model].
func withBlocks(ctx context.Context, plan *contextpilot.Plan) context.Context {
	text, spans := plan.Context(), plan.Spans()
	blocks := make([]string, len(spans))
	for i, s := range spans {
		blocks[i] = text[s[0]:s[1]]
	}
	return context.WithValue(ctx, blocksKey{}, blocks)
}

// blockSpans finds a plan's blocks in the last message, where they stand in order. Those that do not are left out.
func blockSpans(ctx context.Context, messages []engines.Message) (spans []engines.BlockSpan) {
	blocks, _ := ctx.Value(blocksKey{}).([]string)
	at := 0
	for _, b := range blocks {
		last := len(messages) - 1
		i := strings.Index(messages[last].Content[at:], b)
		if i < 0 {
			continue
		}
		spans = append(spans, engines.BlockSpan{Message: last, From: at + i, To: at + i + len(b)})
		at += i + len(b)
	}
	return spans
}
