package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

const long = "The pump is serviced every year, and the valve is not. "

// TestConformance: our own client finds an engine as it should be.
func TestConformance(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) engines.Engine {
		engine := start(t, upstream.Options{}, nil)
		return engine
	})
}

// TestShapes: streamed and whole answers say the same to the openai client, usage included.
func TestShapes(t *testing.T) {
	for name, change := range map[string]func(*openai.Config){"streamed": nil, "whole": nothingStreamed} {
		t.Run(name, func(t *testing.T) {
			engine := start(t, upstream.Options{CapacityTokens: 10_000}, change)
			prompt := strings.Repeat(long, 20)
			for i, cached := range []int{0, tokens.Count(prompt) / 16 * 16} {
				got := ask(t, engine, "", prompt, 5)
				if got.TTFT <= 0 || !strings.HasPrefix(got.ID, "chatcmpl-") {
					t.Errorf("TTFT %v, ID %q", got.TTFT, got.ID)
				}
				if whole := name == "whole"; (got.Choices != nil) != whole {
					t.Errorf("the choices as the engine sent them: %s; only an answer that is not streamed has them", got.Choices)
				}
				got.TTFT, got.Total, got.ID, got.Choices = 0, 0, "", nil
				want := engines.Response{
					Text: "0 1 2 3 4", Finish: "stop",
					Usage: engines.Usage{PromptTokens: tokens.Count(prompt), OutputTokens: 5, CachedTokens: cached, CachedKnown: true},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("request %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestCachedTokensGrow: a longer and longer prompt is read from the cache but for its end.
func TestCachedTokensGrow(t *testing.T) {
	engine := start(t, upstream.Options{}, nil)
	last := -1
	for n := range 5 {
		got := ask(t, engine, "", strings.Repeat(long, 10*(n+1)), 1).Usage.CachedTokens
		if got <= last {
			t.Errorf("prompt %d: %d tokens from the cache, %d before", n, got, last)
		}
		last = got
	}
}

// TestAccepted: bodies that real clients send, with the prompt tokens that they come to.
func TestAccepted(t *testing.T) {
	chat, text := "/v1/chat/completions", "/v1/completions"
	tests := []struct {
		name, path, body string
		tokens           int
	}{
		{"string", chat, `{"messages":[{"role":"user","content":"one two three"}]}`, 3},
		{"parts", chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]}`, 2},
		{"no parts", chat, `{"messages":[{"role":"user","content":[]}]}`, 0},
		{
			"tool message",
			chat,
			`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[7]},{"role":"tool","tool_call_id":"x","content":"two"}]}`,
			5,
		},
		{"tools", chat, `{"tools":["one"],"messages":[{"role":"user","content":"two"}]}`, 6},
		{
			"null everywhere",
			chat,
			`{"tools":null,"stream":null,"max_tokens":null,"stream_options":null,"rid":null,"messages":[{"role":"user","content":"two"}]}`,
			1,
		},
		{"unknown members", chat, `{"zebra":{"a":[1]},"temperature":0.5,"messages":[{"role":"user","content":"two","name":"x"}]}`, 1},
		{"list of IDs as rid", chat, `{"rid":["a","b"],"messages":[{"role":"user","content":"two"}]}`, 1},
		{"prompt", text, `{"prompt":"one two"}`, 2},
		{"list of one prompt", text, `{"prompt":["one two"]}`, 2},
		{"token IDs", text, `{"prompt":[1,22,151643]}`, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t.Context(), upstream.New(upstream.Options{}), tt.path, tt.body)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			var got struct {
				Object  string
				Choices []struct {
					Text    string
					Message struct{ Role, Content string }
				}
				Usage struct {
					Prompt int `json:"prompt_tokens"`
				}
			}
			if err := json.NewDecoder(w.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			said, kind := got.Choices[0].Message.Content, "chat.completion"
			if tt.path == text {
				said, kind = got.Choices[0].Text, "text_completion"
			}
			if got.Usage.Prompt != tt.tokens || got.Object != kind || !strings.HasPrefix(said, "0 1 2") {
				t.Errorf("%+v, want %d tokens and a %s", got, tt.tokens, kind)
			}
		})
	}
}

// TestRefused: what is wrong with a request is said in the shape that the openai client understands.
func TestRefused(t *testing.T) {
	chat, text := "/v1/chat/completions", "/v1/completions"
	tests := []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"no JSON", chat, `{"messages":`, 400, "not a valid request"},
		{"not an object", chat, `[1]`, 400, "not a valid request"},
		{"null", chat, `null`, 400, "messages"},
		{"no messages", chat, `{"messages":[]}`, 400, "messages"},
		{"no role", chat, `{"messages":[{"content":"a"}]}`, 400, "messages[0]: role"},
		{"content is a number", chat, `{"messages":[{"role":"user","content":1}]}`, 400, "messages[0].content"},
		{"a picture", chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, 400, "image_url"},
		{"no room for an answer", chat, `{"max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, 400, "max_tokens 0"},
		{"stream is a word", chat, `{"stream":"yes","messages":[{"role":"user","content":"a"}]}`, 400, "stream"},
		{"too large", chat, `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 2000) + `"}]}`, 413, "1000"},
		{"no prompt", text, `{}`, 400, "prompt"},
		{"two prompts", text, `{"prompt":["a","b"]}`, 400, "prompt"},
		{"no path", "/v1/embeddings", `{}`, 404, "path"},
		{"no such method", "/v1/models", `{}`, 405, "GET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t.Context(), upstream.New(upstream.Options{MaxBody: 1000}), tt.path, tt.body)
			var got struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.NewDecoder(w.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if w.Code != tt.status || got.Error.Code != tt.status || got.Error.Type == "" || !strings.Contains(got.Error.Message, tt.want) {
				t.Errorf("status %d, %+v", w.Code, got.Error)
			}
		})
	}
	engine := start(t, upstream.Options{}, func(c *openai.Config) {
		c.Extra = map[string]json.RawMessage{"max_tokens": json.RawMessage("-1")}
	})
	_, err := engine.Generate(t.Context(), engines.Request{Messages: []engines.Message{{Role: engines.User, Content: "a"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "max_tokens -1") {
		t.Errorf("the client says %v", err)
	}
}

func TestRequestIDs(t *testing.T) {
	body := `"messages":[{"role":"user","content":"a"}]}`
	tests := []struct {
		name, body, header, want string
	}{
		{"header first", `{"request_id":"b","rid":"c",` + body, "a", "a"},
		{"then request_id", `{"request_id":"b","rid":"c",` + body, "", "b"},
		{"then rid", `{"rid":"c",` + body, "", "c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t.Context(), upstream.New(upstream.Options{}), "/v1/chat/completions", tt.body, "X-Request-Id", tt.header)
			if got := object(t, w.Body)["id"]; got != "chatcmpl-"+tt.want || w.Header().Get("X-Request-Id") != tt.want {
				t.Errorf("ID %v, header %q", got, w.Header().Get("X-Request-Id"))
			}
		})
	}
	s := upstream.New(upstream.Options{})
	one := post(t.Context(), s, "/v1/chat/completions", "{"+body).Header().Get("X-Request-Id")
	two := post(t.Context(), s, "/v1/chat/completions", "{"+body).Header().Get("X-Request-Id")
	if one == "" || one == two {
		t.Errorf("made-up IDs %q and %q", one, two)
	}
}

func TestReplies(t *testing.T) {
	tests := []struct {
		name string
		o    upstream.Options
		body string
		want string
	}{
		{"numbered", upstream.Options{Tokens: 3}, `{`, "0 1 2"},
		{"numbered from a seed", upstream.Options{Tokens: 3}, `{"seed":999999,`, "999999 0 1"},
		{"numbered from a seed below 0", upstream.Options{Tokens: 2}, `{"seed":-1,`, "999999 0"},
		{"as long as allowed", upstream.Options{}, `{"max_tokens":2,`, "0 1"},
		{"the newer limit", upstream.Options{}, `{"max_tokens":3,"max_completion_tokens":2,`, "0 1"},
		{"cut", upstream.Options{Tokens: 9}, `{"max_tokens":2,`, "0 1"},
		{"lorem", upstream.Options{Reply: upstream.Lorem, Tokens: 2}, `{`, "lorem ipsum"},
		{"echo", upstream.Options{Reply: upstream.Echo}, `{`, "what is it?"},
		{"echo, cut", upstream.Options{Reply: upstream.Echo, Tokens: 2}, `{`, "what is"},
		{
			"digest",
			upstream.Options{Reply: upstream.Digest},
			`{`,
			"digest " + upstream.DigestOf([]engines.Message{{Role: engines.User, Content: "what is it?"}}),
		},
		{"unknown", upstream.Options{Reply: "zebra", Tokens: 1}, `{`, "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t.Context(), upstream.New(tt.o), "/v1/completions", tt.body+`"prompt":"what is it?"}`)
			choice := object(t, w.Body)["choices"].([]any)[0].(map[string]any)
			if choice["text"] != tt.want {
				t.Errorf("%q, want %q", choice["text"], tt.want)
			}
		})
	}
}

// TestStream: what the bytes of a stream are, with and without usage.
func TestStream(t *testing.T) {
	for _, usage := range []bool{false, true} {
		body := fmt.Sprintf(`{"stream":true,"stream_options":{"include_usage":%t},"rid":"r","max_tokens":2,"prompt":"a"}`, usage)
		got := post(t.Context(), upstream.New(upstream.Options{}), "/v1/completions", body).Body.String()
		var texts []string
		for event := range strings.SplitSeq(strings.TrimSuffix(got, "\n\n"), "\n\n") {
			data := strings.TrimPrefix(event, "data: ")
			if data == "[DONE]" {
				texts = append(texts, data)
				continue
			}
			chunk := object(t, strings.NewReader(data))
			if chunk["id"] != "cmpl-r" || chunk["object"] != "text_completion" || chunk["model"] != "sim" {
				t.Errorf("chunk %s", data)
			}
			for _, c := range chunk["choices"].([]any) {
				texts = append(texts, fmt.Sprint(c.(map[string]any)["text"], c.(map[string]any)["finish_reason"]))
			}
			if u, ok := chunk["usage"]; ok {
				texts = append(texts, fmt.Sprint(u))
			}
		}
		want := []string{"0<nil>", " 1<nil>", "stop", "[DONE]"}
		if usage {
			want = slices.Insert(want, 3, "map[completion_tokens:2 prompt_tokens:1 prompt_tokens_details:map[cached_tokens:0] total_tokens:3]")
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("usage %t (-want +got):\n%s", usage, diff)
		}
	}
}

// TestDelays: in virtual time, the pieces of an answer come exactly when they are due.
func TestDelays(t *testing.T) {
	cost := sim.Cost{Base: 7 * time.Millisecond, PerToken: time.Millisecond}
	tests := []struct {
		name string
		o    upstream.Options
		want []time.Duration // of two equal requests of 40 tokens with answers of 3
	}{
		{"at once", upstream.Options{}, []time.Duration{0, 0}},
		{"fixed", upstream.Options{Delay: time.Second}, []time.Duration{time.Second, time.Second}},
		{
			"each token",
			upstream.Options{Delay: time.Second, TokenDelay: time.Minute},
			[]time.Duration{time.Second + 2*time.Minute, time.Second + 2*time.Minute},
		},
		{"by cost", upstream.Options{Cost: &cost}, []time.Duration{47 * time.Millisecond, 15 * time.Millisecond}},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", tt.name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tt.o.Tokens = 3
					s := upstream.New(tt.o)
					body := fmt.Sprintf(`{"stream":%t,"prompt":"%s"}`, stream, strings.Repeat("word ", 40))
					for _, want := range tt.want {
						begun := time.Now()
						post(t.Context(), s, "/v1/completions", body)
						if got := time.Since(begun); got != want {
							t.Errorf("took %v, want %v", got, want)
						}
					}
				})
			})
		}
	}
}

// TestClientLeaves: a client that goes away ends its answer, and gives back the blocks it held.
func TestClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstream.New(upstream.Options{CapacityTokens: 1000, TokenDelay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(90*time.Minute, cancel)
		w := post(ctx, s, "/v1/completions", `{"stream":true,"prompt":"a"}`)
		if got := w.Body.String(); strings.Count(got, "data: ") != 2 || strings.Contains(got, "[DONE]") {
			t.Errorf("got %s", got)
		}
		if st := s.Stats(); st.Running != 0 || st.Requests != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestModelsAndHealth(t *testing.T) {
	s := upstream.New(upstream.Options{Model: "llama"})
	for path, want := range map[string]string{"/v1/models": `"id":"llama"`, "/health": ""} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, o := range map[string]upstream.Options{
		"zebra": {Reply: "zebra"}, "gnu": {EvictRule: "gnu"}, "-1s": {Delay: -time.Second}, "200000": {Tokens: 200_000},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (upstream.Options{}).Validate(); err != nil {
		t.Error(err)
	}
}
