package selfhosted

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"0.9.2":                  "known",
		"0.10.2":                 "known yes",
		"0.32.0":                 "known yes",
		"0.32.0+cpu":             "known yes",
		"0.11.0rc2.dev12+g01ab2": "known yes",
		"v1.0":                   "known yes",
		"0.10.2.post1":           "known yes",
		"0.10.1.1":               "", // no release that we know
		"0.1.dev1+gabc":          "", // a build without tags
		"0.0.0.dev":              "",
		"":                       "",
		"main":                   "",
		"99999999999999999999.1": "",
	} {
		v := ParseVersion(text)
		got := ""
		if v.known {
			got = "known"
		}
		if v.AtLeast(0, 10, 2) {
			got += " yes"
		}
		if got != want || v.Text != text {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	for _, c := range []struct {
		version string
		exact   bool
		want    string
	}{
		{"0.28.0", false, "yes (version 0.28.0, there since 0.28.0)"},
		{"0.27.9", true, "no (version 0.27.9, there since 0.28.0)"},
		{"0.27.9", false, "not known (version 0.27.9, seen in 0.28.0)"},
		{"", true, "not known (the server reports no version)"},
		{"0.1.dev3", true, `not known (version "0.1.dev3" says nothing)`},
	} {
		if got := ParseVersion(c.version).Since(since{minor: 28, exact: c.exact}).String(); got != c.want {
			t.Errorf("%q, %v: %s", c.version, c.exact, got)
		}
	}
}

func TestFirst(t *testing.T) {
	known := No("asked")
	if got := First(Support{}, Unknown("x"), known, Yes("late")); got != known {
		t.Errorf("%v", got)
	}
	if got := First(Support{}, Unknown("x"), Unknown("y")).String(); got != "not known (x)" {
		t.Errorf("%v", got)
	}
	if got := First().String(); got != "not known" {
		t.Errorf("%v", got)
	}
}

func TestSchema(t *testing.T) {
	s, err := ParseSchema([]byte(`{"paths":{"/a":{},"/b":1},"components":{"schemas":{"Chat":{"properties":{"rid":{},"x":null}},"Odd":[1],"Enum":{"enum":[1]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got        Support
		known, has bool
	}{
		{s.Path("/a"), true, true},
		{s.Path("/c"), true, false},
		{s.Member("Chat", "rid"), true, true},
		{s.Member("Chat", "y"), true, false},
		{s.Member("Odd", "y"), false, false},
		{s.Member("Enum", "y"), false, false},
		{s.Member("None", "y"), false, false},
		{Schema{}.Path("/a"), false, false},
	} {
		if c.got.Known != c.known || c.got.Has != c.has {
			t.Errorf("%+v", c)
		}
	}
	if _, err := ParseSchema([]byte(`<html>`)); err == nil {
		t.Error("a page is a schema")
	}
}

// Different tenants have different salts, and every salt is one that engines take.
func TestSalt(t *testing.T) {
	for tenant, want := range map[string]string{
		"":         "",
		"team-a":   "team-a",
		"h-1":      Salt("h-1"), // looks like a hash: hashed
		"a@b/c":    Salt("a@b/c"),
		"Zürich":   Salt("Zürich"),
		"_.-09azA": "_.-09azA",
	} {
		got := Salt(tenant)
		if got != want {
			t.Errorf("%q: %q", tenant, got)
		}
	}
	if got := Salt("h-1"); got == "h-1" {
		t.Error("a name that looks like a hash can be another tenant's salt")
	}
	if got := Salt(strings.Repeat("a", MaxSalt+1)); len(got) > MaxSalt {
		t.Errorf("a long name has a salt of %d characters", len(got))
	}
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z@/\\]{0,6}`), rapid.StringN(100, 200, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		one, two := Salt(a), Salt(b)
		if (a == b) != (one == two) {
			t.Errorf("%q and %q have the salts %q and %q", a, b, one, two)
		}
		if len(one) > MaxSalt || strings.ContainsAny(one, "@/\\\x00") || (one == "") != (a == "") {
			t.Errorf("%q has the salt %q", a, one)
		}
		if again := Salt(one); a != one && again == one {
			t.Errorf("the salt %q of %q is the salt of the tenant of that name", one, a)
		}
	})
}

func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   []uint32
	}{
		"top":           {[]string{`{"prompt_token_ids":[1,2]}`, `{"prompt_token_ids":[3]}`}, []uint32{1, 2}},
		"choice":        {[]string{`{"choices":[{"index":1,"prompt_token_ids":[9]},{"index":0,"prompt_token_ids":[1]}]}`}, []uint32{1}},
		"null, then":    {[]string{`{"prompt_token_ids":null}`, `{"prompt_token_ids":[7]}`}, []uint32{7}},
		"negative":      {[]string{`{"prompt_token_ids":[-1]}`}, nil},
		"not a list":    {[]string{`{"prompt_token_ids":{}}`}, nil},
		"empty":         {[]string{`{"prompt_token_ids":[]}`}, []uint32{}},
		"in the answer": {[]string{`{"choices":[{"index":0,"delta":{"content":"\"prompt_token_ids\""}}]}`}, nil},
	} {
		var p PromptTokens
		for _, chunk := range c.chunks {
			p.Chunk([]byte(chunk))
		}
		if diff := cmp.Diff(c.want, p.Tokens); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		address, host string
		want          Endpoint
	}{
		{"tcp://*:5557", "10.0.0.7", Endpoint{Address: "tcp://10.0.0.7:5557", Wildcard: true}},
		{"tcp://0.0.0.0:5557", "engine", Endpoint{Address: "tcp://engine:5557", Wildcard: true}},
		{"tcp://[::]:5557", "::1", Endpoint{Address: "tcp://[::1]:5557", Wildcard: true}},
		{"tcp://:::5557", "e", Endpoint{Address: "tcp://e:5557", Wildcard: true}},
		{"tcp://127.0.0.1:5557", "e", Endpoint{Address: "tcp://127.0.0.1:5557"}},
		{"tcp://[fd00::1]:5557", "e", Endpoint{Address: "tcp://[fd00::1]:5557"}},
		{"ipc:///run/kv", "e", Endpoint{Address: "ipc:///run/kv", Local: true}},
		{"inproc://kv", "e", Endpoint{Address: "inproc://kv", Local: true}},
		{"tcp://nonsense", "e", Endpoint{Address: "tcp://nonsense"}},
		{"udp://*:1", "e", Endpoint{Address: "udp://*:1"}},
	} {
		if got := Resolve(c.address, c.host); got != c.want {
			t.Errorf("%s: %+v", c.address, got)
		}
	}
	if got := AtPort("::", 9, "h"); got.Address != "tcp://h:9" || !got.Wildcard {
		t.Errorf("%+v", got)
	}
}

