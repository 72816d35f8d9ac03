package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// fakeTableReader is a scripted OpenAI server: it answers from the first cell of a row, and reports half of a prompt as cached. After limit
// requests, if not 0, it answers no more until the limit is taken away.
type fakeTableReader struct {
	url          string
	asked, limit atomic.Int64
}

func newFakeTableReader(t *testing.T) *fakeTableReader {
	t.Helper()
	f := &fakeTableReader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, limit := f.asked.Add(1), f.limit.Load(); limit > 0 && n > limit {
			http.Error(w, "enough", http.StatusBadRequest)
			return
		}
		var body struct {
			Messages []struct{ Role, Content string }
		}
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &body) != nil || len(body.Messages) != 2 || body.Messages[0].Content != eval.CellSystem {
			http.Error(w, "not as expected", http.StatusBadRequest)
			return
		}
		asked := body.Messages[1].Content
		first, _, _ := strings.Cut(asked, "\n")
		_, answer, _ := strings.Cut(first, " is ")
		text, _ := json.Marshal(answer)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n", text)
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1,"+
			"\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n", len(asked), len(asked)/2)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func colourTable(rows int) string {
	var b strings.Builder
	b.WriteString("note,city,kind,colour\n")
	for i := range rows {
		fmt.Fprintf(&b, "number %d is c%d,Rome,k%d,c%d\n", i, i%7, i%2, i%7)
	}
	return b.String()
}

// TestEvalTable: the command against a scripted engine, which gives up in the middle, and with --resume does the rest.
func TestEvalTable(t *testing.T) {
	testkit.NotUnderRace(t)
	fake := newFakeTableReader(t)
	path := write(t, "colours.csv", colourTable(150))
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"eval", "--table", path, "--ask", "colour", "--sample", "100", "--engine", fake.url, "--out", dir}
	fake.limit.Store(150) // all of the first form and a part of the second
	if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "arm fixed") {
		t.Fatalf("the engine gave up: %v", err)
	}
	fake.limit.Store(0)
	text, err := run(t, append(args, "--resume")...)
	if err != nil {
		t.Fatal(err)
	}
	if n := fake.asked.Load(); n != 301 { // 3 × 100, and the one that was refused
		t.Errorf("%d requests", n)
	}
	for _, want := range []string{
		"100 of 150 rows of the table, asked for colour", "compared with as-is", "7 values, all listed", "inferior", "--columns as-is", "reported",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r := readReport(t, dir)
	if r.Arms[0].Exact != 1 || r.Arms[1].Verdict != eval.Inferior || r.Arms[2].Verdict != eval.Inferior || r.Table.Advised != "as-is" ||
		r.Arms[2].Layouts.Reported == 0 || *r.Arms[2].Layouts.Cached == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "profile.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a profile of columns: %v", err)
	}
	if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a second run over the first: %v", err)
	}
	if _, err := run(t, append(args, "--resume", "--seed", "2")...); err == nil || !strings.Contains(err.Error(), "rows_sha256") {
		t.Errorf("other rows: %v", err)
	}
	asJSON, err := run(t, append(args, "--resume", "--json")...)
	if err != nil || !json.Valid([]byte(asJSON)) || !strings.Contains(asJSON, `"most_frequent":`) {
		t.Errorf("%v\n%s", err, asJSON)
	}
	if n := fake.asked.Load(); n != 301 {
		t.Errorf("resumed when all was done: %d requests", n)
	}
}

func TestEvalTableErrors(t *testing.T) {
	path := write(t, "colours.csv", colourTable(20))
	same := write(t, "same.csv", "a,b,c\n1,2,x\n3,4,x\n")
	none := write(t, "none.csv", "a,b,c\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--ask is required", []string{"--table", path}},
		{"--table is required", []string{"--ask", "colour"}},
		{"--table is required", []string{"--sample", "5", "--generate", "5"}},
		{"--rows r.jsonl: not together with --table", []string{"--table", path, "--ask", "colour", "--rows", "r.jsonl"}},
		{"--permute 2: not together with --table", []string{"--table", path, "--ask", "colour", "--permute", "2"}},
		{"--sample 0", []string{"--table", path, "--ask", "colour", "--sample", "0"}},
		{"--margin 0", []string{"--table", path, "--ask", "colour", "--margin", "0"}},
		{
			`--ask: ` + path + `: column "color": no such column; the table has "note", "city", "kind", "colour"`,
			[]string{"--table", path, "--ask", "color"},
		},
		{`column "c": all rows have the value "x"`, []string{"--table", same, "--ask", "c"}},
		{"the table has no rows", []string{"--table", none, "--ask", "c"}},
		{"--table: ", []string{"--table", path + "x", "--ask", "c"}},
		{"--engine sim", []string{"--table", path, "--ask", "colour", "--engine", "sim"}},
	} {
		if _, err := run(t, append([]string{"eval"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
