package proxy

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                `{"rid":"x"}`,
		` { } `:             ` { "rid":"x"} `,
		`{"a":1}`:           `{"a":1,"rid":"x"}`,
		`{"rid":"y"}`:       `{"rid":"y"}`,
		`{"a":{"rid":"y"}}`: `{"a":{"rid":"y"},"rid":"x"}`,
		`{"a":1, "rid":""}`: `{"a":1, "rid":""}`,
		`[1]`:               `[1]`,
	} {
		if got := string(addRaw([]byte(in), "rid", []byte(quote("x")))); got != want {
			t.Errorf("%s with the member: %s, want %s", in, got, want)
		}
	}
}

// A plain completion has its ID under both names, and nothing that engines do not know; a client's own ID is kept, the later
// name's before the other's.
func TestCompletionMembers(t *testing.T) {
	const shown = `"rid":"x","request_id":"x"}`
	for in, want := range map[string]string{
		`{"rid":"x"}`:                                      `{` + shown,
		` { "request_id":"x" , "rid":"y"} `:                ` { ` + shown + ` `,
		`{"rid":"x", "a":1}`:                               `{"a":1,` + shown,
		`{"a":1, "rid":"x", "b":{"rid":"z"}}`:              `{"a":1, "b":{"rid":"z"},` + shown,
		`{"a":1, "rid":"x","rid":2}`:                       `{"a":1,` + shown,
		`{"system_prompt":"}","rid":"x","a":1,"a":2 }`:     `{"a":1,"a":2 ,` + shown,
		`{"a":1,"apply_chat_template":true,"rid":"x"}`:     `{"a":1,` + shown,
		`{"rid":"x","b":2,"system_prompt":[],"model":"m"}`: `{"b":2,"model":"m",` + shown,
	} {
		c := withIDs([]byte(in), gjson.Parse(in), "", "header")
		if string(c.body) != want || c.id != "x" || string(c.shown) != `"x"` || (c.model != "") != strings.Contains(in, `"m"`) {
			t.Errorf("%s became %s with ID %s, model %q; want %s", in, c.body, c.id, c.model, want)
		}
	}
	for in, shown := range map[string]string{
		`{"rid":7}`: "7", `{"request_id":["a","b"],"rid":"x"}`: `["a","b"]`, `{"rid":["` + strings.Repeat("x", 600) + `"]}`: "null",
	} {
		if c := withIDs([]byte(in), gjson.Parse(in), "", "header"); c.id != "" || string(c.body) != in || string(c.shown) != shown {
			t.Errorf("%s became %s, is shown as %s: want it as it came", in, c.body, c.shown)
		}
	}
	for other, prefix := range map[string]string{"": "req-", "header": "header"} {
		if c := withIDs([]byte(`{"rid":""}`), gjson.Parse(`{"rid":""}`), "", other); !strings.HasPrefix(c.id, prefix) ||
			string(c.body) != `{"rid":"`+c.id+`","request_id":"`+c.id+`"}` {
			t.Errorf("header %q: the ID became %s, the body %s", other, c.id, c.body)
		}
	}
}

