package trace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// TestNumbersAsIDs pins what Python's str(json.loads(n)) gives.
func TestNumbersAsIDs(t *testing.T) {
	tests := map[string]string{
		"7": "7", "-0": "0", "1.0": "1.0", "-0.0": "-0.0", "1e3": "1000.0", "0.0001": "0.0001", "0.00001": "1e-05",
		"1e16": "1e+16", "9999999999999998.0": "9999999999999998.0", "1.5e300": "1.5e+300", "1E22": "1e+22",
		"5e-324": "5e-324", "0.1": "0.1", "1e400": "inf", "-1e400": "-inf",
		"123456789012345678901234567890": "123456789012345678901234567890",
	}
	for number, want := range tests {
		got, err := readAll(`{"id":`+number+`,"query":"","docs":[]}`, nil)
		if err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("id %s: %+v, %v; want %q", number, got, err, want)
		}
	}
}

func TestPrompts(t *testing.T) {
	p := trace.Prompts{Blocks: mustBlocks(t, "a", "b")}
	q := trace.Request{ID: "q", Query: "why?"}
	tests := []struct {
		name string
		plan trace.Plan
		want string
	}{
		{
			"all parts",
			trace.Plan{Docs: []string{"b", "a"}, Refs: []string{"c", "d"}, Hint: "rank: a b"},
			"<doc b>\ntext of b\n</doc>\n<doc a>\ntext of a\n</doc>\n<doc c see above>\n<doc d see above>\nrank: a b\nQuestion: why?\nAnswer:",
		},
		{"question only", trace.Plan{}, "Question: why?\nAnswer:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.User(q, tt.plan)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("text: %v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := p.User(q, trace.Plan{Docs: []string{"zz"}}); err == nil || err.Error() != `request "q": unknown block "zz"` {
		t.Errorf("unknown block: %v", err)
	}
}

func TestAnswer(t *testing.T) {
	if got := trace.Answer(trace.Request{ID: "q", Answer: "Yes."}); got != "Yes.\n" {
		t.Errorf("recorded answer: %q", got)
	}
	one, two := trace.Answer(trace.Request{ID: "1"}), trace.Answer(trace.Request{ID: "2"})
	if tokens.Count(one) != 40 || len(strings.Fields(one)) != 40 || one == two {
		t.Errorf("fillers %q and %q", one, two)
	}
	if again := trace.Answer(trace.Request{ID: "1"}); again != one {
		t.Errorf("filler changed from %q to %q", one, again)
	}
}

func TestCapacityTokens(t *testing.T) {
	blocks := mustBlocks(t, "a", "b") // each "<doc a>\ntext of a\n</doc>\n": 4 + 3 + 4 tokens
	requests := []trace.Request{
		{ID: "1", Session: "s", Query: "x", Docs: []string{"a", "b"}, Answer: "one two"},
		{ID: "2", Session: "s", Query: "x", Docs: []string{"a"}},
	}
	system := tokens.Count(trace.System)
	const doc, question = 11, 6 // "Questi on : x Answer :"
	size, err := trace.Measure(requests, blocks, true)
	want := trace.Size{
		Alone:   2*system + 3*doc + 2*question,
		Longest: system + 3*doc + 2*question + 2 + 40,
		Plain:   2*system + 5*doc + 3*question + 2,
	}
	if diff := cmp.Diff(want, size); diff != "" || err != nil {
		t.Errorf("Measure: %v (-want +got):\n%s", err, diff)
	}
	without, err := trace.Measure(requests, blocks, false)
	if err != nil || without.Plain != without.Alone || without.Longest != system+doc+question+40 {
		t.Errorf("without history: %+v, %v", without, err)
	}
	for spec, want := range map[string]int{
		"unlimited": 0, "inf": 0, "0": 0, "200000": 200000, "1%": size.Longest + 16, "0%": size.Longest + 16,
		"1000%": 10 * size.Alone, "250.5%": max(size.Alone*2505/1000, size.Longest+16),
	} {
		if got, err := trace.CapacityTokens(spec, requests, blocks, true); got != want || err != nil {
			t.Errorf("CapacityTokens(%q) = %d, %v; want %d", spec, got, err, want)
		}
	}
	for _, spec := range []string{"", "%", "lots", "-5", "1.5", "nan%", "inf%", "-1%"} {
		if got, err := trace.CapacityTokens(spec, requests, blocks, true); err == nil {
			t.Errorf("CapacityTokens(%q) = %d, want an error", spec, got)
		}
	}
	if _, err := trace.CapacityTokens("5%", requests, mustBlocks(t, "a"), true); err == nil {
		t.Error("a trace that names an unknown block was measured")
	}
}
