package ragpilottest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/ragpilot/ragpilot/prefixdiff"
	"github.com/ragpilot/ragpilot/ragpilottest"
)

var search = ragpilottest.Answer{Text: "I look it up.", Calls: []ragpilottest.Call{
	{Name: "search", Arguments: map[string]any{"query": "plüms", "limit": 3}}, {Name: "now", ID: "own_1"},
}}

// What the recorder answers in each API, as it goes over the wire. The official clients of OpenAI, Anthropic and Google read it.
func TestWire(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"Where are the plums?"}]`
	contents := `{"contents":[{"role":"user","parts":[{"text":"Where are the plums?"}]}]}`
	for name, c := range map[string]struct{ path, body string }{
		"chat":              {"/v1/chat/completions", `{"model":"m",` + messages + `}`},
		"chat-stream":       {"/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + messages + `}`},
		"completion":        {"/v1/completions", `{"model":"m","prompt":"Where are the plums?"}`},
		"completion-stream": {"/v1/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"prompt":"Where are the plums?"}`},
		"responses":         {"/v1/responses", `{"model":"m","input":"Where are the plums?"}`},
		"responses-stream":  {"/v1/responses", `{"model":"m","stream":true,"input":"Where are the plums?"}`},
		"messages":          {"/v1/messages", `{"model":"m","max_tokens":9,` + messages + `}`},
		"messages-stream":   {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,` + messages + `}`},
		"gemini":            {"/v1beta/models/m:generateContent", contents},
		"gemini-stream":     {"/v1beta/models/m:streamGenerateContent?alt=sse", contents},
		"gemini-list":       {"/v1beta/models/m:streamGenerateContent", contents},
	} {
		t.Run(name, func(t *testing.T) {
			rec := ragpilottest.NewRecorder(t, ragpilottest.Answers(search, ragpilottest.Answer{Text: "In the valley."}))
			var got string
			for range 2 {
				status, text := post(t, rec, c.path, c.body)
				got += fmt.Sprintf("%d\n%s\n", status, strings.ReplaceAll(text, `,"`, `,`+"\n"+`"`))
			}
			golden(t, "wire-"+name, got)
			for _, r := range rec.Requests() {
				if string(r.Body) != c.body || r.Method != http.MethodPost || !strings.HasPrefix(c.path, r.Path) {
					t.Errorf("recorded %s %s %s", r.Method, r.Path, r.Body)
				}
			}
		})
	}
}

// langchaingo's clients read texts and calls, streamed and whole.
func TestLangchaingo(t *testing.T) {
	rec := ragpilottest.NewRecorder(t, ragpilottest.Answers(search, ragpilottest.Answer{Text: "In the valley."}))
	gpt, err := openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"), openai.WithModel("m"))
	if err != nil {
		t.Fatal(err)
	}
	claude, err := anthropic.New(anthropic.WithBaseURL(rec.URL()+"/v1"), anthropic.WithToken("none"), anthropic.WithModel("m"))
	if err != nil {
		t.Fatal(err)
	}
	for name, llm := range map[string]llms.Model{"openai": gpt, "anthropic": claude} {
		for _, stream := range []bool{false, true} {
			pieces := ""
			opts := []llms.CallOption{llms.WithMaxTokens(9)}
			if stream {
				opts = append(opts, llms.WithStreamingFunc(func(_ context.Context, b []byte) error {
					pieces += string(b)
					return nil
				}))
			}
			question := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "Where are the plums?")}
			first, err := llm.GenerateContent(t.Context(), question, opts...)
			if err != nil {
				t.Fatalf("%s, stream %t: %v", name, stream, err)
			}
			text, called := "", ""
			for _, c := range first.Choices {
				text += c.Content
				for _, call := range c.ToolCalls {
					called += call.ID + " " + call.FunctionCall.Name + call.FunctionCall.Arguments + "\n"
				}
			}
			if text != "I look it up." || !strings.HasPrefix(called, "call_1 search{") || !strings.Contains(called, "own_1 now{}") {
				t.Errorf("%s, stream %t: %q, calls:\n%s", name, stream, text, called)
			}
			pieces = ""
			second, err := llm.GenerateContent(t.Context(), question, opts...)
			if err != nil || second.Choices[0].Content != "In the valley." || stream && pieces != "In the valley." {
				t.Errorf("%s, stream %t: %+v, %q, %v", name, stream, second.Choices, pieces, err)
			}
		}
	}
}

// A client whose address cannot be changed.
func TestTransport(t *testing.T) {
	asked := ""
	rec := ragpilottest.NewRecorder(t, ragpilottest.AnswerFunc(func(r ragpilottest.Request) ragpilottest.Answer {
		asked = fmt.Sprint(r.Number, " ", r.Path, " ", r.Prompt.Parts[len(r.Prompt.Parts)-1].Text)
		return ragpilottest.Answer{Text: "It is 7."}
	}))
	ask := func(ctx context.Context, method, path, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, method, "https://api.example.com"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return rec.Client().Do(r)
	}
	answer, err := ask(t.Context(), http.MethodPost, "/openai/deployments/m/chat/completions?api-version=1", `{"messages":[{"role":"user","content":"Hi"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"content":"It is 7."`) || !json.Valid(text) {
		t.Errorf("%s: %s, %v", answer.Status, text, err)
	}
	if want := "1 /openai/deployments/m/chat/completions Hi"; asked != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{{http.MethodGet, "/v1/models", 200}, {http.MethodGet, "/v1/responses/1", 405}, {http.MethodPost, "/v1/rerank", 404}} {
		answer, err := ask(t.Context(), c.method, c.path, "")
		if err != nil || answer.StatusCode != c.status {
			t.Errorf("%s %s: %v, %v", c.method, c.path, answer, err)
		}
		answer.Body.Close()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if answer, err := ask(ended, http.MethodPost, "/v1/chat/completions", "{}"); err == nil {
		answer.Body.Close()
		t.Error("no error for a context that has ended")
	}
}

// Prompts that never go over HTTP.
func TestAdd(t *testing.T) {
	report := ragpilottest.AssertReuse(t, 0.9, func(rec *ragpilottest.Recorder) {
		body := []byte(chat(rules, "Hi"))
		if err := rec.Add(body); err != nil {
			t.Fatal(err)
		}
		clear(body) // it is the caller's
		if kept := rec.Requests()[0].Body; string(kept) != chat(rules, "Hi") {
			t.Errorf("kept: %q", kept)
		}
		if err := rec.Add([]byte(`{}`)); err == nil {
			t.Error("no error for a body without a prompt")
		}
		rec.AddPrompt(prefixdiff.Prompt{Parts: []prefixdiff.Part{
			{Path: "model", Kind: prefixdiff.Setting, Role: prefixdiff.System, Turn: prefixdiff.Front, Text: "m"},
			{Path: "system", Role: prefixdiff.System, Text: rules},
			{Path: "user", Role: prefixdiff.User, Turn: 1, Text: "Ho"},
		}})
	})
	if report.Requests != 2 || report.Common != prefixdiff.FromText(rules).Tokens() {
		t.Errorf("%+v", report)
	}
}

// Requests that arrive at the same time are all kept.
func TestConcurrent(t *testing.T) {
	rec := ragpilottest.NewRecorder(t, ragpilottest.Answers(search, ragpilottest.Answer{Text: "Yes."}))
	done := make(chan int)
	for i := range 20 {
		go func() {
			status, _ := post(t, rec, "/v1/chat/completions", chat(rules, fmt.Sprint("Question ", i)))
			done <- status
		}()
	}
	for range 20 {
		if status := <-done; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	var numbers, want []int
	for i, r := range rec.Requests() {
		numbers, want = append(numbers, r.Number), append(want, i+1)
	}
	if diff := cmp.Diff(want, numbers); diff != "" || len(numbers) != 20 {
		t.Errorf("%d requests, (-want +got):\n%s", len(numbers), diff)
	}
}

// The calls of a conversation have identifiers of their own, which are the same in each run.
func TestIdentifiers(t *testing.T) {
	rec := ragpilottest.NewRecorder(t, ragpilottest.Answers(search))
	_, first := post(t, rec, "/v1/chat/completions/", `{"messages":[{"role":"user","content":"Hi"}]}`)
	_, second := post(t, rec, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"search","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"Plums."}]}`)
	if !strings.Contains(first, `"id":"call_1"`) || !strings.Contains(second, `"id":"call_2"`) || strings.Contains(second, `"id":"call_1"`) {
		t.Errorf("first %s\nsecond %s", first, second)
	}
}
