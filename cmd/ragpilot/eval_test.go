package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// fakeReader is a scripted OpenAI server: it answers from the first two documents of the last message, or from earlier
// messages. After limit requests, if not 0, it answers no more.
func fakeReader(t *testing.T, limit int64) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); limit > 0 && n > limit {
			http.Error(w, "enough", http.StatusBadRequest)
			return
		}
		var body struct {
			Messages    []struct{ Role, Content string }
			Temperature *float64
		}
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &body) != nil || body.Temperature == nil || *body.Temperature != 0 ||
			body.Messages[0].Role != "system" {
			http.Error(w, "not as expected", http.StatusBadRequest)
			return
		}
		last := body.Messages[len(body.Messages)-1].Content
		asks := last[strings.LastIndex(last, " is the ")+len(" is the "):]
		asks, _, _ = strings.Cut(asks, "?")
		docs := strings.SplitAfter(last, "</doc>\n")
		seen := strings.Join(docs[:min(2, len(docs))], "")
		for _, m := range body.Messages[1 : len(body.Messages)-1] {
			if m.Role == "user" {
				seen += m.Content
			}
		}
		answer := "I do not know."
		if _, fact, ok := strings.Cut(seen, "The "+asks+" is "); ok {
			value, _, _ := strings.Cut(fact, ".")
			answer = "The " + asks + " is " + value + "."
		}
		text, _ := json.Marshal(answer)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestEval: the whole command against a scripted engine, with a file of rows that it wrote itself, cut off and resumed.
func TestEval(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if _, err := run(t, "eval", "generate", "--rows", "150", "--seed", "5", "--out", rows); err != nil {
		t.Fatal(err)
	}
	url, asked := fakeReader(t, 0)
	dir := filepath.Join(t.TempDir(), "new", "out")
	args := []string{"eval", "--rows", rows, "--permute", "2", "--parallel", "4", "--positions", "2", "--arms", "order,default,pin-2"}
	text, err := run(t, append(args, "--engine", url, "--out", dir)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"150 rows", "plain", "order", "default", "pin-2", "permute-2", "random orders: 2", "inferior", "rows needed",
		"reordered",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	report := readReport(t, dir)
	var names []string
	for _, a := range report.Arms {
		names = append(names, a.Name)
	}
	want := []string{"plain", "order", "default", "pin-2", "permute-1", "permute-2", "place-1/2", "place-2/2"}
	if !reflect.DeepEqual(names, want) || report.Rows != 150 {
		t.Errorf("%v, %d rows", names, report.Rows)
	}
	// The reader sees two documents: what keeps the first two in front keeps its answers.
	if report.Arms[1].Verdict != eval.Inferior || report.Arms[3].ExactDiff.Losses != 0 {
		t.Errorf("order %s, pin-2 %+v", report.Arms[1].Verdict, report.Arms[3].ExactDiff)
	}
	if p, err := profile.Load(filepath.Join(dir, "positions.json")); err != nil || p.Pin != 1 { // the reader sees the first place
		t.Errorf("%+v, %v", p, err)
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "quality.svg")); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("%v", err)
	}
	if printed, err := os.ReadFile(filepath.Join(dir, "report.txt")); err != nil || string(printed) != text {
		t.Errorf("report.txt differs from what was printed (%v)", err)
	}
	total := asked.Load()
	if _, err := run(t, append(args, "--engine", url, "--out", dir)...); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a second run over the first: %v", err)
	}
	again, err := run(t, append(args, "--engine", url, "--out", dir, "--resume")...)
	if err != nil || again != text || asked.Load() != total {
		t.Errorf("resumed when all was done: %v, %d requests more", err, asked.Load()-total)
	}
	asJSON, err := run(t, append(args, "--engine", url, "--json", "--resume", "--out", dir)...)
	if err != nil || !json.Valid([]byte(asJSON)) {
		t.Errorf("--json: %v\n%s", err, asJSON)
	}
}

