package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Answer is what the recorder answers: a text, or calls of tools.
type Answer struct {
	Text  string
	Calls []Call
}

// Call is a call of a tool.
type Call struct{ ID, Name, Args string }

// Recorder is a fake model server: it writes down each body and answers what the script says. It speaks the four APIs.
type Recorder struct {
	server *httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	script []Answer
	err    error
}

// NewRecorder starts a recorder.
func NewRecorder() *Recorder {
	r := &Recorder{}
	r.server = httptest.NewServer(r)
	return r
}

// Close stops it.
func (r *Recorder) Close() { r.server.Close() }

// take forgets what was recorded and returns it.
func (r *Recorder) take() ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.bodies, r.err
	if len(r.script) > 0 && err == nil {
		err = fmt.Errorf("%d answers of the script were not asked for", len(r.script))
	}
	r.bodies, r.script, r.err = nil, nil, nil
	return b, err
}

// ServeHTTP records a body and answers it.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && !json.Valid(body) {
		err = fmt.Errorf("the body of %s is not JSON: %.80q", req.URL.Path, body)
	}
	r.bodies = append(r.bodies, bytes.TrimSpace(body)) // some clients end a body by a newline
	a := Answer{Text: fmt.Sprintf("Answer %d: that is possible, and I have noted it for the next step.", len(r.bodies))}
	if len(r.script) > 0 {
		a, r.script = r.script[0], r.script[1:]
	}
	var out any
	switch path := req.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		out = chatAnswer(a, len(r.bodies))
	case strings.HasSuffix(path, "/responses"):
		out = responsesAnswer(a, len(r.bodies))
	case strings.HasSuffix(path, "/messages"):
		out = anthropicAnswer(a, len(r.bodies))
	case strings.HasSuffix(path, ":generateContent"):
		out = geminiAnswer(a)
	default:
		err = fmt.Errorf("a request came to %s", path)
	}
	if err != nil {
		r.err = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that is gone reports it itself
}

type object = map[string]any

func chatAnswer(a Answer, n int) object {
	message, reason := object{"role": "assistant", "content": a.Text}, "stop"
	if len(a.Calls) > 0 {
		calls := make([]object, 0, len(a.Calls))
		for _, c := range a.Calls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}})
		}
		message["tool_calls"], reason = calls, "tool_calls"
	}
	return object{
		"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion", "created": 1, "model": "fake",
		"choices": []object{{"index": 0, "message": message, "finish_reason": reason}},
		"usage":   object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	}
}

func responsesAnswer(a Answer, n int) object {
	output := []object{}
	for _, c := range a.Calls {
		output = append(output, object{
			"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Name, "arguments": c.Args, "status": "completed",
		})
	}
	if a.Text != "" {
		output = append(output, object{
			"type": "message", "id": fmt.Sprint("msg_", n), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.Text, "annotations": []any{}}},
		})
	}
	return object{
		"id": fmt.Sprint("resp_", n), "object": "response", "created_at": 1, "model": "fake", "status": "completed", "output": output,
		"usage": object{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
	}
}

func anthropicAnswer(a Answer, n int) object {
	content, reason := []object{}, "end_turn"
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text})
	}
	for _, c := range a.Calls {
		content, reason = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Args)}), "tool_use"
	}
	return object{
		"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "model": "fake", "content": content, "stop_reason": reason,
		"usage": object{"input_tokens": 100, "output_tokens": 10},
	}
}

func geminiAnswer(a Answer) object {
	parts := []object{}
	if a.Text != "" {
		parts = append(parts, object{"text": a.Text})
	}
	for _, c := range a.Calls {
		parts = append(parts, object{"functionCall": object{"name": c.Name, "args": json.RawMessage(c.Args)}})
	}
	return object{
		"candidates":    []object{{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
	}
}
