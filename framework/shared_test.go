package framework

import (
	"runtime"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

// Wrappers of one pilot share an engine, those of another have their own, and none is kept that is not used.
func TestShared(t *testing.T) {
	pilots := make([]*contextpilot.Pilot, 2)
	for i := range pilots {
		var err error
		if pilots[i], err = contextpilot.New(contextpilot.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	a, b, other := NewCalls(pilots[0], Options{}), NewCalls(pilots[0], Options{ToolResults: true}), NewCalls(pilots[1], Options{})
	if a.tools.engine != b.tools.engine || a.tools.engine == other.tools.engine {
		t.Error("want one engine for each pilot")
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	runtime.KeepAlive(other)
	for range 100 { // cleanups run some time after the collection
		runtime.GC()
		inUse.mu.Lock()
		n := len(inUse.by)
		inUse.mu.Unlock()
		if n == 0 {
			break
		}
		runtime.Gosched()
	}
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	if len(inUse.by) > 0 {
		t.Errorf("%d engines are kept", len(inUse.by))
	}
	runtime.KeepAlive(pilots)
}

// Whatever the model reads makes another sum, and the same makes the same.
func TestSums(t *testing.T) {
	text := func(texts ...conversation.Text) Message { return Message{Role: conversation.Tool, Texts: texts} }
	messages := map[string]Message{
		"nothing": {}, "role": {Role: conversation.Tool}, "empty text": text(conversation.Text{}), "text": text(conversation.Text{Value: "ab"}),
		"two texts": text(conversation.Text{Value: "a"}, conversation.Text{Value: "b"}), "its role": text(conversation.Text{
			Value: "ab",
			Role:  conversation.User,
		}),
		"its call": text(conversation.Text{Value: "ab", Call: "c"}), "its tool": text(conversation.Text{Value: "ab", Tool: "c"}),
		"opaque": text(conversation.Text{Value: "ab", Opaque: true}), "call": {Calls: []conversation.Call{{ID: "c", Tool: "ab"}}},
		"another": {Calls: []conversation.Call{{ID: "ca", Tool: "b"}}}, "string": {Other: []any{"image"}},
		"bytes": {Other: []any{[]byte("imagf")}},
		"value": {Other: []any{map[string]any{"image": 1}}}, "another value": {Other: []any{map[string]any{"image": 2}}}, "no " +
			"JSON": {Other: []any{func() {}}},
	}
	names := map[conversation.Sum]string{}
	for name, m := range messages {
		s := &source{transcript: &transcript{messages: []Message{{}, m}}, n: 2, seed: 7}
		if other, ok := names[s.Sum(1)]; ok {
			t.Errorf("%q and %q have one sum", name, other)
		}
		names[s.Sum(1)] = name
		if again := (&source{transcript: &transcript{messages: []Message{m}}, n: 1, seed: 7}); again.Sum(0) != s.Sum(1) {
			t.Errorf("%q has two sums", name)
		}
		if other := (&source{transcript: &transcript{messages: []Message{m}}, n: 1, seed: 8}); other.Sum(0) == s.Sum(1) {
			t.Errorf("%q has one sum for all", name)
		}
	}
}
