package trace_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func mustBlocks(t testing.TB, ids ...string) *trace.Blocks {
	t.Helper()
	list := make([]trace.Block, len(ids))
	for i, id := range ids {
		list[i] = trace.Block{ID: id, Text: "text of " + id}
	}
	b, err := trace.NewBlocks(list...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readAll(text string, blocks *trace.Blocks) ([]trace.Request, error) {
	var out []trace.Request
	for q, err := range trace.NewReader(strings.NewReader(text), "t.jsonl", blocks).All() {
		if err != nil {
			return out, err
		}
		out = append(out, q)
	}
	return out, nil
}

func TestReader(t *testing.T) {
	tests := []struct {
		name, text string
		want       []trace.Request
	}{
		{"empty file", "", nil},
		{"blank lines", "\n \t\r\n\n", nil},
		{
			"defaults", `{"id":"q","query":"why","docs":["a"]}`,
			[]trace.Request{{ID: "q", Session: "q", Turn: 1, Query: "why", Docs: []string{"a"}}},
		},
		{
			"numbers as ids", `{"id":7,"session":-0,"turn":2,"query":"","docs":[1,"2",3.0],"answer":"yes"}` + "\n",
			[]trace.Request{{ID: "7", Session: "0", Turn: 2, Docs: []string{"1", "2", "3.0"}, Answer: "yes"}},
		},
		{
			"turn as string, null answer, other members", `{"x":{"id":1},"id":"q","turn":"3","query":"é\u00e9","docs":[],"answer":null}`,
			[]trace.Request{{ID: "q", Session: "q", Turn: 3, Query: "éé", Docs: []string{}}},
		},
		{
			"letter case matters", `{"id":"q","ID":"Q","query":"x","QUERY":"y","docs":[]}`,
			[]trace.Request{{ID: "q", Session: "q", Turn: 1, Query: "x", Docs: []string{}}},
		},
		{
			"two turns, blank line between", `{"id":1,"session":"s","turn":1,"query":"a","docs":[]}` + "\r\n\r\n" +
				`{"id":2,"session":"s","turn":4,"query":"b","docs":[]}`,
			[]trace.Request{
				{ID: "1", Session: "s", Turn: 1, Query: "a", Docs: []string{}},
				{ID: "2", Session: "s", Turn: 4, Query: "b", Docs: []string{}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(tt.text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	const ok = `{"id":"q1","session":"s","turn":2,"query":"x","docs":["a"]}` + "\n"
	tests := []struct{ name, text, want string }{
		{"broken JSON", ok + "\n{\"id\": \n", "t.jsonl:3: broken JSON at byte 6: unexpected end of JSON input"},
		{"two values on a line", ok + `{} {}`, "t.jsonl:2: broken JSON at byte 4: invalid character '{' after top-level value"},
		{"not an object", ok + `["q"]`, "t.jsonl:2: want a JSON object, found a list"},
		{"null", `null`, "t.jsonl:1: want a JSON object, found null"},
		{"byte order mark", "\ufeff" + ok, "t.jsonl:1: file starts with a byte order mark, want plain UTF-8"},
		{"not UTF-8", ok + "{\"id\":\"\xff\"}", "t.jsonl:2: line is not valid UTF-8"},
		{"no id", `{"query":"x","docs":[]}`, `t.jsonl:1: "id" is missing`},
		{"null id", `{"id":null}`, `t.jsonl:1: "id" is null, want a string or a number`},
		{"no query", `{"id":"q","docs":[]}`, `t.jsonl:1: request "q": "query" is missing`},
		{"query of another type", `{"id":"q","query":1,"docs":[]}`, `t.jsonl:1: request "q": "query" is a number, want a string`},
		{"null query", `{"id":"q","query":null,"docs":[]}`, `t.jsonl:1: request "q": "query" is null, want a string`},
		{"no docs", `{"id":"q","query":"x"}`, `t.jsonl:1: request "q": "docs" is missing`},
		{"docs of another type", `{"id":"q","query":"x","docs":"a"}`, `t.jsonl:1: request "q": "docs" is a string, want a list of IDs`},
		{
			"doc of another type", `{"id":"q","query":"x","docs":["a",true]}`,
			`t.jsonl:1: request "q": "docs[1]" is a boolean, want a string or a number`,
		},
		{
			"session of another type", `{"id":"q","session":{},"query":"x","docs":[]}`,
			`t.jsonl:1: request "q": "session" is an object, want a string or a number`,
		},
		{"turn of another type", `{"id":"q","turn":1.5,"query":"x","docs":[]}`, `t.jsonl:1: request "q": "turn" is 1.5, want an integer`},
		{"answer of another type", `{"id":"q","query":"x","docs":[],"answer":[]}`, `t.jsonl:1: request "q": "answer" is a list, want a string`},
		{"document twice", `{"id":"q","query":"x","docs":["1","a",1]}`, `t.jsonl:1: request "q": document "1" occurs twice`},
		{"request twice", ok + "\n" + ok, `t.jsonl:3: request "q1": occurs twice, first on line 1`},
		{
			"turn not rising", ok + `{"id":"q2","session":"s","turn":2,"query":"x","docs":[]}`,
			`t.jsonl:2: request "q2": turn 2 of session "s" comes after turn 2`,
		},
		{"unknown block", ok + `{"id":"q2","query":"x","docs":["a","zz"]}`, `t.jsonl:2: request "q2": names unknown block "zz"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAll(tt.text, mustBlocks(t, "a", "1"))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReaderErrorIsFinal(t *testing.T) {
	r := trace.NewReader(strings.NewReader("x\n"+`{"id":"q","query":"x","docs":[]}`), "t", nil)
	_, first := r.Next()
	if _, again := r.Next(); first == nil || again == nil || again.Error() != first.Error() {
		t.Errorf("Next after an error: %v, then %v", first, again)
	}
	r = trace.NewReader(strings.NewReader(""), "t", nil)
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v, want io.EOF", err)
		}
	}
}

func TestBlocksErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"block twice", `{"id":1,"text":"x"}` + "\n\n" + `{"id":"1","text":"y"}`, `b.jsonl:3: block "1" occurs twice, first on line 1`},
		{"no text", `{"id":1}`, `b.jsonl:1: block "1": "text" is missing`},
		{"no id", `{"text":""}`, `b.jsonl:1: "id" is missing`},
		{"broken JSON", `{"id"`, `b.jsonl:1: broken JSON at byte 5: unexpected end of JSON input`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := trace.ReadBlocks(strings.NewReader(tt.text), "b.jsonl"); err == nil || err.Error() != tt.want {
				t.Errorf("error\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestReaderOnPipe answers each line before the next one is written.
func TestReaderOnPipe(t *testing.T) {
	lines := []string{`{"id":1,"query":"a","docs":[]}`, `{"id":2,"query":"b","docs":[]}`, `{"id":3,"query":"c","docs":[]}`}
	in, client := io.Pipe()
	answers, server := io.Pipe()
	done := make(chan error, 1)
	go func() {
		w := trace.NewWriter(server)
		for q, err := range trace.NewReader(in, "pipe", nil).All() {
			if err == nil {
				err = w.WritePlan(q.Plain())
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- server.Close()
	}()
	got := json.NewDecoder(answers)
	for i, line := range lines {
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
		var p trace.Plan
		err := got.Decode(&p)
		if err != nil || p.ID != string(rune('1'+i)) {
			t.Fatalf("answer %d: %+v, %v", i+1, p, err)
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := got.Decode(&trace.Plan{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, want io.EOF", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestVeryLongLine(t *testing.T) {
	long := strings.Repeat("wörd ", 3<<20) // 18 MB
	text := `{"id":1,"text":"` + long + `"}` + "\n" + `{"id":2,"text":"short"}`
	b, err := trace.ReadBlocks(strings.NewReader(text), "long")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Text("1"); got != long {
		t.Errorf("long text came back with %d bytes, want %d", len(got), len(long))
	}
	if got, _ := b.Text("2"); got != "short" {
		t.Errorf("text after the long line: %q", got)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	requests := []trace.Request{
		{ID: "1", Session: "s", Turn: 1, Query: "<why> & how", Docs: []string{"b", "a"}},
		{ID: "2", Session: "s", Turn: 2, Query: "x", Docs: []string{}, Answer: "line\u2028end"},
	}
	for _, ext := range []string{".jsonl", ".jsonl.gz"} {
		t.Run(ext, func(t *testing.T) {
			tr, bl, pl := filepath.Join(dir, "t"+ext), filepath.Join(dir, "b"+ext), filepath.Join(dir, "p"+ext)
			write := func(path string, lines func(*trace.Writer) error) {
				t.Helper()
				w, err := trace.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(lines(w), w.Close()); err != nil {
					t.Fatal(err)
				}
			}
			write(tr, func(w *trace.Writer) error {
				return errors.Join(w.WriteRequest(requests[0]), w.WriteRequest(requests[1]))
			})
			write(bl, func(w *trace.Writer) error {
				return errors.Join(w.WriteBlock(trace.Block{ID: "a", Text: "A"}), w.WriteBlock(trace.Block{ID: "b", Text: "B"}))
			})
			plan := trace.Plan{ID: "2", Session: "s", Turn: 2, Docs: []string{"a"}, Refs: []string{"b"}, Hint: "h"}
			write(pl, func(w *trace.Writer) error { return w.WritePlan(plan) })

			got, blocks, err := trace.Load(tr, bl)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(requests, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if text, ok := blocks.Text("b"); blocks.Len() != 2 || !ok || text != "B" {
				t.Errorf("blocks: %d, b = %q %v", blocks.Len(), text, ok)
			}
			plans, err := trace.LoadPlan(pl)
			if diff := cmp.Diff([]trace.Plan{plan}, plans); diff != "" || err != nil {
				t.Errorf("plan: %v (-want +got):\n%s", err, diff)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		_, err := trace.Open(filepath.Join(dir, "none.jsonl"), nil)
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.jsonl") {
			t.Errorf("error %v, want one that names the file", err)
		}
	})
	t.Run("not gzip", func(t *testing.T) {
		path := filepath.Join(dir, "fake.gz")
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.LoadBlocks(path); err == nil || !strings.Contains(err.Error(), "fake.gz: not a gzip file") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cut gzip", func(t *testing.T) {
		path := filepath.Join(dir, "cut.gz")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		_, err = io.WriteString(z, `{"id":1,"text":"x"}`+"\n")
		if err := errors.Join(err, z.Flush(), f.Close()); err != nil { // no Close of z: its trailer is missing
			t.Fatal(err)
		}
		if _, err := trace.LoadBlocks(path); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "cut.gz:1: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		r, err := trace.Open(filepath.Join(dir, "t.jsonl"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("Next after Close: %v", err)
		}
	})
}
