package extract_test

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

//go:embed testdata/extract.jsonl
var goldens []byte

// outcome is what the recorded library was asked for.
type outcome struct {
	Mode                     extract.Mode
	Documents                []string
	Prefix, Suffix, Reversed string
}

func TestGoldens(t *testing.T) {
	type golden struct {
		Name, Op string
		Params   struct{ Mode, Tag string }
		Input    struct{ Text string }
		Output   json.RawMessage
	}
	cases := 0
	wiretest.EachLine(t, goldens, func(g golden) {
		cases++
		t.Run(g.Name, func(t *testing.T) {
			f, ok := extract.Find(g.Input.Text, extract.Options{Mode: extract.ParseMode(g.Params.Mode), Tag: g.Params.Tag})
			var want, got *outcome
			if err := json.Unmarshal(g.Output, &want); err != nil {
				t.Fatal(err)
			}
			if ok {
				got = &outcome{Mode: f.Mode, Prefix: f.Prefix, Suffix: f.Suffix, Reversed: f.Rebuild(backwards(f))}
				for _, d := range f.Docs {
					got.Documents = append(got.Documents, d.Key)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	})
	if cases != 11 {
		t.Errorf("%d cases, want 11", cases)
	}
}

func inOrder(f extract.Found) []int {
	order := make([]int, len(f.Docs))
	for i := range order {
		order[i] = i
	}
	return order
}

func backwards(f extract.Found) []int {
	order := inOrder(f)
	slices.Reverse(order)
	return order
}

// exchange is one recorded request: what a client sent and what the engine got.
type exchange struct {
	Name  string
	Steps []struct {
		Headers map[string]string
		Body    request
		Got     struct{ JSON request } `json:"upstream_received"`
		Answer  struct {
			Result struct {
				Details []struct {
					Source string
					Order  []int `json:"reordered_order"`
				} `json:"reorder_details"`
			} `json:"x-contextpilot-result"`
		} `json:"response_headers"`
	}
}

type request struct{ Messages json.RawMessage }

// texts returns every text of a request's messages.
func (r request) texts() []string {
	var out []string
	var walk func(raw json.RawMessage)
	walk = func(raw json.RawMessage) {
		var s string
		var parts []struct {
			Text    string
			Content json.RawMessage
		}
		if json.Unmarshal(raw, &s) == nil {
			out = append(out, s)
		} else if json.Unmarshal(raw, &parts) == nil {
			for _, p := range parts {
				out = append(out, p.Text)
				walk(p.Content)
			}
		}
	}
	walk(r.Messages)
	return out
}

// TestRecordings rebuilds every text that was recorded to reach the engine with its documents in another order, with
// fewer of them, or with a note in their place.
func TestRecordings(t *testing.T) {
	want := map[string]int{
		"intercept/tool-first-builds-second-session-reorders": 1, "intercept/mode-xml_tag": 1, "intercept/mode-numbered": 1,
		"intercept/mode-json_results": 1, "intercept/mode-separator": 1, "intercept/mode-markdown_header": 1,
		"intercept/custom-tag": 1, "intercept/custom-separator": 1, "intercept/content-list-tool-message": 1,
		"intercept/anthropic-tool-results": 1, "intercept/turns-dedup-second-tool-result": 4, "intercept/all-duplicates-one-result": 1,
		"intercept/disabled": 1, "intercept/scope": 2, "intercept/session-reset-on-shrink": 1,
	}
	got := map[string]int{}
	wiretest.Each(t, func(x exchange) {
		if _, ok := want[x.Name]; !ok {
			return
		}
		for _, s := range x.Steps {
			o := extract.Options{
				Mode: extract.ParseMode(s.Headers["X-ContextPilot-Mode"]), Tag: s.Headers["X-ContextPilot-Tag"],
				Separator: s.Headers["X-ContextPilot-Separator"],
			}
			sent, received := s.Body.texts(), s.Got.JSON.texts()
			for i, text := range sent {
				if text == received[i] {
					continue
				}
				got[x.Name]++
				f, ok := extract.Find(text, o)
				if !ok {
					t.Errorf("%s: nothing found in %q", x.Name, text)
					continue
				}
				if again := rebuiltAs(f, received[i], o); again != received[i] {
					t.Errorf("%s\nsent %q\n got %q\nwant %q", x.Name, text, again, received[i])
				}
				for _, d := range s.Answer.Result.Details {
					if len(d.Order) > 0 && f.Rebuild(d.Order) != received[i] {
						t.Errorf("%s: order %v is not the one that was reported", x.Name, d.Order)
					}
				}
			}
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed texts (-want +got):\n%s", diff)
	}
}

// rebuiltAs writes f with the documents that the text want has, in its order.
func rebuiltAs(f extract.Found, want string, o extract.Options) string {
	g, ok := extract.Find(want, o)
	if !ok {
		return "nothing found in " + want
	}
	if words := g.Docs[0].Text; len(g.Docs) == 1 && strings.HasPrefix(words, "[All ") {
		return f.Collapse(words)
	}
	var order []int
	for _, d := range g.Docs {
		order = append(order, slices.IndexFunc(f.Docs, func(e extract.Doc) bool { return e.Key == d.Key }))
	}
	return f.Rebuild(order)
}
