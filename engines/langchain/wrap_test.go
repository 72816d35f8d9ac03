package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/framework"
)

func TestUnclaimedPassesThrough(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	hold(pilot, "s", "a", "b")
	messages := []llms.MessageContent{human("No blocks of <doc a> here."), ai("Hm."), human("<doc a>\nAnother text.\n</doc>\nAlone.")}
	options := []llms.CallOption{llms.WithSeed(7)}
	generate(in("s"), t, langchain.Wrap(pilot, inner), messages, options...)
	got := inner.last()
	if &got.messages[0] != &messages[0] || len(got.options) != 1 || &got.options[0] != &options[0] {
		t.Error("other messages or options than the caller's")
	}
	if got.id != "" || framework.OffersOf(pilot).Stats().Held != 1 || pilot.Stats().Events != 0 {
		t.Errorf("request ID %q, %+v", got.id, pilot.Stats())
	}
}

// A call with some of a plan's blocks goes out as it is. It is a request of its own, and the plan never was one.
func TestPartPassesThrough(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
	var sent contextpilot.Plan
	m := langchain.Wrap(pilot, inner, langchain.WithPlans(func(p contextpilot.Plan) { sent = p }))
	for _, messages := range [][]llms.MessageContent{
		{human("<doc a>\nText of a.\n</doc>\nAlone.")},
		{human("Hello."), ai("Hm."), human("<doc b>\nText of b.\n</doc>\nAlone.")},
		{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.TextPart("<doc b>\nText of b.\n</doc>"),
			llms.TextPart("<doc a>\nText of a.\n</doc>"), llms.TextPart("Both, apart."),
		}}},
	} {
		plan, _ := hold(pilot, "s", "c", "b", "a")
		before := pilot.Stats().LiveRequests - 1
		generate(in("s"), t, m, messages)
		got := inner.last()
		if &got.messages[0] != &messages[0] {
			t.Error("other messages than the caller's")
		}
		text := ""
		for _, message := range messages {
			text += textOf(message)
		}
		if got.id != sent.RequestID || got.id == plan.RequestID || sent.Hint != "" || len(sent.Items) != strings.Count(text, "<doc ") ||
			sent.Session != "s" {
			t.Errorf("request %q, planned was %s", got.id, sent.Explain())
		}
		if st := pilot.Stats(); st.LiveRequests != before+1 || st.Plans != before+1 {
			t.Errorf("%+v", st)
		}
	}
}

// In an agent's next step the question with its documents stands there as before. It is no part of what was retrieved since.
func TestNextStepIsNoPart(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
	m := langchain.Wrap(pilot, inner)
	_, text := hold(pilot, "s", "b", "a")
	messages := []llms.MessageContent{human(text + "\n\nWhy?")}
	messages = append(messages, ai(generate(in("s"), t, m, messages)))
	first := textOf(inner.last().messages[0])
	hold(pilot, "s", "c", "a")
	generate(in("s"), t, m, messages)
	if got := inner.last(); got.id != "" || textOf(got.messages[0]) != first {
		t.Errorf("request %q: sent\n%s\nwas\n%s", got.id, textOf(got.messages[0]), first)
	}
	if st := pilot.Stats(); st.Plans != 1 || st.LiveRequests != 1 || framework.OffersOf(pilot).Stats().Held != 1 {
		t.Errorf("%+v", st)
	}
}

// At the front of a prompt the blocks stay as the retriever's wrapper has laid them out, and the order note is added behind them.
func TestClaimedWithoutHistoryKeepsTheText(t *testing.T) {
	for _, policy := range contextpilot.PolicyNames() {
		for _, session := range []string{"", "s"} {
			for name, limits := range map[string]contextpilot.Limits{
				"no limits": {}, "best last": {KeepTopAtEnd: 1}, "two best last": {KeepTopAtEnd: 2}, "near": {MaxDisplacement: 1},
			} {
				t.Run(fmt.Sprintf("%s/session=%q/%s", policy, session, name), func(t *testing.T) {
					keepsTheText(t, contextpilot.Config{Policy: policy, Limits: limits}, session)
				})
			}
		}
	}
}

