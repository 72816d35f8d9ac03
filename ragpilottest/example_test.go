package ragpilottest_test

import (
	"testing"

	"github.com/tmc/langchaingo/llms/openai"

	"github.com/ragpilot/ragpilot/ragpilottest"
)

// A test fails if what two answers have in common is not at the beginning of their prompts.
func ExampleAssertReuse() {
	_ = func(t *testing.T) {
		ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
			llm, err := openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"))
			if err != nil {
				t.Fatal(err)
			}
			answer(t.Context(), llm, "Where is my order?")
			answer(t.Context(), llm, "Can I send it back?")
		})
	}
}
