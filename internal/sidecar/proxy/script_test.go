package proxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// today is what the script wants and the sidecar does not do yet, by dialect: notes that come back are fenced.
var today = map[string]conversationtest.Today{
	"chat":      {"invariant 8: idempotent": "does not hold"},
	"messages":  {"invariant 8: idempotent": "does not hold"},
	"responses": {"invariant 8: idempotent": "does not hold"},
}

// The script over the three dialects.
func TestScript(t *testing.T) {
	if testing.Short() { // one goroutine is at work for most of the time
		testkit.NotUnderRace(t)
	}
	for _, name := range slices.Sorted(maps.Keys(wires)) {
		t.Run(name, func(t *testing.T) {
			conversationtest.Run(t, func(t testing.TB) conversationtest.Frontend { return newSidecar(t, name) }, today[name])
		})
	}
}

// sidecar is a proxy with a client in front and a model behind it, a named fake.
type sidecar struct {
	t       testing.TB
	wire    scriptWire
	client  conversationtest.Client
	marks   bool
	setting conversationtest.Setting

	*served
}

// served is what clients share.
type served struct {
	mu    sync.Mutex
	proxy *proxy.Proxy
	store orders.Store
	fail  bool
}

func newSidecar(t testing.TB, dialect string) *sidecar {
	s := &sidecar{t: t, wire: wires[dialect], client: conversationtest.Client{Model: "m"}, served: &served{}}
	s.Restart(false)
	return s
}

func (s *sidecar) Name() string { return s.wire.path }

func (s *sidecar) Skips(cell string) string {
	if strings.HasPrefix(cell, "cache marks") && s.wire.path != messagesPath {
		return "the dialect has no cache marks"
	}
	return ""
}

func (s *sidecar) Restart(keep bool) {
	s.t.Helper()
	if !keep {
		s.store = orders.NewMemory(0, 0)
	}
	pilot, err := contextpilot.New(
		contextpilot.Config{Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}},
	)
	if err != nil {
		s.t.Fatal(err)
	}
	s.proxy, err = proxy.New(complete(proxy.Options{
		Upstream: &url.URL{Scheme: "http", Host: "engine"}, Pilot: pilot, Orders: s.store, Transport: s, Log: slog.New(slog.DiscardHandler),
		Live: func() (bool, float64) {
			heldOut := 0.0
			if s.setting == conversationtest.HeldOut {
				heldOut = 1
			}
			return s.setting == conversationtest.Shadow, heldOut
		},
	}))
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sidecar) FailNext() { s.fail = true }

func (s *sidecar) As(c conversationtest.Client) conversationtest.Frontend {
	out := *s
	out.client = c
	if c.Model == "" {
		out.client.Model = "m"
	}
	return &out
}

func (s *sidecar) Marked() conversationtest.Frontend {
	out := *s
	out.marks = true
	return &out
}

func (s *sidecar) With(setting conversationtest.Setting) conversationtest.Frontend {
	out := &sidecar{t: s.t, wire: s.wire, client: s.client, setting: setting, served: &served{}}
	out.Restart(false)
	return out
}

// RoundTrip is the model: it answers with what arrived.
func (s *sidecar) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	fail := s.fail
	s.fail = false
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || fail {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (s *sidecar) Send(messages []conversationtest.Message) ([]conversationtest.Message, error) {
	body, err := json.Marshal(s.wire.write(s.client.Model, messages, s.marks))
	if err != nil {
		return nil, err
	}
	var headers []string
	if !s.client.Unnamed {
		headers = append(headers, proxy.SessionHeader, "script")
	}
	if s.setting == conversationtest.Off {
		headers = append(headers, "X-ContextPilot-Enabled", "false")
	}
	w := post(s.proxy, s.wire.path, s.client.Tenant, string(body), headers...)
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", w.Code, w.Body)
	}
	var b wireBody
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		return nil, err
	}
	return b.read()
}

// scriptWire is how a dialect writes messages.
type scriptWire struct {
	path  string
	write func(model string, messages []conversationtest.Message, marks bool) wireBody
}

// wireBody and wireItem are the bodies of all three dialects.
type wireBody struct {
	Model        string     `json:"model"`
	System       string     `json:"system,omitempty"`
	Instructions string     `json:"instructions,omitempty"`
	Messages     []wireItem `json:"messages,omitempty"`
	Input        []wireItem `json:"input,omitempty"`
}

