package ragpilottest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/ragpilot/ragpilot/ragpilottest"
)

// The tests of this file stand on docs/testing-reuse.md.

func TestPromptsCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
		llm, err := openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"))
		if err != nil {
			t.Fatal(err)
		}
		answer(t.Context(), llm, "Where is my order?")
		answer(t.Context(), llm, "Can I send it back?")
	}, ragpilottest.Templates(os.DirFS("testdata/prompts")))
}

func TestAgentCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
		runAgent(t, rec.URL()+"/v1", "How much is 6 times 7?")
	}, ragpilottest.Answers(
		ragpilottest.Answer{Calls: []ragpilottest.Call{{Name: "calculator", Arguments: map[string]string{"__arg1": "6 * 7"}}}},
		ragpilottest.Answer{Text: "It is 42."},
	))
}

func TestHandlerCanBeCached(t *testing.T) {
	ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
		s := summarizer{http: rec.Client()} // its address of the API is fixed
		s.summarize(t.Context(), "Plums come from the valley.")
		s.summarize(t.Context(), "Pears are eaten within a week.")
	})
}

// answer is what a program under test has: a prompt of a template, and a call.
func answer(ctx context.Context, llm llms.Model, question string) {
	text, err := os.ReadFile("testdata/prompts/clerk.tmpl")
	if err != nil {
		panic(err)
	}
	var prompt strings.Builder
	values := map[string]any{"Now": time.Now().Format(time.RFC3339Nano), "Question": question}
	if err := template.Must(template.New("").Parse(string(text))).Execute(&prompt, values); err != nil {
		panic(err)
	}
	if _, err := llms.GenerateFromSinglePrompt(ctx, llm, prompt.String()); err != nil {
		panic(err)
	}
}

func runAgent(t *testing.T, url, question string) {
	t.Helper()
	llm, err := openai.New(openai.WithBaseURL(url), openai.WithToken("none"))
	if err != nil {
		t.Fatal(err)
	}
	agent := agents.NewOpenAIFunctionsAgent(llm, []tools.Tool{tools.Calculator{}})
	said, err := chains.Run(t.Context(), agents.NewExecutor(agent), question)
	if err != nil || said != "It is 42." {
		t.Errorf("%q, %v", said, err)
	}
}

// summarizer is a program with a client of its own.
type summarizer struct{ http *http.Client }

func (s summarizer) summarize(ctx context.Context, text string) {
	body, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 100, "system": rules, "messages": []any{
		map[string]string{"role": "user", "content": text},
	}})
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example.com/v1/messages", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	a, err := s.http.Do(r)
	if err != nil || a.StatusCode != http.StatusOK {
		panic(err)
	}
	a.Body.Close()
}