func readReport(t *testing.T, dir string) *eval.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r eval.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestEvalCutOff: an engine that gives up ends the run with an error; with --resume another one does the rest.
func TestEvalCutOff(t *testing.T) {
	dir := t.TempDir()
	args := []string{"eval", "--generate", "40", "--arms", "order", "--out", dir, "--model", "m"}
	mux := http.NewServeMux() // the same address for both, since the engine's name is part of what a file is of
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	var behind atomic.Pointer[string]
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, *behind.Load()+r.URL.Path, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
	first, _ := fakeReader(t, 30)
	behind.Store(&first)
	if _, err := run(t, append(args, "--engine", front.URL)...); err == nil || !strings.Contains(err.Error(), "row \"r") {
		t.Fatalf("the engine gave up: %v", err)
	}
	second, asked := fakeReader(t, 0)
	behind.Store(&second)
	if _, err := run(t, append(args, "--engine", front.URL, "--resume")...); err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if _, err := run(t, "eval", "--generate", "40", "--arms", "order", "--out", whole, "--model", "m", "--engine", front.URL); err != nil {
		t.Fatal(err)
	}
	a, errA := os.ReadFile(filepath.Join(dir, "report.json"))
	b, errB := os.ReadFile(filepath.Join(whole, "report.json"))
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("the report of a run that was cut off differs (%v, %v)", errA, errB)
	}
	if n := asked.Load(); n >= 2*80-20 {
		t.Errorf("%d requests: nothing was kept", n)
	}
}

func TestEvalProfile(t *testing.T) {
	url, _ := fakeReader(t, 0)
	mine := write(t, "mine.json", `{"pin":2,"hint":"none","dedup":"off"}`)
	dir := t.TempDir()
	if _, err := run(t, "eval", "--generate", "600", "--engine", url, "--parallel", "4", "--arms", "order", "--profile", mine, "--out",
		dir); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(dir, "profile.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if p, err := profile.Read(file); err != nil || p != (profile.Profile{Name: "safe", Pin: 2, Hint: "none", Dedup: "off"}) {
		t.Errorf("%+v (%v)", p, err)
	}
}

func TestEvalErrors(t *testing.T) {
	url, _ := fakeReader(t, 0)
	dir := t.TempDir()
	bad := write(t, "rows.jsonl", "{}\n")
	profile := write(t, "p.json", `{"hint":"loud"}`)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--rows, --generate", []string{}},
		{"not together with --generate", []string{"--rows", bad, "--generate", "1"}},
		{`line 1: id ""`, []string{"--rows", bad, "--engine", url}},
		{"--rows: ", []string{"--rows", bad + "x", "--engine", url}},
		{"--engine sim", []string{"--generate", "1"}},
		{"--k 1", []string{"--generate", "1", "--k", "1", "--engine", url}},
		{"--gold \"best\"", []string{"--generate", "1", "--gold", "best", "--engine", url}},
		{"--arms \"none\"", []string{"--generate", "1", "--arms", "none", "--engine", url}},
		{`hint "loud"`, []string{"--generate", "1", "--profile", profile, "--engine", url}},
		{"--margin 0", []string{"--generate", "1", "--margin", "0"}},
		{"--nll-margin 0", []string{"--generate", "1", "--nll-margin", "0"}},
		{"--resamples 99", []string{"--generate", "1", "--resamples", "99"}},
		{"--parallel 0", []string{"--generate", "1", "--parallel", "0"}},
		{"--permute -1", []string{"--generate", "1", "--permute", "-1"}},
		{"--positions 1", []string{"--generate", "1", "--positions", "1"}},
		{"--generate -1", []string{"--generate", "-1"}},
		{"--resume", []string{"--generate", "1", "--resume"}},
		{"--max-tokens 0", []string{"--generate", "1", "--engine", url, "--max-tokens", "0"}},
		{"at least one other", []string{"--generate", "1", "--engine", url, "--arms", "plain", "--out", filepath.Join(dir, "out")}},
	} {
		if _, err := run(t, append([]string{"eval"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !errors.Is(err, os.ErrNotExist) {
		t.Error("flags that are refused leave a file that the next run stumbles over")
	}
	if _, err := run(t, "eval", "generate", "--rows", "0"); err == nil || !strings.Contains(err.Error(), "--rows 0") {
		t.Errorf("%v", err)
	}
	if _, err := run(t, "eval", "generate", "--rows", "1", "--task", "sums"); err == nil || !strings.Contains(err.Error(), `--task "sums"`) {
		t.Errorf("%v", err)
	}
	joined, err := run(t, "eval", "generate", "--rows", "2", "--task", "connectivity", "--connectivity", "3", "--block-tokens", "128")
	if rows, e := eval.ReadRows(strings.NewReader(joined)); err != nil || e != nil || len(rows) != 2 || len(rows[1].Blocks) != 6 ||
		len(rows[1].Blocks[0].Text) > 512 {
		t.Errorf("%v %v\n%s", err, e, joined)
	}
	one, err := run(t, "eval", "generate", "--rows", "3")
	if rows, e := eval.ReadRows(strings.NewReader(one)); err != nil || e != nil || len(rows) != 3 {
		t.Errorf("%v %v\n%s", err, e, one)
	}
}
