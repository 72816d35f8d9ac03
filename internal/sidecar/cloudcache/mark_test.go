package cloudcache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

const (
	chat = "/v1/chat/completions"
	path = "/v1/messages"
	mark = `,"cache_control":{"type":"ephemeral"}`
)

// Where M stands there is a breakpoint in the result; nothing else changes. L is 1,024 characters.
func TestMarkPlaces(t *testing.T) {
	for _, c := range []struct{ name, body string }{
		{"a system text becomes a block, and a single question is not marked", `{"system":{"s"},"messages":[{"role":"user",` +
			`"content":"q"}]}`},
		{"the last block of a system list", `{"system":[{"type":"text","text":"a"},{"type":"text","text":"b"M}],"messages":[]}`},
		{"empty texts may not be marked", `{"system":[{"type":"text","text":"a"M},{"type":"text","text":" \n"}],` +
			`"messages":[{"role":"user","content":""}]}`},
		{"nothing to mark", `{"system":"","messages":[{"role":"user","content":[]}]}`},
		{
			"a conversation: where this request and the last one end",
			`{"system":{"s"},"messages":[{"role":"user","content":{"a"}},{"role":"assistant","content":"b"},{"role":"user",` +
				`"content":{"c"}}]}`,
		},
		{
			"the last block of the message that may be marked",
			`{"messages":[{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"image","source":{}M},{"type":"odd"},` +
				`{"type":"text","text":""}]}]}`,
		},
		{
			"an answer that was begun for the assistant will be longer next time",
			`{"messages":[{"role":"user","content":{"a"}},{"role":"assistant","content":"b"}]}`,
		},
		{
			"thinking may not be marked",
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]},{"role":"user",` +
				`"content":[{"type":"thinking"}]}]}`,
		},
		{"who has tools will go on", `{"tools":[{"name":"t"}],"messages":[{"role":"user","content":{"q"}}]}`},
		{
			"long results, the oldest first, while there are breakpoints",
			`{"system":{"s"},"messages":[{"role":"user","content":[{"type":"tool_result","content":"short"},{"type":"tool_result",` +
				`"content":"L"M},` +
				`{"type":"tool_result","content":[{"type":"text","text":"L"}]M},{"type":"tool_result","content":"L"},{"type":"text",` +
				`"text":"go on"M}]}]}`,
		},
		{
			"a result is marked on itself",
			`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"x"}]M}]}]}`,
		},
		{
			"an empty result may not be marked",
			`{"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"M},{"type":"tool_result"},{"type":"tool_result",` +
				`"content":[]}]}]}`,
		},
		{"the system text comes last", `{"messages":[{"role":"assistant","content":"b"},{"role":"user","content":{"q"}}],"system":{"s"}}`},
		{"space stays", "{ \"system\" : [ { \"type\" : \"text\" , \"text\" : \"a\"M\n} ] ,\t\"messages\" : [ ] }\n"},
		{"names may be escaped", `{"syst\u0065m":{"s"},"messages":[]}`},
		{
			"what a tool is called with is its own business",
			`{"system":{"s"},"messages":[{"role":"assistant","content":[{"type":"tool_use",` +
				`"input":{"cache_control":{"type":"ephemeral"}}}]}]}`,
		},
		{
			"a tool is no result, and the assistant has none",
			`{"tools":[{"type":"tool_result","content":"L"}],"system":[{"type":"image"}],"messages":[{"role":"assistant",` +
				`"content":[{"type":"tool_result","content":"L"}]}]}`,
		},
		{"no breakpoint but null", `{"system":[{"type":"text","cache_control":N,"text":"a"}],"messages":[]}`},

		{"the client's own: in the system text", `{"system":[{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"b"}],` +
			`"messages":[]}`},
		{"the client's own: in tools", `{"tools":[{"name":"t","cache_control":{}}],"system":"s","messages":[]}`},
		{"the client's own: automatic", `{"cache_control":{"type":"ephemeral"},"system":"s","messages":[]}`},
		{"the client's own: escaped", `{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"q",` +
			`"cache\u005fcontrol":{}}]}]}`},
		{
			"the client's own: within a result",
			`{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"q",` +
				`"cache_control":{}}]}]}]}`,
		},
		{
			"the client's own: within a document",
			`{"system":"s","messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text",` +
				`"cache_control":{}}]}}]}]}`,
		},
		{"the client's own: in an unknown place", `{"system":"s","messages":[{"role":"user","content":"q","cache_control":{}}]}`},

		{"not JSON", `{"system":"s","messages":[]`},
		{"no object", `[{"system":"s","messages":[]}]`},
		{"no messages", `{"system":"s"}`},
		{"messages are no list", `{"system":"s","messages":{}}`},
		{"a message is no object", `{"system":"s","messages":["q"]}`},
		{"content of another kind", `{"system":"s","messages":[{"role":"user","content":1}]}`},
		{"a block of another kind", `{"system":"s","messages":[{"role":"user","content":["q"]}]}`},
		{"a system text of another kind", `{"system":{"text":"s"},"messages":[]}`},
		{"a member twice", `{"system":"s","system":"t","messages":[]}`},
		{"a member twice in a block", `{"system":[{"type":"text","text":"s","text":"t"}],"messages":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := strings.ReplaceAll(c.body, "L", strings.Repeat("é", 1024))
			body := strings.ReplaceAll(result, "M", "")
			result = strings.ReplaceAll(result, "M", mark)
			body = strings.ReplaceAll(body, "N", "null")
			result = strings.ReplaceAll(result, "N", `{"type":"ephemeral"}`)
			for _, s := range []string{"s", "q", "a", "b", "c"} {
				body = strings.ReplaceAll(body, `{"`+s+`"}`, `"`+s+`"`)
				result = strings.ReplaceAll(result, `{"`+s+`"}`, `[{"type":"text","text":"`+s+`"`+mark+`}]`)
			}
			p := provider(t, cloudcache.Options{Provider: "anthropic"})
			given := strings.Clone(body)
			if got := string(p.Mark(path, []byte(body))); got != result {
				t.Errorf("%s\ngives %s\nwant  %s", body, got, result)
			}
			if body != given {
				t.Error("the body given was changed")
			}
			for _, other := range []string{"/v1/messages/count_tokens", "/v1/messages/batches", chat, "/v1/models", ""} {
				if got := string(p.Mark(other, []byte(body))); got != body {
					t.Errorf("marked on %s: %s", other, got)
				}
			}
		})
	}
}

