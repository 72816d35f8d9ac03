package server_test

import (
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
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
			Model: s.engine.Model, Task: "Answer.", Notes: strings.Repeat("The lamp is lit. ", 8), Out: filepath.Join(t.TempDir(), "x"),
			Documents: []local.Document{{Name: "a", Text: strings.Repeat("The lamp is lit at night. ", 8)}},
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
		if got := behind["prompt_tokens"].(float64); got < float64(slots)+1 || cached != float64(slots) ||
			plain["prompt_tokens"].(float64) > 100 ||
			behind["completion_tokens"] != plain["completion_tokens"] {
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
	// How the answer fits comes with it, or with the end of a stream, and is counted.
	const long = `"context":"manual","messages":[{"role":"user","content":"Is it lit?"}],"ignore_eos":true,"max_tokens":20`
	fit := at(r.post(t, chatPath, `{`+long+`}`).object(t), "choices", 0, "context_fit")
	if drift, ok := at(fit, "drift").(float64); !ok || drift == 0 {
		t.Fatalf("context_fit %v", fit)
	}
	chunks := r.post(t, chatPath, `{"stream":true,`+long+`}`).events(t)
	for i, c := range chunks {
		if got := at(c, "choices", 0, "context_fit"); (i == len(chunks)-1) != (got != nil) || got != nil && !reflect.DeepEqual(got, fit) {
			t.Errorf("chunk %d of %d: %v, want %v at the end", i+1, len(chunks), got, fit)
		}
	}
	metrics, counts := string(r.do(t, http.MethodGet, "/metrics", "").body), map[string]int{}
	for _, m := range regexp.MustCompile(`ragpilot:context_answers_total\{context="manual",.*task="(\w+)"\} (\d+)\n`).FindAllStringSubmatch(metrics, -1) {
		counts[m[1]], _ = strconv.Atoi(m[2])
	}
	task := "same"
	if at(fit, "other_task") == true {
		task = "other"
	}
	if counts["unknown"] != 1 || counts["same"]+counts["other"] != 3 ||
		counts[task] < 2 { // a short chat; a text of 16 tokens, and the last two
		t.Errorf("%v, want two at least of %q", counts, task)
	}
}