type wireItem struct {
	Type       string     `json:"type,omitempty"`
	Role       string     `json:"role,omitempty"`
	Content    any        `json:"content,omitempty"` // a string or a list
	Text       string     `json:"text,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolUseID  string     `json:"tool_use_id,omitempty"`
	ID         string     `json:"id,omitempty"`
	CallID     string     `json:"call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
	Output     string     `json:"output,omitempty"`
	Mark       *wireItem  `json:"cache_control,omitempty"`
}

type wireCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function wireItem `json:"function"`
}

var wires = map[string]scriptWire{
	"chat": {chatPath, func(model string, messages []conversationtest.Message, _ bool) wireBody {
		b := wireBody{Model: model}
		for _, m := range messages {
			item := wireItem{Role: roleNames[m.Role], Content: m.Texts[0].Value, ToolCallID: m.Texts[0].Call}
			for _, c := range m.Calls {
				item.ToolCalls = append(item.ToolCalls, wireCall{c.ID, "function", wireItem{Name: c.Tool}})
			}
			b.Messages = append(b.Messages, item)
		}
		return b
	}},
	"messages": {messagesPath, func(model string, messages []conversationtest.Message, marks bool) wireBody {
		b := wireBody{Model: model}
		for i, m := range messages {
			text := m.Texts[0]
			parts := []wireItem{{Type: "text", Text: text.Value}}
			item := wireItem{Role: roleNames[m.Role]}
			switch m.Role {
			case conversationtest.System:
				b.System = text.Value
				continue
			case conversationtest.Tool:
				item.Role = "user"
				parts = []wireItem{{Type: "tool_result", ToolUseID: text.Call, Content: text.Value}}
			}
			for _, c := range m.Calls {
				parts = append(parts, wireItem{Type: "tool_use", ID: c.ID, Name: c.Tool})
			}
			if marks && i == len(messages)-1 {
				parts[len(parts)-1].Mark = &wireItem{Type: "ephemeral"}
			}
			item.Content = parts
			b.Messages = append(b.Messages, item)
		}
		return b
	}},
	"responses": {responsesPath, func(model string, messages []conversationtest.Message, _ bool) wireBody {
		b := wireBody{Model: model}
		for _, m := range messages {
			switch text := m.Texts[0]; m.Role {
			case conversationtest.System:
				b.Instructions = text.Value
			case conversationtest.Tool:
				b.Input = append(b.Input, wireItem{Type: "function_call_output", CallID: text.Call, Output: text.Value})
			default:
				b.Input = append(b.Input, wireItem{Type: "message", Role: roleNames[m.Role], Content: text.Value})
			}
			for _, c := range m.Calls {
				b.Input = append(b.Input, wireItem{Type: "function_call", CallID: c.ID, Name: c.Tool})
			}
		}
		return b
	}},
}

var roleNames = map[conversationtest.Role]string{
	conversationtest.System: "system", conversationtest.User: "user", conversationtest.Assistant: "assistant",
	conversationtest.Tool: "tool",
}

// read returns the messages of a body that arrived.
func (b *wireBody) read() ([]conversationtest.Message, error) {
	var out []conversationtest.Message
	add := func(role conversationtest.Role, text, call string) {
		out = append(out, conversationtest.Message{Role: role, Texts: []conversationtest.Text{{Value: text, Call: call}}})
	}
	called := func(id, tool string) {
		last := &out[len(out)-1]
		last.Calls = append(last.Calls, conversationtest.Call{ID: id, Tool: tool})
	}
	if top := b.System + b.Instructions; top != "" {
		add(conversationtest.System, top, "")
	}
	for _, item := range append(b.Messages, b.Input...) {
		role := conversationtest.Other
		for r, name := range roleNames {
			if name == item.Role {
				role = r
			}
		}
		switch content := item.Content.(type) {
		case string:
			add(role, content, item.ToolCallID)
		case []any:
			for _, part := range content {
				p := part.(map[string]any)
				field := func(name string) string { s, _ := p[name].(string); return s }
				switch p["type"] {
				case "text":
					add(role, field("text"), "")
				case "tool_result":
					add(conversationtest.Tool, field("content"), field("tool_use_id"))
				case "tool_use":
					called(field("id"), field("name"))
				}
			}
		}
		switch item.Type {
		case "function_call":
			called(item.CallID, item.Name)
		case "function_call_output":
			add(conversationtest.Tool, item.Output, item.CallID)
		}
		for _, c := range item.ToolCalls {
			called(c.ID, c.Function.Name)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no messages arrived")
	}
	return out, nil
}