const metrics = `# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79529285444e+09
# TYPE hits_total counter
hits_total{engine="0"} 30
hits_total{engine="1"} 12
# TYPE usage gauge
usage{engine="0"} 0.25
usage{engine="1"} NaN
usage{engine="2"} 0.5
# TYPE config gauge
config{block_size="32",blocks="None"} 1
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 1
seconds_sum 3
seconds_count 1
`

func TestMetrics(t *testing.T) {
	m, err := ParseMetrics([]byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Count("none", "hits_total"); n != 42 {
		t.Errorf("hits %d", n)
	}
	if most, ok := m.Max("usage"); most != 0.5 || !ok {
		t.Errorf("usage %v", most)
	}
	if _, ok := m.Sum("seconds"); ok {
		t.Error("a histogram has a sum of series")
	}
	if n := m.IntLabel("config", "block_size"); n != 32 {
		t.Errorf("block size %d", n)
	}
	if n := m.IntLabel("config", "blocks") + m.IntLabel("config", "x") + m.IntLabel("none", "x"); n != 0 {
		t.Errorf("labels that are none: %d", n)
	}
	if got := m.Label("config", "blocks"); got != "None" {
		t.Errorf("label %q", got)
	}
	if got := m.Started().UTC().Truncate(time.Second).Format(time.RFC3339); got != "2026-11-21T20:27:34Z" {
		t.Errorf("started %s", got)
	}
	if _, err := ParseMetrics([]byte("a{ 1\n")); err == nil {
		t.Error("nonsense is metrics")
	}
	if m, err := ParseMetrics(nil); err != nil || !m.Started().IsZero() {
		t.Errorf("no metrics: %v", err)
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte(metrics))
	f.Add([]byte("process_start_time_seconds -Inf\nhits_total 1e300\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMetrics(text)
		if err != nil {
			return
		}
		if m.Count("hits_total") < 0 || m.IntLabel("config", "block_size") < 0 {
			t.Error("less than nothing")
		}
		m.Started()
	})
}

func FuzzPrompt(f *testing.F) {
	f.Add([]byte(`{"prompt_token_ids":[1,2],"choices":[{"index":0,"prompt_token_ids":[3]}]}`))
	f.Fuzz(func(_ *testing.T, chunk []byte) {
		var p PromptTokens
		p.Chunk(chunk)
		answerID(chunk)
	})
}

// The tokenizer is asked with all of a request that its tokens depend on, and nothing else.
func TestRequestQuestion(t *testing.T) {
	question, tokens, err := requestQuestion([]byte(`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[1],"chat_template_kwargs":{"x":1},"max_tokens":3,"user":"u"}`))
	var got map[string]any
	if err != nil || tokens != nil || json.Unmarshal(question, &got) != nil || len(got) != 4 || got["tools"] == nil ||
		got["chat_template_kwargs"] == nil {
		t.Errorf("%s, %v, %v", question, tokens, err)
	}
	if question, _, err = requestQuestion([]byte(`{"prompt":"a","add_special_tokens":false}`)); err != nil ||
		!strings.Contains(string(question), `"prompt":"a"`) {
		t.Errorf("%s, %v", question, err)
	}
	if _, tokens, err = requestQuestion([]byte(`{"prompt":[1,2]}`)); err != nil || !slices.Equal(tokens, []uint32{1, 2}) {
		t.Errorf("%v, %v", tokens, err)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"prompt":["a","b"]}`, `{"prompt":[]}`, `{"prompt":[-1]}`, `{"prompt":"a","messages":[]}`} {
		if _, _, err := requestQuestion([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestAdapters(t *testing.T) {
	m, err := ParseModels([]byte(`{"data":[{"id":"m","parent":null},{"id":"lora","parent":"m"}]}`))
	if err != nil || !slices.Equal(m.Adapters, []string{"lora"}) || len(m.IDs) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}
