package sidecar_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// An agent that reads overlapping parts of the same files again and again: what it read before becomes references, the
// engine computes 0.27 of what it would, as docs/results.md says, and every line that a reference stands for is in the prompt.
func TestAgentThatRereadsFiles(t *testing.T) {
	for name, a := range map[string]struct {
		path string
		bar  float64
		body func(n int) object
	}{
		"chat":      {"/v1/chat/completions", 0.285, chatAgent},
		"responses": {"/v1/responses", 0, responsesAgent}, // the simulator does not serve it: only the texts are checked
	} {
		t.Run(name, func(t *testing.T) {
			plain, with := newRecorder(t), newRecorder(t)
			cfg := settings.Default()
			cfg.InferAPIURL = with.URL
			api, err := sidecar.New(cfg, sidecar.Options{})
			if err != nil {
				t.Fatal(err)
			}
			front := httptest.NewServer(api)
			defer front.Close()
			plainTokens, ourTokens := 0, 0
			for n := 1; n <= steps; n++ {
				body, err := json.Marshal(a.body(n))
				if err != nil {
					t.Fatal(err)
				}
				plainTokens += ask(t, plain.URL+a.path, body)
				ourTokens += ask(t, front.URL+a.path, body)
				allLinesAreThere(t, body, with.last())
				if prev := with.before(); n > 1 && !bytes.HasPrefix(with.last(), commonFront(prev)) {
					t.Fatalf("step %d: bytes of earlier steps changed", n)
				}
			}
			if a.bar == 0 {
				return
			}
			share := float64(ourTokens) / float64(plainTokens)
			t.Logf("%d computed tokens, %d without us: %.2f", ourTokens, plainTokens, share)
			if share > a.bar {
				t.Errorf("the engine computed %.2f of the tokens, want at most %.3f", share, a.bar)
			}
		})
	}
}

const steps = 20

// file makes a source file of 150 lines, some of which are the same in all files.
func file(n int) []string {
	lines := make([]string, 150)
	for i := range lines {
		switch {
		case i < 12:
			lines[i] = fmt.Sprintf("// Copyright line %d of every file of this program, which all begin alike", i)
		default:
			lines[i] = fmt.Sprintf(
				"\tcase value%d.field%d == %d: return state%d.advance(%q) // step %d",
				n,
				i,
				i*7919%1009,
				i%13,
				fmt.Sprint("name", i*n),
				i,
			)
		}
	}
	return lines
}

// read is what the agent's tool returns in step i: a whole file, or a part of one that it has seen, with line numbers.
func read(i int) string {
	n := []int{0, 1, 0, 2, 1, 0, 3, 2, 0, 1, 3, 0, 2, 1, 0, 3, 1, 2, 0, 3}[i]
	lines := file(n)
	from, to := 0, len(lines)
	if i > 6 && i%2 == 0 {
		from, to = 20, 130
	}
	var b strings.Builder
	for k := from; k < to; k++ {
		fmt.Fprintf(&b, "%6d|%s\n", k+1, lines[k])
	}
	return b.String()
}

func chatAgent(n int) object {
	messages := []object{{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Find the defect."}}
	for i := range n {
		id := fmt.Sprint("call", i)
		messages = append(
			messages,
			object{
				"role":       "assistant",
				"content":    fmt.Sprint("I look at it, step ", i),
				"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "read_file", "arguments": "{}"}}},
			},
			object{"role": "tool", "tool_call_id": id, "content": read(i)},
		)
	}
	return object{"model": "m", "messages": messages}
}

func responsesAgent(n int) object {
	input := []object{{"role": "user", "content": "Find the defect."}}
	for i := range n {
		id := fmt.Sprint("call", i)
		input = append(input, object{"type": "function_call", "call_id": id, "name": "read_file", "arguments": "{}"},
			object{"type": "function_call_output", "call_id": id, "output": read(i)})
	}
	return object{"model": "m", "input": input}
}

// recorder is the simulated engine behind HTTP; it keeps what it got.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	engine := upstream.New(upstream.Options{Tokens: 8})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, body)
		r.mu.Unlock()
		req.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) last() []byte   { return r.at(1) }
func (r *recorder) before() []byte { return r.at(2) }
func (r *recorder) at(back int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) < back {
		return nil
	}
	return r.bodies[len(r.bodies)-back]
}

// commonFront is the part of a body that the next one must begin with: all but what closes the list of messages.
func commonFront(body []byte) []byte {
	i := bytes.LastIndexByte(body, ']')
	return body[:max(i, 0)]
}

// ask sends a request and returns the prompt tokens that the engine computed, 0 if it does not serve the path.
func ask(t *testing.T, url string, body []byte) int {
	t.Helper()
	_, computed := tokens(t, url, body)
	return computed
}

// usageOf is what an answer says of its tokens.
type usageOf struct {
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
		Details      struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// tokens sends a request and returns its prompt tokens, and how many of them the engine computed.
func tokens(t *testing.T, url string, body []byte) (prompt, computed int) {
	t.Helper()
	r := request(t, http.MethodPost, url, string(body))
	if r.code == http.StatusNotFound {
		return 0, 0
	}
	out := parsed[usageOf](t, r.text).Usage
	if out.PromptTokens == 0 {
		t.Fatalf("%d %s", r.code, r.text)
	}
	return out.PromptTokens, out.PromptTokens - out.Details.Cached
}

// allLinesAreThere checks that no line of what the client sent is missing from the prompt, whatever its number.
func allLinesAreThere(t *testing.T, sent, forwarded []byte) {
	t.Helper()
	all := map[string]bool{}
	for _, line := range lines(t, forwarded) {
		all[line] = true
	}
	for _, line := range lines(t, sent) {
		if !all[line] {
			t.Fatalf("the line %q is not in the prompt", line)
		}
	}
}

func lines(t *testing.T, body []byte) (out []string) {
	t.Helper()
	var b struct {
		Messages []struct{ Content string }
		Input    []struct{ Content, Output string }
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	add := func(text string) {
		for line := range strings.Lines(text) {
			_, rest, ok := strings.Cut(line, "|")
			if !ok {
				rest = line
			}
			out = append(out, strings.TrimSpace(rest))
		}
	}
	for _, m := range b.Messages {
		add(m.Content)
	}
	for _, m := range b.Input {
		add(m.Content)
		add(m.Output)
	}
	return out
}
