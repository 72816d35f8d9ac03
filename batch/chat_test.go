package batch

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines"
)

// Bodies that are not the same have texts that are not the same: rows with equal texts get one answer.
func TestBodyTextTellsBodiesApart(t *testing.T) {
	var seen []string
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"a"}]}`,
		`{"messages":[{"role":"user","content":"a\u0000\u0000user\nb"}]}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
		`{"messages":[{"role":"user","content":"a\"},{\"role\":\"user\",\"content\":\"b"}]}`,
		`{"messages":[{"role":"system","content":"a"}]}`,
		`{"messages":[{"role":"user","name":"a"}]}`,
		`{"messages":[{"role":"user","name":"b"}]}`,
		`{"messages":[{"role":"user","content":"a","name":"b"}]}`,
		`{"messages":[{"role":"user","content":"a","name":"c"}]}`,
		`{"messages":[{"role":"user","content":null}]}`,
		`{"messages":[{"role":"user","content":"null"}]}`,
		`{"messages":[{"role":"user","content":["a"]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"v"}}]}]}`,
		`{"messages":[{"role":"user","content":"\ud800"}]}`,
		`{"messages":[{"role":"user","content":"\ud801"}]}`,
		`{"messages":[{"role":"user","content":"a"}],"model":"m"}`,
		`{"messages":[{"role":"user","content":"a"}],"model":"n"}`,
		`{"messages":[{"role":"user","content":"a"}],"seed":18446744073709551615}`,
		`{"messages":[{"role":"user","content":"a"}],"seed":18446744073709551614}`,
		`{"messages":[{"role":"user","content":"a"}],"seed\":1,\"x":1}`,
		`{"messages":[{"role":"user","content":"a"}],"seed":1,"x":1}`,
		`{"messages":[{"role":"user","content":"a"}],"temperature":1}`,
		`{"messages":[{"role":"user","content":"a"}],"temperature":1.0}`,
		`{"messages":[{"role":"user","content":"a"}],"n":1}`,
	} {
		text, err := bodyText(json.RawMessage(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if slices.Contains(seen, text) {
			t.Errorf("%s has the text of another body: %q", body, text)
		}
		seen = append(seen, text)
	}
}

func TestBodyText(t *testing.T) {
	const want = `"model":"m"
{"role":"system","content":"s"}
{"role":"user","content":[{"type":"text","text":"a <b>"}],"a":1,"b":2,"name":"x"}
"max_tokens":5
"stop":["\n"]
`
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a <b>"}],"b":2,"name":"x","a":1}],` +
			`"max_tokens":5,"stop":["\n"]}`,
		"{\"stop\" : [ \"\\n\" ],\r\n\t\"max_tokens\":5, \"messages\" : [ {\"content\":\"s\" , \"role\":\"system\"},\n" +
			`{"name":"x","a":1,"b" :2,"content":[ {"type":"text", "text":"a <b>"} ],"role":"user"} ], "model": "m"}`,
	} {
		if got, err := bodyText(json.RawMessage(body)); err != nil || got != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
}

// Bodies with the same first messages have texts with the same beginning, whatever else differs, unless their prompts cannot share.
func TestBodyTextBeginsWithTheMessages(t *testing.T) {
	text := func(body string) string {
		got, err := bodyText(json.RawMessage(body))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	begin := `{"role":"system","content":"long"}` + "\n"
	for _, more := range []string{`"seed":1,`, `"a":1,`, `"temperature":0,"user":"u",`} {
		got := text(`{` + more + `"messages":[{"role":"system","content":"long"},{"role":"user","content":"q"}]}`)
		if !strings.HasPrefix(got, begin) {
			t.Errorf("%s: %q", more, got)
		}
	}
	for _, more := range []string{`"model":"m",`, `"cache_salt":"s",`, `"chat_template_kwargs":{"x":1},`, `"lora":[],`} {
		got := text(`{` + more + `"messages":[{"role":"system","content":"long"}]}`)
		if !strings.HasPrefix(got, strings.TrimSuffix(more, ",")) {
			t.Errorf("%s does not stand in front: %q", more, got)
		}
	}
}

func TestBodyErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                      "body.messages: missing, want a list of messages",
		`{"messages":[]}`:                         "body.messages: [], want a list of messages",
		`{"messages":"hi"}`:                       `body.messages: "hi", want a list of messages`,
		`{"messages":[{"role":"a"},"x"]}`:         `body.messages[1]: "x", want an object`,
		`{"messages":[{"content":"a"}]}`:          "body.messages[0]: role: missing, want a text",
		`{"messages":[{"role":5}]}`:               "body.messages[0]: role: 5, want a text",
		`{"messages":[{"role":""}]}`:              `body.messages[0]: role: "", want a text`,
		`{"messages":[{"role":"a","x":1,"x":2}]}`: `body.messages[0]: the member "x" stands there twice`,
		`[]`: "body: json: cannot unmarshal array",
	} {
		if _, err := bodyText(json.RawMessage(body)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if _, err := bodyRequest(json.RawMessage("null")); err == nil {
		t.Error("null is a request")
	}
}

// What asks for more than the text of one answer.
func TestBodyAsksMore(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"a"}]`
	for more, want := range map[string]struct {
		choices int
		member  string
	}{
		`"n":2`:                          {2, "n: 2"},
		`"n":1e0`:                        {1, "n: 1e0"},
		`"n":-3`:                         {1, "n: -3"},
		`"n":1e99`:                       {math.MaxInt16, "n: 1e99"},
		`"tools":[ {"type":"function"}]`: {1, `tools: [{"type":"function"}]`},
		`"functions":[{}]`:               {1, "functions: [{}]"},
		`"n":3,"logprobs":true`:          {3, "logprobs: true"},
		`"top_logprobs":3`:               {1, "top_logprobs: 3"},
		`"audio":{}`:                     {1, "audio: {}"},
		`"modalities":["text","audio"]`:  {1, `modalities: ["text","audio"]`},
		`"n":1,"tools":[ ],"functions":null,"logprobs":false,"top_logprobs":0,"modalities":[ "text" ],"audio":null,"tool_choice":"none"`: {},
	} {
		body := json.RawMessage(`{` + messages + `,` + more + `}`)
		if _, err := bodyText(body); err != nil {
			t.Errorf("%s: %v", more, err)
		}
		r, err := bodyRequest(body)
		if got := choicesAsked(r.Extra); err != nil || got != want.choices {
			t.Errorf("%s: %d choices, want %d, %v", more, got, want.choices, err)
		}
		says := ""
		if want.member != "" {
			says = "body." + want.member + " is not possible: the engine gives the text of one answer only"
		}
		if err := onlyText(body); (err != nil) != (says != "") || err != nil && err.Error() != says {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
}

// All members of a body but those about streaming are sent byte for byte.
func TestBodyRequestSendsMembersAsTheyAre(t *testing.T) {
	const body = `{"model" : "m\u0041", "messages": [ {"role":"user","content":[{"type":"text","text":"Look: "},{"type":"image_url",` +
		`"image_url":{"url":"data:,x"}},{"type":"text","text":"well?"}]} , {"role":"assistant","content":null,"name":"\/"}],` +
		`"seed":18446744073709551615,"temperature":1e-1,"max_tokens":7.0,"stream":false,"stream_options":null,"n":1,"tools":[ ],` +
		`"logit_bias":{ "5" : -1E2 },"metadata":{"b":1,"a":[1,  2]},"x":null}`
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "stream")
	delete(want, "stream_options")
	r, err := bodyRequest(json.RawMessage(body))
	if err != nil || !maps.EqualFunc(r.Extra, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Errorf("%v\n%s\nwant\n%s", err, r.Extra, want)
	}
	messages := []engines.Message{{Role: "user", Content: "Look: well?"}, {Role: "assistant"}}
	if !reflect.DeepEqual(r.Messages, messages) || r.Model != "mA" || r.MaxTokens != 7 || *r.Temperature != 0.1 {
		t.Errorf("%+v", r)
	}
}

// The bound of an answer is known, for budgets, and an engine gets no member that the body does not have.
func TestBodyRequestBounds(t *testing.T) {
	for members, want := range map[string]struct {
		tokens int
		sent   string // max_tokens
	}{
		`"x":1`:                     {0, "none"},
		`"max_tokens":5`:            {5, "5"},
		`"max_tokens":null`:         {0, "null"},
		`"max_tokens":-1`:           {0, "-1"},
		`"max_tokens":1e300`:        {math.MaxInt32, "1e300"},
		`"max_tokens":"5"`:          {0, `"5"`},
		`"max_completion_tokens":6`: {6, ""},
		`"max_completion_tokens":6,"max_tokens":5`:  {6, "5"},
		`"max_completion_tokens":null`:              {0, "none"},
		`"max_completion_tokens":9999999999`:        {math.MaxInt32, ""},
		`"temperature":1e999,"max_tokens":5`:        {5, "5"},
		`"temperature":null,"max_tokens":9e1`:       {90, "9e1"},
		`"temperature":"warm","max_tokens":0`:       {0, "0"},
		`"max_completion_tokens":0,"max_tokens":50`: {0, "50"},
	} {
		r, err := bodyRequest(json.RawMessage(`{` + members + `,"messages":[{"role":"user","content":"a"}]}`))
		sent := "none"
		if value, ok := r.Extra["max_tokens"]; ok {
			sent = string(value) // an empty value is how a member that the engine package sets is removed
		}
		if err != nil || r.MaxTokens != want.tokens || sent != want.sent || r.Temperature != nil {
			t.Errorf("%s: %d tokens, max_tokens %q, temperature %v, %v; want %+v", members, r.MaxTokens, sent, r.Temperature, err, want)
		}
	}
}

// Bodies of few different parts, of which many are nearly equal, have equal texts if and only if they are equal.
func TestBodyTextIsThatOfEqualBodies(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		object := func(members ...string) string {
			var chosen []string
			for _, m := range rapid.Permutation(members).Draw(r, "order") {
				if rapid.IntRange(0, 2).Draw(r, "has") > 0 {
					chosen = append(chosen, m)
				}
			}
			space := rapid.SampledFrom([]string{"", " "}).Draw(r, "space")
			return "{" + space + strings.Join(chosen, ","+space) + "}"
		}
		pick := func(values ...string) string { return rapid.SampledFrom(values).Draw(r, "value") }
		message := func() string {
			return strings.Replace(object(`"content":`+pick(`"a"`, `"a\u0000\n{"`, "null", `[{"text":"a"}]`), `"name":`+pick(`"a"`, `"b"`), `"x":`+pick("1", "1.0")),
				"{", `{"role":`+pick(`"user"`, `"a"`)+`,"y":0,`, 1)
		}
		body := func() string {
			messages := []string{message()}
			if rapid.Bool().Draw(r, "two") {
				messages = append(messages, message())
			}
			return strings.Replace(object(`"model":`+pick(`"a"`, `"b"`), `"seed":`+pick("1", "2"), `"lora":`+pick(`"a"`, `"b"`)), "{",
				`{"messages":[`+strings.Join(messages, ",")+`],"y":0,`, 1)
		}
		a, b := strings.ReplaceAll(body(), ",}", "}"), strings.ReplaceAll(body(), ",}", "}")
		a, b = strings.ReplaceAll(a, ", }", "}"), strings.ReplaceAll(b, ", }", "}")
		x, err := bodyText(json.RawMessage(a))
		if err != nil {
			r.Fatalf("%s: %v", a, err)
		}
		y, err := bodyText(json.RawMessage(b))
		if err != nil {
			r.Fatalf("%s: %v", b, err)
		}
		if same := reflect.DeepEqual(canonical(a, true), canonical(b, true)); same != (x == y) {
			r.Fatalf("%s\n%s\nequal: %v, texts\n%s\n%s", a, b, same, x, y)
		}
	})
}