func TestMarkExtended(t *testing.T) {
	body := []byte(`{"system":"s","messages":[{"role":"user","content":"q"}]}`)
	for _, c := range []struct{ provider, want string }{
		{"anthropic", `{"type":"ephemeral","ttl":"1h"}`},
		{"minimax", `{"type":"ephemeral"}`},
	} {
		p := provider(t, cloudcache.Options{Provider: c.provider, Extended: true})
		want := `{"system":[{"type":"text","text":"s","cache_control":` + c.want + `}],"messages":[{"role":"user","content":"q"}]}`
		if got := string(p.Mark("/anthropic/v1/messages/", body)); got != want {
			t.Errorf("%s: %s, want %s", c.provider, got, want)
		}
	}
}

func TestMarkOpenAI(t *testing.T) {
	const (
		day  = `,"prompt_cache_retention":"24h"`
		body = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}] }`
	)
	plain := provider(t, cloudcache.Options{Provider: "openai"})
	long := provider(t, cloudcache.Options{Provider: "openai", Extended: true})
	for _, c := range []struct{ name, body, want string }{
		{"chat", body, strings.Replace(body, "] }", "]"+day+" }", 1)},
		{"responses", `{"input":"q"}`, `{"input":"q"` + day + `}`},
		{"the client's own", `{"input":"q","prompt_cache_retention":"in_memory"}`, `{"input":"q","prompt_cache_retention":"in_memory"}`},
		{"the client's own null", `{"input":"q","prompt_cache_retention":null}`, `{"input":"q","prompt_cache_retention":null}`},
		{"no prompt", `{}`, `{}`},
		{"of another kind", `{"messages":"q"}`, `{"messages":"q"}`},
	} {
		if got := string(plain.Mark(chat, []byte(c.body))); got != c.body {
			t.Errorf("%s: not extended: %s", c.name, got)
		}
		if got := string(long.Mark(chat, []byte(c.body))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := string(long.Mark("/v1/embeddings", []byte(`{"input":"q"}`))); got != `{"input":"q"}` {
		t.Errorf("embeddings: %s", got)
	}
}

// Any body: at most four breakpoints or those of the client, all else stays, marking again changes nothing.
func TestMarkAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := body(t)
		checkMark(t, body)
	})
}

func FuzzMark(f *testing.F) {
	for text := range bytes.Lines(recordings) {
		var e example
		if err := json.Unmarshal(text, &e); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(e.Steps[1].Body))
	}
	f.Add([]byte(
		`{"system":[{"type":"text","text":"a"},{"cache_control":null,"type":"text","text":"b"}],"messages":[{"role":"assistant",` +
			`"content":[]}]}`,
	))
	f.Add([]byte(`{"input":"q","instructions":"i"}`))
	f.Add([]byte(
		" { \"messages\" : [ { \"content\" : \"a\" , \"role\" : \"user\" } ,{\"role\":\"assistant\",\"content\":\"\"}] , " +
			"\"tools\" : [ ] } ",
	))
	f.Fuzz(func(t *testing.T, body []byte) { checkMark(t, body) })
}

func checkMark(t interface {
	Fatalf(string, ...any)
	Helper()
}, body []byte,
) {
	t.Helper()
	given := bytes.Clone(body)
	for _, o := range []cloudcache.Options{
		{Provider: "anthropic"}, {Provider: "anthropic", Extended: true}, {Provider: "openai", Extended: true},
	} {
		p, err := cloudcache.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		path := path
		if o.Provider == "openai" {
			path = chat
		}
		out := p.Mark(path, body)
		if !bytes.Equal(body, given) {
			t.Fatalf("the body given was changed")
		}
		p.Answered(p.Sent("t", path, body), cloudcache.Usage{Read: 1, Written: 1}) // any body may have been sent
		if !json.Valid(body) {
			if !bytes.Equal(out, body) {
				t.Fatalf("%q is no JSON and was changed: %q", body, out)
			}
			continue
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q, which is no JSON", body, out)
		}
		if again := p.Mark(path, out); !bytes.Equal(again, out) {
			t.Fatalf("%q is marked again: %q", out, again)
		}
		before, after := decode(body), decode(out)
		if a, b := count(before), count(after); b > max(a, 4) || a > 0 && b != a {
			t.Fatalf("%q: %d breakpoints became %d", body, a, b)
		}
		if diff := cmp.Diff(bare(before), bare(after)); diff != "" {
			t.Fatalf("%q: more than breakpoints changed (-before +after):\n%s", body, diff)
		}
		if len(out) < len(body) || !subsequence(body, out) {
			t.Fatalf("%q: bytes were lost: %q", body, out)
		}
	}
}

// decode keeps numbers as they are written.
func decode(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

// count counts the breakpoints where Anthropic has them.
func count(v any) (n int) {
	object, _ := v.(map[string]any)
	has := func(v any) {
		if m, ok := v.(map[string]any); ok && m["cache_control"] != nil {
			n++
		}
	}
	each := func(v any, f func(any)) {
		list, _ := v.([]any)
		for _, v := range list {
			f(v)
		}
	}
	has(v)
	each(object["tools"], has)
	each(object["system"], has)
	each(object["messages"], func(v any) {
		message, _ := v.(map[string]any)
		has(message)
		each(message["content"], func(v any) {
			has(v)
			block, _ := v.(map[string]any)
			each(block["content"], has)
		})
	})
	return n
}

// bare is a body without what Mark adds, and with texts for lists of one text.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, v := range v {
			switch name {
			case "cache_control", "prompt_cache_retention", "prompt_cache_key":
			default:
				out[name] = bare(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		if len(out) == 1 {
			if m, ok := out[0].(map[string]any); ok && len(m) == 2 && m["type"] == "text" {
				if text, ok := m["text"].(string); ok {
					return text
				}
			}
		}
		return out
	}
	return v
}

// subsequence reports whether the bytes of a stand in b in the same order, apart from nulls that were replaced.
func subsequence(a, b []byte) bool {
	a = bytes.ReplaceAll(a, []byte("null"), nil)
	i := 0
	for _, c := range b {
		if i < len(a) && a[i] == c {
			i++
		}
	}
	return i == len(a)
}

// body draws a request in Anthropic's form, or nearly.
func body(t *rapid.T) []byte {
	text := rapid.SampledFrom(
		[]string{"", " ", "s", "\"cache_control\":{}", "é\n\u2028", strings.Repeat("w", 1024), strings.Repeat("é", 1023)},
	)
	control := func(m map[string]any) map[string]any {
		switch rapid.IntRange(0, 12).Draw(t, "control") {
		case 0:
			m["cache_control"] = map[string]any{"type": "ephemeral"}
		case 1:
			m["cache_control"] = nil
		}
		return m
	}
	var block func(depth int) any
	blocks := func(depth int) []any {
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			list = append(list, block(depth))
		}
		return list
	}
	block = func(depth int) any {
		switch kind := rapid.IntRange(0, 20).Draw(t, "kind"); {
		case kind < 8:
			return control(map[string]any{"type": "text", "text": text.Draw(t, "text")})
		case kind < 14 && depth > 0:
			return control(map[string]any{"type": "tool_result", "content": blocks(depth - 1)})
		case kind < 16:
			return control(map[string]any{"type": "tool_result", "content": text.Draw(t, "text")})
		case kind < 17:
			return control(map[string]any{"type": "thinking", "thinking": "t"})
		case kind < 18:
			return map[string]any{"type": "tool_use", "input": map[string]any{"cache_control": 1e3}}
		case kind < 19:
			return map[string]any{}
		case kind < 20:
			return control(map[string]any{"type": "image"})
		}
		return rapid.SampledFrom([]any{nil, 1, "x", []any{}}).Draw(t, "odd")
	}
	content := func() any {
		if rapid.Bool().Draw(t, "string") {
			return text.Draw(t, "text")
		}
		return blocks(2)
	}
	object := map[string]any{"model": "m", "max_tokens": 1}
	if rapid.Bool().Draw(t, "with system") {
		object["system"] = content()
	}
	if rapid.IntRange(0, 3).Draw(t, "with tools") == 0 {
		object["tools"] = []any{control(map[string]any{"name": "t"})}
	}
	if rapid.IntRange(0, 20).Draw(t, "automatic") == 0 {
		object["cache_control"] = map[string]any{"type": "ephemeral"}
	}
	list := []any{}
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		list = append(
			list, map[string]any{"role": rapid.SampledFrom([]string{"user", "user", "assistant"}).Draw(t, "role"), "content": content()},
		)
	}
	object["messages"] = list
	var out []byte
	if rapid.Bool().Draw(t, "indent") {
		out, _ = json.MarshalIndent(object, " ", "\t")
	} else {
		out, _ = json.Marshal(object)
	}
	return out
}

// A body of very many blocks would take much memory.
func TestMarkManyBlocks(t *testing.T) {
	for _, c := range []struct {
		provider, path, begin, block, end string
		blocks                            int
		marked                            bool
	}{
		{"anthropic", path, `{"system":"s","messages":[{"role":"user","content":[`, `{}`, `]}]}`, 100_000, true},
		{"anthropic", path, `{"system":"s","messages":[{"role":"user","content":[`, `{}`, `]}]}`, 140_000, false},
		{"anthropic", path, `{"system":"s","messages":[`, `{"role":"user","content":""}`, `]}`, 140_000, false},
		{"openai", chat, `{"messages":[`, `{}`, `]}`, 140_000, false},
	} {
		p := provider(t, cloudcache.Options{Provider: c.provider, Extended: true})
		body := []byte(c.begin + strings.Repeat(c.block+",", c.blocks) + c.block + c.end)
		if got := len(p.Mark(c.path, body)) > len(body); got != c.marked {
			t.Errorf("%s with %d blocks is marked: %v", c.begin, c.blocks, got)
		}
	}
}

// Deep nesting neither overflows the stack nor takes quadratic time.
func TestMarkNested(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "anthropic"})
	for _, n := range []int{9_000, 20 << 20} {
		text := []byte(strings.Repeat("[", n))
		if got := p.Mark(path, text); len(got) != n {
			t.Errorf("%d brackets became %d", n, len(got))
		}
	}
	deep := strings.Repeat(`[{"content":`, 4_000) + "1" + strings.Repeat(`}]`, 4_000)
	body := []byte(fmt.Sprintf(`{"system":"s","messages":[{"role":"user","content":%s}]}`, deep))
	if got := p.Mark(path, body); !json.Valid(got) || len(got) == len(body) {
		t.Error("deep blocks: not marked")
	}
	p.Answered(p.Sent("", path, body), cloudcache.Usage{})
}
