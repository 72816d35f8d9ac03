package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

// Requests for a chat or a text may name a compressed context, and get what the engine answers behind it.
func TestContext(t *testing.T) {
	var slots int
	r := start(t, func(s *settings) {
		if err := tinymodel.Write(s.engine.Model, s.model); err != nil {
			t.Fatal(err)
		}
		done, err := local.Compress(t.Context(), local.Compression{
			Model: s.engine.Model, Task: "Answer.", Notes: "The lamp is lit.", Out: filepath.Join(t.TempDir(), "x"),
			Documents: []local.Document{{Name: "a", Text: strings.Repeat("The lamp is lit at night. ", 40)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		slots = done.Slots
		s.engine.Contexts = map[string]string{"manual": done.File}
	})
	for path, body := range map[string]string{chatPath: `"messages":[{"role":"user","content":"Is it lit?"}],"ignore_eos":true,"max_tokens":5`, textPath: `"prompt":"Is it lit?","ignore_eos":true`} {
		plain := r.post(t, path, `{`+body+`}`).object(t)["usage"].(map[string]any)
		behind := r.post(t, path, `{"context":"manual",`+body+`}`).object(t)["usage"].(map[string]any)
		cached := behind["prompt_tokens_details"].(map[string]any)["cached_tokens"].(float64)
		if got := behind["prompt_tokens"].(float64); got < float64(slots)+1 || cached != float64(slots) || plain["prompt_tokens"].(float64) > 100 || behind["completion_tokens"] != plain["completion_tokens"] {
			t.Errorf("%s: %v, without a context %v; it has %d slots", path, behind, plain, slots)
		}
		for _, x := range []struct{ name, want string }{{`"other"`, `context "other": not loaded; there are ["manual"]`}, {`7`, "context 7: want a text"}} {
			a := r.post(t, path, `{"context":`+x.name+`,`+body+`}`)
			if o := a.object(t); a.status != 400 || at(o, "error", "message") != x.want || at(o, "error", "param") != "context" {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		r.post(t, path, `{"context":null,`+body+`}`).object(t)
	}
}