func keepsTheText(t *testing.T, cfg contextpilot.Config, session string) {
	var last planned
	cfg.Recorder = &last
	pilot, inner := newPilot(t, cfg), &recorder{}
	m := langchain.Wrap(pilot, inner)
	for _, ids := range [][]string{{"d", "a", "b"}, {"b", "c", "a"}, {"c", "b"}, {"a", "d", "c", "b"}} {
		plan, text := hold(pilot, session, ids...)
		hint := plan.Hint
		if hint != "" {
			hint = "\n" + hint
		}
		if echo := strings.TrimSuffix(plan.RenderEcho(), "\n"); echo != "" {
			hint = "\n" + echo + hint
		}
		generate(in(session), t, m, []llms.MessageContent{human("Use this:\n\n" + text + "\n\nQuestion: why?")})
		want := []llms.MessageContent{human("Use this:\n\n" + text + hint + "\n\nQuestion: why?")}
		if diff := cmp.Diff(want, inner.last().messages); diff != "" {
			t.Error(diff)
		}
		if inner.last().id != plan.RequestID {
			t.Errorf("request ID %q, want %q", inner.last().id, plan.RequestID)
		}
		if last.RequestID != plan.RequestID || last.Context() != plan.Context() {
			t.Errorf("the index holds\n%s\nbut sent was\n%s", last.Context(), plan.Context())
		}
	}
	if st := pilot.Stats(); framework.OffersOf(pilot).Stats().Held != 0 || st.LiveRequests != 4 || st.EventsUnknown != 0 || st.Plans != 4 ||
		st.BlocksSent != 12 {
		t.Errorf("%+v", st)
	}
}

// planned is the last plan that a pilot made.
type planned struct{ contextpilot.Plan }

func (r *planned) Planned(_ contextpilot.Scope, p *contextpilot.Plan, _ time.Duration) { r.Plan = *p }
func (r *planned) Observed(contextpilot.Event, bool)                                   {}

func TestEverythingButTheBlocksIsUntouched(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	m := langchain.Wrap(pilot, inner)
	_, first := hold(pilot, "s", "a")
	messages := []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."),
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.ImageURLPart("http://example.com/a.png"), llms.TextPart(first + "\n\nWhat is a?"), llms.BinaryPart("image/png", []byte{1, 2}),
		}},
	}
	generate(in("s"), t, m, messages)
	_, second := hold(pilot, "s", "a", "b")
	call := llms.ToolCall{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}
	messages = append(messages,
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextPart("It is."), call}},
		llms.MessageContent{
			Role:  llms.ChatMessageTypeTool,
			Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "1", Name: "f", Content: "ok"}},
		},
		llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.TextPart("Look:"),
			llms.ImageURLWithDetailPart("http://example.com/b.png", "low"),
			llms.WithCacheControl(llms.TextPart(second+"\n\nAnd b?"), &llms.CacheControl{Type: "ephemeral"}),
			llms.TextPart("Please."),
		}},
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{call}},
		llms.MessageContent{
			Role:  llms.ChatMessageTypeTool,
			Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "1", Name: "f", Content: "ok"}},
		},
	)
	before := deepCopy(messages)
	generate(in("s"), t, m, messages)
	if diff := cmp.Diff(before, messages); diff != "" {
		t.Errorf("the caller's messages were changed: %s", diff)
	}
	want := deepCopy(before)
	want[4].Parts[2] = llms.WithCacheControl(llms.TextPart(
		"<doc b>\nText of b.\n</doc>\nPlease refer to [a] in the previous conversation.\n\nAnd b?"), &llms.CacheControl{Type: "ephemeral"})
	if diff := cmp.Diff(want, inner.last().messages); diff != "" {
		t.Error(diff)
	}
}

// A history is one, whatever its messages are made of.
func TestBehindAnImage(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Policy: "sorted"}), &recorder{}
	_, text := hold(pilot, "", "b", "a")
	image := llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.ImageURLPart("http://example.com/a.png")}}
	generate(t.Context(), t, langchain.Wrap(pilot, inner), []llms.MessageContent{image, human(text + "\n\nWhy?")})
	if got, want := textOf(inner.last().messages[1]), blocks("b", "a")+"\n\nWhy?"; got != want {
		t.Errorf("sent:\n%s\nwant:\n%s", got, want)
	}
}

