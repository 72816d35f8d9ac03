package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// marked sets a text off as some clients do, with a random ID.
func marked(id, text string) string {
	return fmt.Sprintf("<<<EXTERNAL_UNTRUSTED_CONTENT id=%q>>>\n%s\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id=%[1]q>>>", id, text)
}

// The IDs of external content are forwarded, and what differs in nothing else is a repeat, however it is replaced.
func TestIDsOfExternalContent(t *testing.T) {
	results := func(ids ...string) string {
		type result struct {
			URL  string `json:"url"`
			Text string `json:"text"`
		}
		var list []result
		for i, id := range ids {
			list = append(list, result{fmt.Sprint("u", i), marked(id, fmt.Sprint("what result ", i, " says"))})
		}
		text, _ := json.Marshal(map[string]any{"results": list})
		return string(text)
	}
	long := listing("file", 60)
	for name, c := range map[string]struct {
		first, second string
		want          string // in the second
	}{
		"one document": {marked("a1", long), marked("b2", long), "[Duplicate content — identical to a previous tool result (t0)."},
		"documents": {
			docs(
				marked("a1", "one"), marked("a2", "two"),
			), docs(marked("b1", "two"), marked("b2", "one")), "[All 2 documents identical to a previous tool result (",
		},
		"some": {
			docs(marked("a1", "one"), marked("a2", "two")), docs(
				marked("b1", "three"), marked("b2", "one"),
			), "<documents>\n<document>" + marked("b1", "three") + "</document>\n</documents>",
		},
		"JSON": {results("a1", "a2"), results("b1", "b2"), "[All 2 documents identical to a previous tool result ("},
		"lines": {
			marked("a1", long), "again\n" + marked("b2", long) + "\nend", `" — identical to earlier search result, see above ...]`,
		},
		"lines of JSON": {
			marked("a1", long), `{"content":` + string(
				quoted(marked("b2", long)+"\n"+listing("other", 9)),
			) + `}`, `\" — identical to earlier search result, see above ...]`,
		},
	} {
		e := newEngine(t)
		if w := post(newProxy(t, e, nil), chatPath, "", chat("s", marked("c3", "q"), c.first, c.second)); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		got := contents(t, e.last())
		if got[1] != marked("c3", "q") || got[3] != c.first {
			t.Errorf("%s: the first became %q, %q", name, got[1], got[3])
		}
		if !strings.Contains(got[5], c.want) {
			t.Errorf("%s: the second became %q, want %q in it", name, got[5], c.want)
		}
	}
}

func quoted(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// JSON results keep their layout in another order and with some left out, unless the client asks for the mode.
func TestLayoutOfJSONResults(t *testing.T) {
	const a, b, c, d = `{"url":"a", "n":1.0}`, `{"url":"b"}`, `{"url" : "c"}`, `{"url":"d"}`
	list := func(results ...string) string {
		return `{"query":"x",  "results":[` + strings.Join(results, " ,\n") + `]}`
	}
	indented := func(results ...string) string {
		var v any
		_ = json.Unmarshal([]byte(list(results...)), &v)
		return fmt.Sprint(v)
	}
	for _, mode := range []string{"", "auto", "json_results"} {
		e := newEngine(t)
		p := newProxy(t, e, nil)
		post(p, chatPath, "", chat("s", "q", list(c, b, a)), "X-ContextPilot-Mode", mode)
		post(p, chatPath, "", chat("s", "q2", list(a, b, c), list(c, d), list(c, d)), "X-ContextPilot-Mode", mode)
		got := contents(t, e.last())
		want := []string{list(c, b, a), list(d)}
		if mode == "json_results" {
			for i, r := range [][]string{{c, b, a}, {d}} {
				var v any
				if err := json.Unmarshal([]byte(got[3+2*i]), &v); err != nil || fmt.Sprint(v) != indented(r...) ||
					!strings.HasPrefix(got[3+2*i], "{\n  \"query\": \"x\",\n") {
					t.Errorf("mode %q: result %d became %q", mode, i, got[3+2*i])
				}
			}
			continue
		}
		if got[3] != want[0] || got[5] != want[1] {
			t.Errorf("mode %q: became %q, %q, want %q", mode, got[3], got[5], want)
		}
		if !strings.HasPrefix(got[7], `{"query":"x",  "results":["[All 2 documents identical to a previous tool result (`) {
			t.Errorf("mode %q: the last became %q", mode, got[7])
		}
	}
}
