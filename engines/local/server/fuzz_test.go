package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzBodies: whatever is sent, the answer is a completion, a list of tokens, or an error in OpenAI's shape that is the client's.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{` + ask + `,"stream":true}`, `{"prompt":[[1,2],"a"]}`, `{"prompt":[1,-1]}`, `{"prompt":[]}`, `{"prompt":"a","stop":["",1]}`, `{"messages":[{"role":"u","content":[{}]}]}`,
		`{"tokens":[1e9]}`, `{"tokens":[4294967297]}`, `{"prompt":"a","temperature":1e400}`, `{"prompt":"a","max_tokens":-1}`, `[]`, `null`, `{"prompt":null,"messages":null}`,
		`{"prompt":"a","seed":1e99}`, `{"model":{}}`, `{"prompt":"\ud800"}`, `{"prompt":"<|im_end|>"}`, `{"n":1.0,"prompt":"x","logit_bias":[]}`, strings.Repeat("[", 20000),
	} {
		for which := range 4 {
			f.Add(which, []byte(seed))
		}
	}
	r := start(f, func(s *settings) { s.engine.MaxTokens = 2 })
	paths := []string{chatPath, textPath, "/tokenize", "/detokenize", "/forget"}
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		if len(body) > 1<<16 {
			t.Skip("long")
		}
		path := paths[uint(which)%uint(len(paths))]
		w := httptest.NewRecorder()
		r.api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body))))
		switch {
		case w.Code == http.StatusOK:
			return
		case w.Code >= 500:
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" || len(e.Error.Message) > 1000 {
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
	})
}