func TestOptionsPassThrough(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	_, text := hold(pilot, "", "a")
	options := make([]llms.CallOption, 2, 9)
	options[0], options[1] = llms.WithTemperature(0.3), llms.WithTools([]llms.Tool{{Type: "function"}})
	generate(context.Background(), t, langchain.Wrap(pilot, inner), []llms.MessageContent{human(text)}, options...)
	if got := inner.last().options; len(got) != 2 || &got[0] != &options[0] {
		t.Errorf("%d options, want the caller's 2", len(got))
	}
	_, text = hold(pilot, "", "a")
	options[1] = llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })
	generate(context.Background(), t, langchain.Wrap(pilot, inner), []llms.MessageContent{human(text)}, options...)
	var o llms.CallOptions
	for _, set := range inner.last().options {
		set(&o)
	}
	if o.Temperature != 0.3 || o.StreamingFunc == nil || o.StreamingReasoningFunc != nil {
		t.Errorf("options %+v", o)
	}
	if options[:3][2] != nil {
		t.Error("an option was written behind the caller's")
	}
}

func TestScopeOfTheModel(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{Policy: "knowledge-tree"}), &recorder{}
	replica := contextpilot.Scope{Replica: "two"}
	warm := pilot.Plan(contextpilot.Request{Scope: replica, Blocks: []contextpilot.Block{{ID: "b", Text: "Text of b."}}})
	var sent contextpilot.Plan
	m := langchain.Wrap(pilot, inner, langchain.WithScope(replica), langchain.WithPlans(func(p contextpilot.Plan) { sent = p }))
	plan, text := hold(pilot, "", "a", "b")
	generate(context.Background(), t, m, []llms.MessageContent{human(text + "\n\nWhy?")})
	want := "<doc b>\nText of b.\n</doc>\n\n<doc a>\nText of a.\n</doc>\n" +
		"Please read the context in the following priority order: [a] > [b] and answer the question.\n\nWhy?"
	if got := textOf(inner.last().messages[0]); got != want {
		t.Errorf("sent:\n%s\nwant:\n%s", got, want)
	}
	if sent.RequestID != plan.RequestID || sent.Scope != replica {
		t.Errorf("sent %q in %+v", sent.RequestID, sent.Scope)
	}
	if n := pilot.Stats().LiveRequests; n != 2 {
		t.Errorf("%d live requests, want %q and %q", n, warm.RequestID, plan.RequestID)
	}
}

func TestRequestID(t *testing.T) {
	type key struct{}
	pilot, inner := newPilot(t, contextpilot.Config{}), &recorder{}
	var seen any
	inner.do = func(ctx context.Context, _ llms.CallOptions) (*llms.ContentResponse, error) {
		seen = ctx.Value(key{})
		return answer("Yes.", nil), nil
	}
	m := langchain.Wrap(pilot, inner, langchain.WithRequestID(func(ctx context.Context, id string) context.Context {
		return context.WithValue(ctx, key{}, id)
	}))
	plan, text := hold(pilot, "", "a")
	got, err := m.Call(context.Background(), text) //nolint:staticcheck // part of the interface, so part of the test
	if err != nil || got != "Yes." || seen != plan.RequestID {
		t.Errorf("got %q, %v with ID %v, want %q", got, err, seen, plan.RequestID)
	}
}

type reasoner struct {
	recorder
	yes bool
}

func (r *reasoner) SupportsReasoning() bool { return r.yes }

func TestReasoningIsForwarded(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	if _, ok := langchain.Wrap(pilot, &recorder{}).(llms.ReasoningModel); ok {
		t.Error("a model that does not say is wrapped as one that does")
	}
	for _, yes := range []bool{false, true} {
		m, ok := langchain.Wrap(pilot, &reasoner{yes: yes}).(llms.ReasoningModel)
		if !ok || m.SupportsReasoning() != yes {
			t.Errorf("reasoning %v is not forwarded", yes)
		}
	}
}

