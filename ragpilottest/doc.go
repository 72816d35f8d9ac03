// Package ragpilottest checks in a test that a program sends prompts whose beginnings repeat, so that the engine's prefix cache can
// serve them.
//
//	func TestPromptsCanBeCached(t *testing.T) {
//		ragpilottest.AssertReuse(t, 0.95, func(rec *ragpilottest.Recorder) {
//			llm, err := openai.New(openai.WithBaseURL(rec.URL()+"/v1"), openai.WithToken("none"))
//			if err != nil {
//				t.Fatal(err)
//			}
//			answer(t.Context(), llm, "Where is my order?") // the function under test
//			answer(t.Context(), llm, "Can I send it back?")
//		})
//	}
//
// The [Recorder] is a fake of the model's server: it speaks the APIs of OpenAI, Anthropic and Gemini, gives scripted answers and keeps
// the requests. No request leaves the process. If the share is too small, the test fails and says for each request where it parts from
// an earlier one, why, and which Go template wrote the place ([Templates]).
//
// What counts is defined at [Report]. Tokens are estimated, as in package contextpilot; the share of them hardly depends on it.
package ragpilottest
