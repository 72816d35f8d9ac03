package langchain_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// tb is what a *testing.T, a *testing.B and a *rapid.T have in common.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Cleanup(func())
}

// recorder is a model that writes down what it is asked, and answers "Answer N.".
type recorder struct {
	mu    sync.Mutex
	calls []recorded

	// do, if not nil, answers instead.
	do func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)
}

type recorded struct {
	id       string
	messages []llms.MessageContent
	options  []llms.CallOption
}

func (r *recorder) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, r, prompt, options...)
}

func (r *recorder) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	r.mu.Lock()
	r.calls = append(r.calls, recorded{langchain.RequestID(ctx), messages, options})
	n := len(r.calls)
	r.mu.Unlock()
	if r.do == nil {
		return answer("Answer "+string(rune('0'+n))+".", nil), nil
	}
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	return r.do(ctx, o)
}

func (r *recorder) last() recorded { return r.calls[len(r.calls)-1] }

func answer(text string, info map[string]any) *llms.ContentResponse {
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, GenerationInfo: info}}}
}

// bySubject finds the documents whose subject is named in the question, in the order of the words.
type bySubject map[string]schema.Document

func (s bySubject) GetRelevantDocuments(_ context.Context, query string) ([]schema.Document, error) {
	var docs []schema.Document
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if d, ok := s[strings.Trim(word, "?.,")]; ok {
			docs = append(docs, d)
		}
	}
	return docs, nil
}

// machines are three documents of about 100 tokens each.
func machines() bySubject {
	s := bySubject{}
	for _, name := range []string{"pump", "valve", "motor"} {
		s[name] = schema.Document{
			PageContent: strings.Repeat("The "+name+" is checked on the first day of each month. ", 8),
			Metadata:    map[string]any{"id": name},
		}
	}
	return s
}

func newPilot(t tb, cfg contextpilot.Config) *contextpilot.Pilot {
	t.Helper()
	if cfg.Notes.Hint == contextpilot.HintAuto {
		cfg.Notes.Hint, cfg.Notes.AlwaysHint = contextpilot.HintFull, true // short texts would not earn a note
	}
	pilot := testkit.Must(contextpilot.New(cfg))(t)
	offers := framework.OffersOf(pilot) // a wrapper that is not used any more keeps none
	t.Cleanup(func() { runtime.KeepAlive(offers) })
	return pilot
}

// hold plans blocks named and texted after ids, as the retriever's wrapper does, and returns the plan and its text.
func hold(pilot *contextpilot.Pilot, session string, ids ...string) (contextpilot.Plan, string) {
	var req contextpilot.Request
	for _, id := range ids {
		req.Blocks = append(req.Blocks, contextpilot.Block{ID: id, Text: "Text of " + id + "."})
	}
	plan := pilot.Plan(req)
	plan.Session = session
	framework.OffersOf(pilot).Offer(plan)
	var parts []string
	for i := range plan.Items {
		parts = append(parts, strings.TrimSuffix(plan.RenderItem(i), "\n"))
	}
	return plan, strings.Join(parts, "\n\n")
}

func human(text string) llms.MessageContent { return llms.TextParts(llms.ChatMessageTypeHuman, text) }
func ai(text string) llms.MessageContent    { return llms.TextParts(llms.ChatMessageTypeAI, text) }

func generate(ctx context.Context, t tb, m llms.Model, messages []llms.MessageContent, options ...llms.CallOption) string {
	t.Helper()
	r, err := m.GenerateContent(ctx, messages, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r.Choices[0].Content
}

// textOf returns all text of a message.
func textOf(m llms.MessageContent) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(llms.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// deepCopy copies messages down to their parts, which are values.
func deepCopy(messages []llms.MessageContent) []llms.MessageContent {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
	}
	return out
}

func in(session string) context.Context {
	return framework.WithConversation(context.Background(), session)
}
