package memory_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/memory"
)

func TestFilterJSON(t *testing.T) {
	for _, c := range []struct {
		in   string
		want memory.Filter
	}{
		{`{}`, memory.Filter{}},
		{`null`, memory.Filter{}},
		{`{"a": 1}`, memory.Eq("a", 1.0)},
		{`{"a": null}`, memory.Eq("a", nil)},
		{`{"a": [1]}`, memory.Eq("a", []any{1.0})},
		{`{"a": "*"}`, memory.Where("a", memory.OpAny, nil)},
		{`{"b": {"lt": 2, "gte": 1}, "a": "x"}`, memory.And(
			memory.Eq("a", "x"), memory.And(memory.Where("b", memory.OpGte, 1.0), memory.Where("b", memory.OpLt, 2.0)))},
		{`{"NOT": {"a": 1}}`, memory.Not(memory.Eq("a", 1.0))},
		{`{"OR": [{"a": 1}, {}]}`, memory.Or(memory.Eq("a", 1.0), memory.Filter{})},
	} {
		var got memory.Filter
		if err := json.Unmarshal([]byte(c.in), &got); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.in, diff)
		}
	}
	for _, bad := range []string{
		`{"a": {}}`, `{"a": {"about": 1}}`, `{"a": {"in": 1}}`, `{"AND": [1]}`, `[]`, `7`, `{"a": {"gt": null}}`,
		strings.Repeat(`{"NOT":[`, 100) + `{}` + strings.Repeat(`]}`, 100),
	} {
		var f memory.Filter
		if err := json.Unmarshal([]byte(bad), &f); !errors.Is(err, memory.ErrBadFilter) {
			t.Errorf("%.40s: %v, want ErrBadFilter", bad, err)
		}
	}
}

// FuzzFilter: a filter that was read can be written, read again, and selects the same.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{"n":{"gte":1,"lt":"2026-01-01"}}`, `{"OR":[{"text":{"icontains":"A"}},{"NOT":{"n":"*"}}]}`,
		`{"list":{"contains":2},"user_id":"ana"}`,
	} {
		f.Add(seed)
	}
	m := memory.Memory{
		ID: "m", Text: "An apple", Scope: memory.Scope{User: "ana"}, CreatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Metadata: map[string]any{"n": 2.0, "list": []any{1.0, "x"}, "day": "2026-01-01", "deep": map[string]any{"a": nil}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		var one, two memory.Filter
		if json.Unmarshal([]byte(text), &one) != nil {
			return
		}
		raw, err := json.Marshal(one)
		if err != nil {
			t.Fatalf("%+v: %v", one, err)
		}
		if err := json.Unmarshal(raw, &two); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if one.Match(&m) != two.Match(&m) {
			t.Errorf("%s and %s differ", text, raw)
		}
		if not := memory.Not(one); not.Match(&m) == one.Match(&m) {
			t.Errorf("%s and its negation agree", text)
		}
	})
}
