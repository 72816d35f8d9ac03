package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
)

func ExamplePrompt() {
	fmt.Println(dashboard.Prompt([]byte(`{"model": "m", "messages": [
		{"role": "system", "content": "Answer briefly.\n<documents>\n…\n</documents>"},
		{"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "image_url", "image_url": {"url": "…"}}]}
	]}`)))
	// Output:
	// ── system ──
	// Answer briefly.
	// <documents>
	// …
	// </documents>
	//
	// ── user ──
	// Why?
	// {"type": "image_url", "image_url": {"url": "…"}}
}

func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"anthropic": {
			`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a\nb"}]}]}],` +
				`"system":[{"type":"text","text":"s"}]}`,
			"── system ──\ns\n\n── user ──\na\nb",
		},
		"tool calls": {
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"r"}]}`,
			"── assistant, tool calls ──\n{\"id\":\"1\"}\n\n── tool ──\nr",
		},
		"responses": {
			`{"instructions":"i","input":[{"role":"user","content":"q"},{"type":"function_call_output","output":"o"}]}`,
			"── instructions ──\ni\n\n── user ──\nq\n\n── function_call_output ──\no",
		},
		"completions":     {`{"prompt":"p","max_tokens":4}`, "── prompt ──\np"},
		"several prompts": {`{"prompt":["p","q"]}`, "── prompt ──\np\n\n── prompt ──\nq"},
		"no prompt":       {`{"a":1}`, ""},
		"no object":       {`[1]`, `[1]`},
		"not JSON":        {`{"messages":`, `{"messages":`},
		"lists within lists": {
			`{"prompt":[` + strings.Repeat("[", 20) + `1` + strings.Repeat("]", 20) + `]}`,
			"── prompt ──\n" + strings.Repeat("[", 11) + "1" + strings.Repeat("]", 11),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dashboard.Prompt([]byte(c.body)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzPrompt(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"text":"a"}]}],"system":"s","input":"i"}`))
	f.Add([]byte(`{"prompt":[[["a"]]],"messages":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		// Each text is there once, under a heading that may name its role: no body makes this long.
		if text := dashboard.Prompt(body); len(text) > 32*(len(body)+1) {
			t.Errorf("%d bytes make %d", len(body), len(text))
		}
	})
}
