package trace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func TestWriterLines(t *testing.T) {
	tests := []struct {
		name  string
		write func(*trace.Writer) error
		want  string
	}{
		{"plan", func(w *trace.Writer) error {
			return w.WritePlan(trace.Plan{ID: "q", Session: "s", Turn: 2, Docs: []string{"a", "b"}, Refs: []string{"c"}, Hint: "<b> & c"})
		}, `{"id":"q","session":"s","turn":2,"docs":["a","b"],"refs":["c"],"hint":"<b> & c"}`},
		{
			"plan with empty lists", func(w *trace.Writer) error { return w.WritePlan(trace.Plan{ID: "7"}) },
			`{"id":"7","session":"","turn":0,"docs":[],"refs":[],"hint":""}`,
		},
		{
			"request", func(w *trace.Writer) error {
				return w.WriteRequest(trace.Request{ID: "q", Session: "s", Turn: 1, Query: ">"})
			},
			`{"id":"q","session":"s","turn":1,"query":">","docs":[]}`,
		},
		{
			"block", func(w *trace.Writer) error { return w.WriteBlock(trace.Block{ID: "a", Text: "x\ny"}) },
			`{"id":"a","text":"x\ny"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := tt.write(trace.NewWriter(&out)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want+"\n", out.String()); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadPlan(t *testing.T) {
	tests := []struct {
		name, text string
		want       []trace.Plan
		err        string
	}{
		{
			"all members", `{"id":1,"session":2,"turn":3,"docs":[4],"refs":["5"],"hint":"h"}`,
			[]trace.Plan{{ID: "1", Session: "2", Turn: 3, Docs: []string{"4"}, Refs: []string{"5"}, Hint: "h"}},
			"",
		},
		{"only what must be there", `{"id":"q","docs":[],"refs":null,"hint":null}`, []trace.Plan{{ID: "q", Docs: []string{}}}, ""},
		{"no docs", `{"id":"q"}`, nil, `p:1: request "q": "docs" is missing`},
		{
			"echoes", `{"id":"q","docs":["a","b"],"echo":["b","a"],"echo_text":{"b":"of"}}`,
			[]trace.Plan{{ID: "q", Docs: []string{"a", "b"}, Echo: []string{"b", "a"}, EchoText: map[string]string{"b": "of"}}},
			"",
		},
		{"echo of nothing", `{"id":"q","docs":["a"],"echo":["b"]}`, nil, `p:1: request "q": document "b" is in echo, but not in docs`},
		{"echoed twice", `{"id":"q","docs":["a"],"echo":["a","a"]}`, nil, `p:1: request "q": document "a" occurs twice in echo`},
		{"text without echo", `{"id":"q","docs":["a"],"echo_text":{"a":"x"}}`, nil, `p:1: request "q": document "a" is in echo_text, but not in echo`},
		{
			"text of another type", `{"id":"q","docs":["a"],"echo":["a"],"echo_text":["x"]}`, nil,
			`p:1: request "q": "echo_text" is a list, want an object of strings`,
		},
		{"kept and referred to", `{"id":"q","docs":["a"],"refs":["a"]}`, nil, `p:1: request "q": document "a" occurs twice in docs and refs`},
		{
			"request twice", `{"id":"q","docs":[]}` + "\n" + `{"id":"q","docs":[]}`,
			[]trace.Plan{{ID: "q", Docs: []string{}}},
			`p:2: request "q": occurs twice, first on line 1`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trace.ReadPlan(strings.NewReader(tt.text), "p")
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || message != tt.err {
				t.Errorf("error %q, want %q; plan (-want +got):\n%s", message, tt.err, diff)
			}
		})
	}
}

// FuzzReaders feeds the same bytes to all three readers; what they accept must survive being written and read again.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		`{"id":7,"session":-0.0,"turn":"2","query":"x","docs":[1e5,"a"],"answer":"y"}`,
		`{"id":"a","text":"\ud800\u2028<"}` + "\n\n" + `{"id":"b","text":""}`,
		`{"id":1,"docs":[],"refs":["a"],"hint":"h"}`, `{"id":1,"docs":["a"],"echo":["a"],"echo_text":{"a":"b"}}`, "{", "null", "\xff\n", `{"id":1e999,"text":""}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := string(data)
		var out strings.Builder
		w := trace.NewWriter(&out)
		requests, err := readAll(text, nil)
		for _, q := range requests {
			if err := w.WriteRequest(q); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "t.jsonl:") {
			t.Fatalf("error does not say where: %v", err)
		}
		again, err := readAll(out.String(), nil)
		if diff := cmp.Diff(requests, again); diff != "" || err != nil {
			t.Fatalf("read again: %v\n%s", err, diff)
		}
		if blocks, err := trace.ReadBlocks(strings.NewReader(text), "b"); err == nil {
			for b := range blocks.All() {
				if got, ok := blocks.Text(b.ID); !ok || got != b.Text {
					t.Fatalf("block %q: %q %v", b.ID, got, ok)
				}
			}
		}
		plans, err := trace.ReadPlan(strings.NewReader(text), "p")
		if err != nil && !strings.HasPrefix(err.Error(), "p:") {
			t.Fatalf("error does not say where: %v", err)
		}
		for _, p := range plans {
			out.Reset()
			if err := w.WritePlan(p); err != nil || strings.Contains(out.String(), ":null") {
				t.Fatalf("plan line %q, %v", out.String(), err)
			}
		}
	})
}
