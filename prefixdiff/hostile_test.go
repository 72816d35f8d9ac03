package prefixdiff_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// TestHostileBodies: what a client sends cannot make paths, parts or memory grow beyond the body's size.
func TestHostileBodies(t *testing.T) {
	deep := strings.Repeat(`{"name":"`+strings.Repeat("n", 300)+`","of":`, 2000)
	nested := func(n int) string {
		return strings.Repeat(`{"type":"tool_result","content":[`, n) + `"a","b"` + strings.Repeat("]}", n)
	}
	for _, c := range []struct{ name, first, second string }{
		{
			"a deep schema", `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"name":"t","input_schema":` + deep + `1` + strings.Repeat("}", 2000) + `}]}`,
			`{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"name":"t","input_schema":` + deep + `2` + strings.Repeat("}", 2000) + `}]}`,
		},
		{
			"nested results", `{"messages":[{"role":"user","content":[` + nested(2000) + `]}]}`,
			`{"messages":[{"role":"user","content":[` + strings.Replace(nested(2000), `"a"`, `"c"`, 1) + `]}]}`,
		},
		{
			"arguments that are no JSON", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"` + strings.Repeat("[", 50_000) + `"}}]}]}`,
			`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"` + strings.Repeat("[", 50_001) + `"}}]}]}`,
		},
		{"brackets in a wrapped body", `{"body":"` + strings.Repeat("[", 1_000_000) + `"}`, `{"text":"a"}`},
	} {
		x := index(t, prefixdiff.Config{MaxBytes: 1 << 20})
		for _, body := range []string{c.first, c.second} {
			p, err := prefixdiff.Parse([]byte(body))
			if err != nil {
				continue
			}
			if f, ok := x.Add(p); ok && len(f.Path) > 4096 {
				t.Errorf("%s: a path of %d bytes", c.name, len(f.Path))
			}
			size := 0
			for _, part := range p.Parts {
				size += len(part.Path) + len(part.Text)
			}
			if size > 4*len(body)+1024 {
				t.Errorf("%s: %d bytes of parts in a body of %d", c.name, size, len(body))
			}
		}
		if n := x.Bytes(); n > 1<<20 {
			t.Errorf("%s: the index takes %d bytes", c.name, n)
		}
	}
	_, err := prefixdiff.Parse([]byte(`{"messages":[` + strings.Repeat(`"",`, 70_000) + `""]}`))
	if !errors.Is(err, prefixdiff.ErrInvalid) {
		t.Errorf("70,001 messages: %v", err)
	}
}

// TestLostIsThere: no more is lost than an earlier prompt had.
func TestLostIsThere(t *testing.T) {
	words := "one two three four five six seven eight nine ten eleven twelve "
	x := index(t, prefixdiff.Config{})
	first := parse(t, `{"model":"a","messages":[{"role":"user","content":"`+words+`"}]}`)
	x.Add(first)
	f, _ := x.Add(parse(t, `{"model":"b","messages":[{"role":"user","content":"`+strings.Repeat(words, 99)+`"}]}`))
	if f.LostTokens > 5*first.Tokens() {
		t.Errorf("%+v of %d tokens", f, first.Tokens())
	}
}

// TestSameValues: settings of one value are different settings.
func TestSameValues(t *testing.T) {
	x := index(t, prefixdiff.Config{})
	x.Add(parse(t, `{"model":"t7","cache_salt":"t7","messages":[{"role":"user","content":"hello"}]}`))
	goesOn := `{"model":"t7","cache_salt":"t7","messages":[{"role":"user","content":"hello"},` +
		`{"role":"assistant","content":"yes"},{"role":"user","content":"and now?"}]}`
	if f, ok := x.Add(parse(t, goesOn)); ok {
		t.Errorf("%+v", f)
	}
}

func TestBytes(t *testing.T) {
	const limit = 512 << 10
	for _, texts := range []bool{false, true} {
		x := index(t, prefixdiff.Config{MaxBytes: limit, KeepTexts: texts})
		for i := range 300 {
			x.Add(parse(t, chat(fmt.Sprint(i)+rules, "", strings.Repeat(fmt.Sprintf("%d apples and ", i), 200))))
			if n := x.Bytes(); n > limit {
				t.Fatalf("request %d: %d bytes, texts kept: %v", i, n, texts)
			}
		}
	}
}
