package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// stub is an engine that keeps the last request and answers with what it is given.
type stub struct {
	request  engines.Request
	response engines.Response
	pieces   []string
	err      error
}

func (s *stub) Name() string { return "stub" }

func (s *stub) Generate(_ context.Context, req engines.Request, onText func(string) error) (engines.Response, error) {
	s.request = req
	if onText != nil {
		for _, p := range s.pieces {
			if err := onText(p); err != nil {
				return engines.Response{}, err
			}
		}
	}
	return s.response, s.err
}

func (s *stub) Subscribe(func(...contextpilot.Event)) func() { return func() {} }

func TestModelTranslates(t *testing.T) {
	half := 0.5
	zero := 0.0
	for _, test := range []struct {
		name    string
		options []llms.CallOption
		want    engines.Request
	}{
		{"nothing set", nil, engines.Request{Model: "default", MaxTokens: 99}},
		{
			"all set",
			[]llms.CallOption{
				llms.WithModel("m"), llms.WithMaxTokens(5), llms.WithTemperature(half), llms.WithStopWords([]string{"\n"}), llms.WithTopK(3),
				llms.WithTopP(0.9), llms.WithSeed(1), llms.WithRepetitionPenalty(1.1), llms.WithFrequencyPenalty(0.2), llms.WithPresencePenalty(0.3),
				llms.WithJSONMode(), llms.WithN(1),
			},
			engines.Request{Model: "m", MaxTokens: 5, Temperature: &half, Extra: map[string]json.RawMessage{
				"stop": json.RawMessage(`["\n"]`), "top_k": json.RawMessage("3"), "top_p": json.RawMessage("0.9"), "seed": json.RawMessage("1"),
				"repetition_penalty": json.RawMessage("1.1"), "frequency_penalty": json.RawMessage("0.2"), "presence_penalty": json.RawMessage("0.3"),
				"response_format": json.RawMessage(`{"type":"json_object"}`),
			}},
		},
		{"temperature zero", []llms.CallOption{llms.WithTemperature(0)}, engines.Request{Model: "default", MaxTokens: 99, Temperature: &zero}},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := &stub{response: engines.Response{
				ID: "r", Text: "Yes.", Finish: "length",
				Usage: engines.Usage{PromptTokens: 40, OutputTokens: 2, CachedTokens: 32, CachedKnown: true},
			}}
			m := langchain.Model(engine, langchain.WithModelName("default"), langchain.WithMaxTokens(99))
			got, err := m.GenerateContent(context.Background(), []llms.MessageContent{
				llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."), llms.TextParts(llms.ChatMessageTypeHuman, "One.", "Two."),
				ai("Three."), llms.TextParts(llms.ChatMessageTypeGeneric, "Four."),
			}, test.options...)
			if err != nil {
				t.Fatal(err)
			}
			test.want.Messages = []engines.Message{
				{Role: engines.System, Content: "Be brief."},
				{Role: engines.User, Content: "One.\nTwo."},
				{Role: engines.Assistant, Content: "Three."},
				{Role: engines.User, Content: "Four."},
			}
			if diff := cmp.Diff(test.want, engine.request); diff != "" {
				t.Error(diff)
			}
			want := answer("Yes.", map[string]any{
				"RequestID": "r", "PromptTokens": 40, "CompletionTokens": 2, "TotalTokens": 42, "PromptCachedTokens": 32,
			})
			want.Choices[0].StopReason = "length"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModelRefusesWhatAnEngineCannotTake(t *testing.T) {
	with := func(part llms.ContentPart) []llms.MessageContent {
		return []llms.MessageContent{ai("Hm."), {Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.TextPart("Look:"), part}}}
	}
	text := []llms.MessageContent{human("Hello.")}
	for _, test := range []struct {
		name     string
		messages []llms.MessageContent
		option   llms.CallOption
		want     string
	}{
		{
			"image", with(llms.ImageURLPart("http://example.com/private.png")), nil,
			"message 2: unsupported operation by engines: part 2, an image URL",
		},
		{"binary", with(llms.BinaryPart("image/png", []byte{1})), nil, `part 2, binary content of type "image/png"`},
		{"tool call", with(llms.ToolCall{}), nil, "part 2, a tool call"},
		{"tool response", with(llms.ToolCallResponse{}), nil, "part 2, a tool's response"},
		{"marked image", with(llms.WithCacheControl(llms.ImageURLPart("x"), nil)), nil, "part 2, an image URL"},
		{
			"role",
			[]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeTool, "x")},
			nil,
			`message 1: unsupported operation by engines: a message of role "tool"`,
		},
		{"tools", text, llms.WithTools([]llms.Tool{{}}), "1 tools and functions"},
		{"answers", text, llms.WithN(3), "3 answers to one request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := &stub{}
			var options []llms.CallOption
			if test.option != nil {
				options = append(options, test.option)
			}
			_, err := langchain.Model(engine).GenerateContent(context.Background(), test.messages, options...)
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if engine.request.Messages != nil {
				t.Error("the engine was called")
			}
		})
	}
	_, err := langchain.Model(&stub{}).GenerateContent(context.Background(), text, llms.WithTopP(math.Inf(1)))
	if err == nil || !strings.Contains(err.Error(), "top_p") {
		t.Errorf("error %v", err)
	}
}

