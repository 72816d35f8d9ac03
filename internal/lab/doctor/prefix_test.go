package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// body is a request with a system text of some length, and with what comes behind it.
func body(system int, rest string) string {
	return `{"messages":[{"role":"system","content":"` + strings.Repeat("long", system) + `"},` + rest + `]}`
}

// TestPrefix: what requests share is compared with a block, and both numbers are named. The fake has a token for four bytes.
func TestPrefix(t *testing.T) {
	const question = `{"role":"user","content":"a question of some length, which is not shared and not counted at all"}`
	for _, tt := range []struct {
		name   string
		fake   *fake
		prefix string
		result doctor.Result
		says   string
	}{
		{
			"a short text", &fake{kind: doctor.VLLM, block: 64}, "Answer briefly.", doctor.Problem,
			"your shared prefix is shorter than one cache block, and never reused: 7 tokens (by the server's tokenizer, with the chat " +
				"template), a block has 64 tokens",
		},
		{
			"a long text", &fake{kind: doctor.SGLang, block: 64}, strings.Repeat("long", 100), doctor.OK,
			"104 tokens (by the server's tokenizer, with the chat template): 64 of them in whole blocks of 64",
		},
		{"a body", &fake{kind: doctor.VLLM, block: 64}, body(100, question), doctor.OK, "64 of them in whole blocks of 64"},
		{"a short body", &fake{kind: doctor.VLLM, block: 64}, body(10, question), doctor.Problem, "shorter than one cache block"},
		{
			"no tokenizer", &fake{kind: doctor.VLLM, block: 64, noTokenizer: true}, "Answer briefly.", doctor.Problem,
			"4 tokens (estimated, at the rate of the probe)",
		},
		{
			"not sure", &fake{kind: doctor.VLLM, block: 64, noTokenizer: true}, strings.Repeat("long", 60), doctor.Warning,
			"may be shorter than one cache block: 60 tokens (estimated, at the rate of the probe)",
		},
		{
			"a measured block", &fake{kind: doctor.Other, block: 32}, "Answer briefly.", doctor.Problem,
			"a block has 32 tokens, measured with",
		},
		{"single tokens", &fake{kind: doctor.LlamaCPP, block: 1, slots: 4}, "Answer briefly.", doctor.OK, "single tokens"},
		{"a block not known", &fake{kind: doctor.Other, block: 32, noDetails: true}, "Answer briefly.", doctor.NotKnown, "is not known"},
		{"a clock", &fake{kind: doctor.SGLang, block: 32, clockInTemplate: true}, "Answer briefly.", doctor.NotKnown, "each time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := tt.fake
			f.window = 8192
			r := examine(t, doctor.Config{Engine: serve(t, f), Prefix: tt.prefix})
			c := find(t, r, "your prefix")
			if c.Result != tt.result || !strings.Contains(c.Saw, tt.says) {
				t.Errorf("%+v\n%s", c, printed(r))
			}
			if c.Result == doctor.Problem && !strings.Contains(c.Do, "in front of") {
				t.Errorf("to do: %q", c.Do)
			}
			for _, b := range f.bodies { // no text of the user's is sent as a prompt
				if strings.Contains(b, "longlong") || strings.Contains(b, "briefly") {
					t.Errorf("sent as a prompt: %.80q", b)
				}
			}
		})
	}
	r := examine(t, doctor.Config{Engine: serve(t, &fake{kind: doctor.Other, block: 16})})
	if strings.Contains(printed(r), "your prefix") {
		t.Errorf("a finding about no prefix:\n%s", printed(r))
	}
}

// TestPrefixBody: what of a body is shared, and which bodies are refused.
func TestPrefixBody(t *testing.T) {
	tokens := func(prefix string) string {
		r := examine(t, doctor.Config{Engine: serve(t, &fake{kind: doctor.Other, noDetails: true}), Prefix: prefix, NoProbe: true})
		c := find(t, r, "your prefix")
		n, _, _ := strings.Cut(c.Saw, " ")
		return n
	}
	for prefix, want := range map[string]string{
		"four":             "1",
		"{{ a template }}": "4",
		body(10, `{"role":"user","content":"gone"}`):                                                         "11",
		body(10, `{"role":"user","content":"longlong"},{"role":"assistant","content":"longlong"}`):           "15",
		body(10, `{"role":"user","content":[{"type":"text","text":"gone"}]}`):                                "11",
		`{"system":"longlonglong","messages":[{"role":"user","content":"gone"}]}`:                            "4",
		`{"system":[{"type":"text","text":"longlong"}],"messages":[{"role":"user","content":"gone"}]}`:       "3",
		`{"tools":[{"type":"function"}],"messages":[{"role":"user","content":"gone"}]}`:                      "6",
		`{"messages":[{"role":"system","content":"longlonglonglong"}],"tools":[],"model":"m","stream":true}`: "5",
	} {
		if got := tokens(prefix); got != want {
			t.Errorf("%s: %s tokens, want %s", prefix, got, want)
		}
	}
	for prefix, says := range map[string]string{
		" \n":              "empty",
		"\xff\xfe":         "UTF-8",
		`{"model":"m"}`:    "without messages",
		`{"messages":"m"}`: "messages",
		`{"messages":[{"role":"user","content":"a"}]}`:              "only message",
		`{"tools":null,"messages":[{"role":"user","content":"a"}]}`: "only message",
	} {
		_, err := doctor.Run(t.Context(), doctor.Config{Engine: "http://a", Prefix: prefix})
		if !errors.Is(err, doctor.ErrConfig) || !strings.Contains(err.Error(), "Prefix: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