func TestOutcome(t *testing.T) {
	broken := errors.New("broken")
	chunk := func(ctx context.Context, o llms.CallOptions) error { return o.StreamingFunc(ctx, []byte("x")) }
	for _, test := range []struct {
		name   string
		stream bool
		do     func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)
		live   int64
		cached int64
		fails  bool
	}{
		{"answered", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("x", map[string]any{"PromptCachedTokens": 48, "CompletionTokens": 1}), nil
		}, 1, 48, false},
		{"int32", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("x", map[string]any{"CachedTokens": int32(32), "CompletionTokens": int32(1)}), nil
		}, 1, 32, false},
		{"float", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("x", map[string]any{"CacheReadInputTokens": 16.0, "OutputTokens": uint8(3)}), nil
		}, 1, 16, false},
		{"of another kind", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("x", map[string]any{"PromptCachedTokens": "many", "CompletionTokens": nil}), nil
		}, 1, 0, false},
		{"negative", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return answer("x", map[string]any{"PromptCachedTokens": -1}), nil
		}, 1, 0, false},
		{"no usage", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return &llms.ContentResponse{Choices: []*llms.ContentChoice{nil, {Content: "x"}}}, nil
		}, 1, 0, false},
		{"refused", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, broken }, 0, 0, true},
		{
			"refused while streaming", true, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, broken }, 0, 0,
			true,
		},
		{"interrupted", true, func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, errors.Join(chunk(ctx, o), broken)
		}, 1, 0, true},
		{"interrupted engine", false, func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, fmt.Errorf("%w: %w", engines.ErrInterrupted, broken)
		}, 1, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pilot := newPilot(t, contextpilot.Config{})
			_, text := hold(pilot, "s", "a", "b")
			var options []llms.CallOption
			if test.stream {
				options = append(options, llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
			}
			_, err := langchain.Wrap(pilot, &recorder{do: test.do}).GenerateContent(in("s"), []llms.MessageContent{human(text)}, options...)
			if test.fails != errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			if st := pilot.Stats(); st.LiveRequests != test.live || st.PrefixReported != test.cached || st.EventsUnknown != 0 {
				t.Errorf("%d live requests, %d cached tokens, want %d, %d", st.LiveRequests, st.PrefixReported, test.live, test.cached)
			}
		})
	}
}

func TestPanicOfInnerTakesTheRequestBack(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	_, text := hold(pilot, "s", "a")
	defer func() {
		if r := recover(); r != "boom" || pilot.Stats().LiveRequests != 0 {
			t.Errorf("recovered %v, %d live requests", r, pilot.Stats().LiveRequests)
		}
	}()
	m := langchain.Wrap(pilot, &recorder{do: func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { panic("boom") }})
	_, _ = m.GenerateContent(in("s"), []llms.MessageContent{human(text)})
}

func TestStreaming(t *testing.T) {
	enough := errors.New("enough")
	pieces := []string{"", "One", "", " two", " three"}
	for _, test := range []struct {
		name string
		stop string // the chunk at which the caller stops
		want []string
	}{
		{"to the end", "-", pieces},
		{"stopped by the caller", " two", pieces[:4]},
		{"stopped at an empty chunk", "", pieces[:1]},
	} {
		for _, reasoning := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reasoning=%v", test.name, reasoning), func(t *testing.T) {
				pilot := newPilot(t, contextpilot.Config{})
				inner := &recorder{do: func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
					for _, p := range pieces {
						var err error
						if reasoning {
							err = o.StreamingReasoningFunc(ctx, []byte("hm"), []byte(p))
						} else {
							err = o.StreamingFunc(ctx, []byte(p))
						}
						if err != nil {
							return nil, fmt.Errorf("stream: %w", err)
						}
					}
					return answer(strings.Join(pieces, ""), map[string]any{"PromptCachedTokens": 16}), nil
				}}
				var got []string
				take := func(_ context.Context, chunk []byte) error {
					if got = append(got, string(chunk)); string(chunk) == test.stop {
						return enough
					}
					return nil
				}
				option := llms.WithStreamingFunc(take)
				if reasoning {
					option = llms.WithStreamingReasoningFunc(func(ctx context.Context, _, chunk []byte) error { return take(ctx, chunk) })
				}
				_, text := hold(pilot, "", "a")
				_, err := langchain.Wrap(pilot, inner).GenerateContent(context.Background(), []llms.MessageContent{human(text)}, option)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				complete := test.stop == "-"
				if complete != (err == nil) || !complete && !errors.Is(err, enough) {
					t.Errorf("error %v", err)
				}
				if st := pilot.Stats(); st.LiveRequests != 1 || (st.PrefixReported == 16) != complete {
					t.Errorf("%d live requests, %d cached tokens", st.LiveRequests, st.PrefixReported)
				}
			})
		}
	}
}
