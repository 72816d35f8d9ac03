package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Tokens of a chat come in the form of vLLM or of llama.cpp. The other form is not asked for again once one has answered.
func TestTokenizeChat(t *testing.T) {
	chat := []engines.Message{{Role: engines.User, Content: "hello"}}
	for name, test := range map[string]struct {
		answer func(path string, body gjson.Result) (status int, text string) // of a fake server
		asked  []string                                                       // for two chats
		err    error
	}{
		"vLLM": {
			func(path string, body gjson.Result) (int, string) {
				if path == "/tokenize" && body.Get("messages.0.content").String() == "hello" {
					return http.StatusOK, `{"count":3,"tokens":[7,8,9]}`
				}
				return http.StatusNotFound, ""
			},
			[]string{"/tokenize", "/tokenize"},
			nil,
		},
		"llama.cpp": {
			func(path string, body gjson.Result) (int, string) {
				switch {
				case path == "/apply-template" && body.Get("messages.0.content").String() == "hello":
					return http.StatusOK, `{"prompt":"<user>hello<assistant>"}`
				case path == "/tokenize" && body.Get("content").String() == "<user>hello<assistant>":
					return http.StatusOK, `{"tokens":[7,8,9]}`
				case path == "/tokenize":
					return http.StatusOK, `{"tokens":[]}`
				}
				return http.StatusNotFound, ""
			},
			[]string{"/tokenize", "/apply-template", "/tokenize", "/apply-template", "/tokenize"},
			nil,
		},
		"neither": {
			func(string, gjson.Result) (int, string) { return http.StatusNotFound, "" },
			[]string{"/tokenize", "/apply-template", "/tokenize", "/apply-template"},
			errors.ErrUnsupported,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = append(asked, r.URL.Path)
				status, text := test.answer(r.URL.Path, gjson.ParseBytes(body))
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			}))
			defer server.Close()
			engine, err := openai.New(openai.Config{BaseURL: server.URL, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			for range 2 {
				tokens, err := engine.TokenizeChat(t.Context(), chat)
				if !errors.Is(err, test.err) || test.err == nil && !slices.Equal(tokens, []int32{7, 8, 9}) {
					t.Errorf("%v, %v", tokens, err)
				}
			}
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
		})
	}
}
