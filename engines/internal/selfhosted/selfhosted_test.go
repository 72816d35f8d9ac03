package selfhosted_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/internal/selfhosted"
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
		v := selfhosted.ParseVersion(text)
		got := ""
		if v.Known() {
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
		{"", true, "not known (the server told no version)"},
		{"0.1.dev3", true, `not known (version "0.1.dev3" says nothing)`},
	} {
		if got := selfhosted.ParseVersion(c.version).Since(0, 28, 0, c.exact).String(); got != c.want {
			t.Errorf("%q, %v: %s", c.version, c.exact, got)
		}
	}
}

func TestFirst(t *testing.T) {
	known := selfhosted.No("asked")
	if got := selfhosted.First(selfhosted.Support{}, selfhosted.Unknown("x"), known, selfhosted.Yes("late")); got != known {
		t.Errorf("%v", got)
	}
	if got := selfhosted.First(selfhosted.Support{}, selfhosted.Unknown("x"), selfhosted.Unknown("y")).String(); got != "not known (x)" {
		t.Errorf("%v", got)
	}
	if got := selfhosted.First().String(); got != "not known" {
		t.Errorf("%v", got)
	}
}

func TestSchema(t *testing.T) {
	s, err := selfhosted.ParseSchema([]byte(`{"paths":{"/a":{},"/b":1},"components":{"schemas":{"Chat":{"properties":{"rid":{},"x":null}},"Odd":[1],"Enum":{"enum":[1]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got        selfhosted.Support
		known, has bool
	}{
		{s.Path("/a"), true, true},
		{s.Path("/c"), true, false},
		{s.Member("Chat", "rid"), true, true},
		{s.Member("Chat", "y"), true, false},
		{s.Member("Odd", "y"), false, false},
		{s.Member("Enum", "y"), false, false},
		{s.Member("None", "y"), false, false},
		{selfhosted.Schema{}.Path("/a"), false, false},
	} {
		if c.got.Known != c.known || c.got.Has != c.has {
			t.Errorf("%+v", c)
		}
	}
	if _, err := selfhosted.ParseSchema([]byte(`<html>`)); err == nil {
		t.Error("a page is a schema")
	}
}

// Different tenants have different salts, and every salt is one that engines take.
func TestSalt(t *testing.T) {
	for tenant, want := range map[string]string{
		"":         "",
		"team-a":   "team-a",
		"h-1":      selfhosted.Salt("h-1"), // looks like a hash: hashed
		"a@b/c":    selfhosted.Salt("a@b/c"),
		"Zürich":   selfhosted.Salt("Zürich"),
		"_.-09azA": "_.-09azA",
	} {
		got := selfhosted.Salt(tenant)
		if got != want {
			t.Errorf("%q: %q", tenant, got)
		}
	}
	if got := selfhosted.Salt("h-1"); got == "h-1" {
		t.Error("a name that looks like a hash can be another tenant's salt")
	}
	if got := selfhosted.Salt(strings.Repeat("a", selfhosted.MaxSalt+1)); len(got) > selfhosted.MaxSalt {
		t.Errorf("a long name has a salt of %d characters", len(got))
	}
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z@/\\]{0,6}`), rapid.StringN(100, 200, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		one, two := selfhosted.Salt(a), selfhosted.Salt(b)
		if (a == b) != (one == two) {
			t.Errorf("%q and %q have the salts %q and %q", a, b, one, two)
		}
		if len(one) > selfhosted.MaxSalt || strings.ContainsAny(one, "@/\\\x00") || (one == "") != (a == "") {
			t.Errorf("%q has the salt %q", a, one)
		}
		if again := selfhosted.Salt(one); a != one && again == one {
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
		var p selfhosted.Prompt
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
		want          selfhosted.Endpoint
	}{
		{"tcp://*:5557", "10.0.0.7", selfhosted.Endpoint{Address: "tcp://10.0.0.7:5557", Wildcard: true}},
		{"tcp://0.0.0.0:5557", "engine", selfhosted.Endpoint{Address: "tcp://engine:5557", Wildcard: true}},
		{"tcp://[::]:5557", "::1", selfhosted.Endpoint{Address: "tcp://[::1]:5557", Wildcard: true}},
		{"tcp://:::5557", "e", selfhosted.Endpoint{Address: "tcp://e:5557", Wildcard: true}},
		{"tcp://127.0.0.1:5557", "e", selfhosted.Endpoint{Address: "tcp://127.0.0.1:5557"}},
		{"tcp://[fd00::1]:5557", "e", selfhosted.Endpoint{Address: "tcp://[fd00::1]:5557"}},
		{"ipc:///run/kv", "e", selfhosted.Endpoint{Address: "ipc:///run/kv", Local: true}},
		{"inproc://kv", "e", selfhosted.Endpoint{Address: "inproc://kv", Local: true}},
		{"tcp://nonsense", "e", selfhosted.Endpoint{Address: "tcp://nonsense"}},
		{"udp://*:1", "e", selfhosted.Endpoint{Address: "udp://*:1"}},
	} {
		if got := selfhosted.Resolve(c.address, c.host); got != c.want {
			t.Errorf("%s: %+v", c.address, got)
		}
	}
	if got := selfhosted.AtPort("::", 9, "h"); got.Address != "tcp://h:9" || !got.Wildcard {
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
	m, err := selfhosted.ParseMetrics([]byte(metrics))
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
	if _, err := selfhosted.ParseMetrics([]byte("a{ 1\n")); err == nil {
		t.Error("nonsense is metrics")
	}
	if m, err := selfhosted.ParseMetrics(nil); err != nil || !m.Started().IsZero() {
		t.Errorf("no metrics: %v", err)
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte(metrics))
	f.Add([]byte("process_start_time_seconds -Inf\nhits_total 1e300\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := selfhosted.ParseMetrics(text)
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
		var p selfhosted.Prompt
		p.Chunk(chunk)
		selfhosted.AnswerID(chunk)
	})
}
