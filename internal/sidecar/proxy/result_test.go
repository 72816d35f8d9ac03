package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// shown is what the result header says, as far as these tests look at it.
type shown struct {
	Documents    int `json:"total_documents"`
	Deduplicated int `json:"documents_deduplicated"`
	Sources      struct {
		System int `json:"system"`
		Tools  int `json:"tool_results"`
	} `json:"sources"`
	CharsSaved int `json:"chars_saved"`
	Blocks     struct {
		Deduped int `json:"blocks_deduped"`
		Total   int `json:"blocks_total"`
		Saved   int `json:"chars_saved"`
	} `json:"dedup"`
}

func result(t *testing.T, w *httptest.ResponseRecorder) shown {
	t.Helper()
	var r shown
	if text := w.Header().Get(proxy.ResultHeader); text == "" {
		t.Fatal("no result header")
	} else if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

// listing is a text of n lines that no other name has.
func listing(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s: line %d says something that is long enough\n", name, i)
	}
	return b.String()
}

// TestResultCountsWhatWasChanged: a text whose documents stay as they came is not counted.
func TestResultCountsWhatWasChanged(t *testing.T) {
	p := newProxy(t, newEngine(t), nil)
	r := result(t, post(p, chatPath, "", chat("S", "?", docs("A", "B", "C"), docs("A", "D"))))
	if r.Documents != 0 || r.Deduplicated != 1 || r.Sources.Tools != 1 {
		t.Errorf("of one document left out: %+v", r)
	}
	post(p, chatPath, "other", chat("S", "?", docs("X", "Y", "Z")))
	r = result(t, post(p, chatPath, "other", chat(docs("P", "Q"), "?", docs("Z", "X", "V"))))
	if r.Documents != 3 || r.Sources.System != 0 || r.Sources.Tools != 1 {
		t.Errorf("of one result in another order: %+v", r)
	}
}

// TestResultOfLaterTurns: what earlier turns left out is not sent now either, and the header says so.
func TestResultOfLaterTurns(t *testing.T) {
	x := &index{}
	p := newProxy(t, newEngine(t), func(o *proxy.Options) { o.Index = x })
	read := listing("file", 120)
	first := result(t, post(p, chatPath, "", chat("S", "?", read, "again:\n"+read)))
	if first.Blocks.Deduped == 0 || first.CharsSaved < len(read)/2 || first.Blocks.Saved != first.CharsSaved {
		t.Fatalf("the first turn: %+v", first)
	}
	second := result(t, post(p, chatPath, "", chat("S", "?", read, "again:\n"+read, "something else")))
	if second.CharsSaved != first.CharsSaved || second.Blocks.Deduped != first.Blocks.Deduped {
		t.Errorf("the second turn %+v, want what the first had: %+v", second, first)
	}
	if x.chars != 2*first.CharsSaved {
		t.Errorf("%d characters were not sent in two requests, of %d each", x.chars, first.CharsSaved)
	}
}

// TestListsOfParts: of texts in lists of parts only assistants' take part in the replacement of lines.
func TestListsOfParts(t *testing.T) {
	text, _ := json.Marshal(listing("said", 45))
	for role, want := range map[string]bool{"assistant": true, "user": false, "system": false} {
		e := newEngine(t)
		body := fmt.Sprintf(
			`{"messages":[{"role":%q,"content":[{"type":"text","text":%s}]},{"role":"user","content":"?"},{"role":"assistant",`+
				`"content":[{"type":"text","text":%s}]}]}`, role, text, text,
		)
		post(newProxy(t, e, nil), chatPath, "", body)
		if replaced := strings.Contains(e.last(), "see above"); replaced != want {
			t.Errorf("a repeat of a list of %s's is replaced: %t", role, replaced)
		}
	}
}

// TestToolsAreNamed: a reference names the tool, by the call if it is there, else by the message, else by the call's ID.
func TestToolsAreNamed(t *testing.T) {
	text, _ := json.Marshal(listing("read", 45))
	again, _ := json.Marshal("again:\n" + listing("read", 45))
	for _, c := range []struct{ path, body, want string }{
		{chatPath, `{"messages":[{"role":"tool","name":"read_file","tool_call_id":"1","content":%s},{"role":"user","content":"?"},` +
			`{"role":"tool","tool_call_id":"2","content":%s}]}`, "earlier read_file result"},
		{"/v1/responses", `{"input":[{"type":"function_call_output","call_id":"c1","output":%s},{"type":"function_call_output",` +
			`"call_id":"c2","output":%s}]}`, "earlier c1 result"},
	} {
		e := newEngine(t)
		post(newProxy(t, e, nil), c.path, "", fmt.Sprintf(c.body, text, again))
		if !strings.Contains(e.last(), c.want) {
			t.Errorf("%s: no %q in %s", c.path, c.want, e.last())
		}
	}
}