// FuzzMembers: other members keep their bytes, whatever they hold.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"rid":1}`, `{"a":"}","rid":{"rid":[]}}`, `{"a":"\"rid\":1"}`, "{\"\\u0072id\":1,\n\"b\":2}",
		`{"system_prompt":[{}],"request_id":"y", "c":3,"rid":"x"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var before map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &before) != nil || before == nil {
			return
		}
		var with, without map[string]json.RawMessage
		if err := json.Unmarshal(addRaw([]byte(s), "rid", []byte(quote("x"))), &with); err != nil {
			t.Fatalf("%q with the member: %v", s, err)
		}
		c := withIDs([]byte(s), gjson.Parse(s), "", "")
		sent := c.body
		if err := json.Unmarshal(sent, &without); err != nil {
			t.Fatalf("%q as a completion: %v", s, err)
		}
		if _, ok := with["rid"]; !ok {
			t.Errorf("%q: no member was added", s)
		}
		if shown := string(c.shown); c.id != "" && (string(without["rid"]) != shown || string(without["request_id"]) != shown) {
			t.Errorf("%q as a completion: ID %s became %s", s, shown, sent)
		}
		for _, name := range []string{"rid", "request_id", "apply_chat_template", "system_prompt"} {
			delete(without, name)
			delete(with, name)
			delete(before, name)
		}
		for _, got := range []map[string]json.RawMessage{with, without} {
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("%q: other members (-before +after): %s", s, diff)
			}
		}
	})
}

// An answer passes byte for byte, in whatever pieces it is read, and its usage is found at either end.
func TestWatcher(t *testing.T) {
	filler := strings.Repeat("data: {\"x\":1}\n\n", 10_000)
	for name, c := range map[string]struct {
		text string
		want usage
	}{
		"chat": {
			`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,` +
				`"prompt_tokens_details":{"cached_tokens":4}}}`,
			usage{prompt: 10, cached: 4, written: -1, written1h: -1, output: 2, total: 12},
		},
		"stream": {
			filler + `data: {"usage":null}` + "\n\n" + `data: {"usage": {"prompt_tokens":10,` +
				`"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			usage{prompt: 10, cached: -1, written: -1, written1h: -1, output: 2, total: -1},
		},
		"Anthropic stream": {
			`data: {"message":{"usage":{"input_tokens":5,"cache_read_input_tokens":7,` +
				`"cache_creation_input_tokens":3}}}` + filler + `data: {"usage":{"output_tokens":9}}`,
			usage{prompt: 5, cached: 7, written: 3, written1h: -1, output: 9, total: -1, apart: true},
		},
		"numbers that cannot be": {
			`{"usage":{"prompt_tokens":-3,"completion_tokens":1e300,"total_tokens":"7","prompt_tokens_details":{"cached_tokens":4}}}`,
			usage{prompt: -1, cached: 4, written: -1, written1h: -1, output: -1, total: -1},
		},
		"none":     {"boom", unknown},
		"broken":   {`{"usage`, unknown},
		"no value": {`{"usage":`, unknown},
	} {
		for _, size := range []int{1, 7, 4096, 1 << 20} {
			var got usage
			calls := 0
			w := &watcher{ReadCloser: io.NopCloser(strings.NewReader(c.text)), done: func(u usage, err error) {
				got = u
				calls++
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}}
			var out strings.Builder
			if _, err := io.CopyBuffer(&out, struct{ io.Reader }{w}, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if out.String() != c.text {
				t.Errorf("%s: the answer changed", name)
			}
			if got != c.want || calls != 1 {
				t.Errorf("%s, read by %d: %+v, %d reports; want %+v, one", name, size, got, calls, c.want)
			}
		}
	}
}

// The whole prompt is what was computed and what came from the cache, in whatever form the engine counts it.
func TestWholePrompt(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"OpenAI":             {`"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}`, 10},
		"OpenAI's responses": {`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4}}`, 10},
		"Anthropic":          {`"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":100}`, 114},
		"nothing written":    {`"usage":{"input_tokens":10,"cache_read_input_tokens":4}`, 14},
		"no cache":           {`"usage":{"input_tokens":10}`, 10},
		"no prompt":          {`"usage":{"cache_read_input_tokens":4}`, -1},
	} {
		if got := readUsage([]byte(c.text), 0).whole(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSplice(t *testing.T) {
	got := string(splice([]byte("0123456789"), []edit{{from: 8, to: 10, with: "z"}, {from: 0, to: 1}, {from: 3, to: 3, with: "abc"}}))
	if got != "12abc34567z" {
		t.Error(got)
	}
}

func TestQuoteIsWhatClientsWrite(t *testing.T) {
	for _, s := range []string{"", "<a & b>", "\u2028", "\x00\n\"\\", "日本"} {
		var back string
		if err := json.Unmarshal([]byte(quote(s)), &back); err != nil || back != s {
			t.Errorf("%q becomes %s", s, quote(s))
		}
	}
	if got := quote("<a>"); got != `"<a>"` {
		t.Error(got)
	}
}