func TestModelStreams(t *testing.T) {
	engine := &stub{pieces: []string{"One", " two"}, response: engines.Response{Text: "One two"}}
	var plain, reasoning []string
	got := generate(context.Background(), t, langchain.Model(engine), []llms.MessageContent{human("Count.")},
		llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			plain = append(plain, string(chunk))
			return nil
		}),
		llms.WithStreamingReasoningFunc(func(_ context.Context, thought, chunk []byte) error {
			reasoning = append(reasoning, string(thought)+"|"+string(chunk))
			return nil
		}))
	if got != "One two" {
		t.Errorf("answer %q", got)
	}
	if diff := cmp.Diff([][]string{{"One", " two"}, {"|One", "| two"}}, [][]string{plain, reasoning}); diff != "" {
		t.Error(diff)
	}
	enough := errors.New("enough")
	_, err := langchain.Model(engine).GenerateContent(context.Background(), []llms.MessageContent{human("Count.")},
		llms.WithStreamingFunc(func(context.Context, []byte) error { return enough }))
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

// Through the simulator: faults before and after the first piece, with the events of the engine and of the wrapper.
func TestModelOverAFaultyEngine(t *testing.T) {
	for _, test := range []struct {
		name  string
		after int
		want  error
		live  int64
	}{
		{"unreachable", 0, engines.ErrUnreachable, 0},
		{"interrupted", 2, engines.ErrInterrupted, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := sim.New(sim.Options{Fault: func(engines.Request) *sim.Fault { return &sim.Fault{After: test.after} }})
			pilot := newPilot(t, contextpilot.Config{})
			defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
			_, text := hold(pilot, "s", "a")
			_, err := langchain.Wrap(pilot, langchain.Model(engine)).GenerateContent(in("s"), []llms.MessageContent{human(text)})
			if !errors.Is(err, test.want) {
				t.Errorf("error %v", err)
			}
			if n := pilot.Stats().LiveRequests; n != test.live {
				t.Errorf("%d live requests, want %d", n, test.live)
			}
		})
	}
}

func TestTransportSendsTheRequestID(t *testing.T) {
	var ids []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	client := &http.Client{Transport: langchain.Transport(server.Client().Transport)}
	inner := &recorder{do: func(ctx context.Context, _ llms.CallOptions) (*llms.ContentResponse, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		if req.Header.Get("X-Request-Id") != "" {
			t.Error("the caller's request was changed")
		}
		return answer("Yes.", nil), resp.Body.Close()
	}}
	pilot := newPilot(t, contextpilot.Config{})
	plan, text := hold(pilot, "", "a")
	m := langchain.Wrap(pilot, inner)
	generate(context.Background(), t, m, []llms.MessageContent{human(text)})
	generate(context.Background(), t, m, []llms.MessageContent{human("Nothing planned.")})
	if diff := cmp.Diff([]string{plan.RequestID, ""}, ids); diff != "" {
		t.Error(diff)
	}
}
