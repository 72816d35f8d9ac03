package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadItems(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   []string // texts; nil: an error
	}{
		"plain":             {`{"facts": ["a", "b"]}`, []string{"a", "b"}},
		"fenced":            {"```json\n{\"facts\": [\"a\"]}\n```", []string{"a"}},
		"talk around":       {`Sure {here}: {"facts": ["a"]} Anything [else]?`, []string{"a"}},
		"the last counts":   {`{"facts": ["draft"]} No, better: {"facts": ["a"]}`, []string{"a"}},
		"objects":           {`{"facts": [{"fact": "a"}, {"text": "b"}, {"memory": "c"}, {}]}`, []string{"a", "b", "c", ""}},
		"bare list":         {`["a", "b"]`, []string{"a", "b"}},
		"single":            {`{"facts": "a"}`, []string{"a"}},
		"null":              {`{"facts": null}`, []string{}},
		"empty":             {`{"facts": []}`, []string{}},
		"strange entries":   {`{"facts": [1, null, ["x"], "a"]}`, []string{"", "a"}},
		"object wins":       {`{"facts": ["a"]} ["b"]`, []string{"a"}},
		"braces in text":    {`{"facts": ["a } { ]"]}`, []string{"a } { ]"}},
		"cut off":           {`{"facts": ["a", "b`, nil},
		"nothing":           {``, nil},
		"no JSON":           {`I found no facts.`, nil},
		"numbers in text":   {`I see nothing new [1], see [2].`, nil},
		"another object":    {`{"other": ["a"]}`, nil},
		"many opened":       {strings.Repeat("{[", 5000), nil},
		"after many opened": {strings.Repeat("{", 900) + `"facts": ["a"]}`, []string{"a"}},
	} {
		items, err := readItems(c.answer, "facts")
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: read %+v", name, items)
			}
			continue
		}
		got := []string{}
		for _, it := range items {
			got = append(got, it.text())
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// FuzzReadItems: whatever a model says, reading it ends, and numbers stay in range.
func FuzzReadItems(f *testing.F) {
	for _, seed := range []string{
		`{"memory":[{"id":"0","event":"ADD","text":"x"}]}`, "```\n[1,\"2\"]```", `{"memory":{"id":[3]}}`,
		`{"memory":[{"id":1e3}]}{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		items, err := readItems(answer, "memory")
		if err != nil && items != nil {
			t.Error("items with an error")
		}
		for _, it := range items {
			if n, ok := it.number(3); ok && (n < 0 || n > 2) {
				t.Errorf("number %d", n)
			}
		}
		for _, act := range decisions(items, []Memory{{ID: "a"}, {ID: "b"}}) {
			if act.Event != Added && act.ID != "a" && act.ID != "b" {
				t.Errorf("%+v is about a memory that was not shown", act)
			}
		}
	})
}
