package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// chatServer answers chats with a text, and counts them.
func chatServer(t *testing.T, answer string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal(answer)
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":`+string(text)+`},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":10}}}`+"\n\n"+
			"data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

const someOrders = "number,city\n1,Lima\n2,Oslo\n3,Lima\n3,Lima\n"

func TestBatchRun(t *testing.T) {
	url, asked := chatServer(t, "Yes, \"it\" is.")
	source := write(t, "orders.csv", someOrders)
	out := filepath.Join(t.TempDir(), "out.csv")
	args := []string{
		"batch", "run", source, "--engine", url, "--prompt", "Is it near the sea?\n{{*}}", "--out", out,
		"--input-price", "10", "--output-price", "20", "--prefill-speed", "1",
	}
	shown, _, err := runBoth(t, append(args, "--dry-run")...)
	if err != nil || asked.Load() != 0 {
		t.Fatalf("%v, %d requests were sent", err, asked.Load())
	}
	for _, want := range []string{
		"4 rows, 3 requests in 1 subtree", "prompt tokens to compute: about ", "time for prompts: about ", "cost: at most ",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in the report:\n%s", want, shown)
		}
	}
	if _, err := os.Stat(out + ".jobs.db"); err == nil {
		t.Error("--dry-run has made a database")
	}
	shown, problems, err := runBoth(t, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, problems)
	}
	if want := out + ": 4 rows, 50.0% of 60 prompt tokens from the cache, cost 0.00036\n"; shown != want {
		t.Errorf("%q, want %q", shown, want)
	}
	got, err := os.ReadFile(out)
	const yes = `"Yes, ""it"" is."` + "\n"
	want := "number,city,answer\n1,Lima," + yes + "2,Oslo," + yes + "3,Lima," + yes + "3,Lima," + yes
	if err != nil || string(got) != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	if asked.Load() != 3 {
		t.Errorf("%d requests, want 3", asked.Load())
	}
	priced := write(t, "serve.yaml", "currency: EUR\nprices:\n  - {model: \"small-*\", input: 10, output: 20}\n")
	shown, _, err = runBoth(t, "batch", "run", source, "--engine", url, "--config", priced, "--model", "small-1", "--dry-run", "--prompt", "x")
	if err != nil || !strings.Contains(shown, " EUR, with answers of 256 tokens") {
		t.Errorf("%v: %s", err, shown)
	}
	if _, _, err := runBoth(t, args...); err == nil || !strings.Contains(err.Error(), "out.csv") {
		t.Errorf("an output that is there is replaced: %v", err)
	}
	other := append(slices.Clone(args), "--overwrite", "--prompt", "Is it far?")
	if _, _, err := runBoth(t, other...); err == nil || !strings.Contains(err.Error(), "another prompt; choose another --name") {
		t.Errorf("another prompt: %v", err)
	}
	if _, _, err := runBoth(t, append(args, "--overwrite")...); err != nil || asked.Load() != 3 {
		t.Errorf("%v, %d requests: the answers were there already", err, asked.Load())
	}
}

func TestAnswersBeside(t *testing.T) {
	for source, want := range map[string]string{
		"a.csv": "a.answers.csv", "x/a.b.csv.gz": "x/a.b.answers.csv.gz", ".csv": "", "x/.csv": "", "a": "", "-": "", "postgres://a.b/c.d": "",
	} {
		if got := answersBeside(source, ""); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// Whatever is wrong with the table, the prompt or the flags is reported with its place and value before a request is sent.
func TestBatchRunRefuses(t *testing.T) {
	testkit.NotUnderRace(t)
	url, asked := chatServer(t, "no")
	line := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"x"}]}}` + "\n"
	t.Chdir(t.TempDir()) // the relative names below
	huge := "number,text\n1," + strings.Repeat("x", 100<<20) + "\n"
	good := write(t, "good.csv", someOrders)
	priced := write(t, "serve.yaml", "currency: EUR\nprices:\n  - {model: \"small-*\", input: 10}\n")
	for name, c := range map[string]struct {
		file, text string
		args       []string
		want       []string
	}{
		"quotes":           {"a.csv", "a,b\n1,2\n\"x\"y,3\n", nil, []string{"line 3", `"a"`, "y,3"}},
		"open quote":       {"a.csv", "a,b\n1,2\n3,\"x\n4,5\n", nil, []string{"line 3"}},
		"ragged":           {"a.csv", "a,b\n1,2\n1,2,3\n", nil, []string{"line 3", "3"}},
		"UTF-8":            {"a.csv", "a,b\n1,2\n3,x\xffy\n", nil, []string{"line 3", `"b"`, `\xff`}},
		"huge cell":        {"a.csv", huge, nil, []string{"line 2", "1,xxx", "MaxRow"}},
		"custom_id":        {"a.jsonl", line + line, nil, []string{"line 2", `"a"`, "line 1"}},
		"tools":            {"a.jsonl", strings.Replace(line, `"model"`, `"tools":[{}],"model"`, 1), []string{"--engine", "sim"}, []string{"line 1", "tools"}},
		"parquet":          {"a.parquet", "PAR1 and then nothing", nil, []string{"a.parquet"}},
		"no prompt":        {"a.csv", someOrders, nil, []string{"--prompt is required"}},
		"no rows":          {"a.csv", "a,b\n", nil, []string{"no rows"}},
		"template":         {"a.csv", someOrders, []string{"--prompt", "Where?\n{{town}}"}, []string{"line 2", `"town"`, `"city"`}},
		"unclosed":         {"a.csv", someOrders, []string{"--prompt", "Where? {{city"}, []string{"line 1", "{{city"}},
		"blocks":           {"a.csv", someOrders, []string{"--blocks", "found"}, []string{`"found"`}},
		"answer":           {"a.csv", someOrders, []string{"--answer", "city"}, []string{"city"}},
		"order":            {"a.csv", someOrders, []string{"--columns", "random"}, []string{`"random"`, "per-row"}},
		"schema":           {"a.csv", someOrders, []string{"--schema", good}, []string{"--schema"}},
		"money":            {"a.csv", someOrders, []string{"--max-cost", "1"}, []string{"--max-cost 1", "--input-price"}},
		"no price":         {"a.csv", someOrders, []string{"--config", priced, "--model", "big"}, []string{"--config", `"big"`}},
		"deadline":         {"a.csv", someOrders, []string{"--deadline", "soon"}, []string{`--deadline "soon"`}},
		"tokens":           {"a.csv", someOrders, []string{"--max-tokens", "0"}, []string{"--max-tokens 0"}},
		"engine":           {"a.csv", someOrders, []string{"--engine", "http://127.0.0.1:1"}, []string{"http://127.0.0.1:1", "unreachable"}},
		"workers":          {"a.csv", someOrders, []string{"--no-work"}, []string{"--no-work", "PostgreSQL"}},
		"a table as table": {"a.csv", someOrders, []string{"--out", good}, []string{"good.csv", "--overwrite"}},
		"left to workers":  {"a.csv", someOrders, []string{"--no-work", "--db", "postgres://h/d"}, []string{"--engine", "for the workers"}},
		"output as db":     {"a.csv", someOrders, []string{"--out", "x.csv", "--db", "./x.csv"}, []string{"--db ./x.csv", "--out"}},
		"errors as db":     {"a.csv", someOrders, []string{"--errors", "x.csv", "--db", "x.csv"}, []string{"--db x.csv", "--errors"}},
		"other database":   {"a.csv", someOrders, []string{"--db", "mysql://u:p@h/d"}, []string{"--db", `"mysql://"`, "postgres://"}},
		"no folder":        {"a.csv", someOrders, []string{"--out", "none/a.csv"}, []string{"none/a.csv: open"}},
		"speed":            {"a.csv", someOrders, []string{"--prefill-speed", "-1"}, []string{"--prefill-speed -1"}},
		"temperature":      {"a.csv", someOrders, []string{"--temperature", "NaN"}, []string{"--temperature NaN"}},
		"price":            {"a.csv", someOrders, []string{"--input-price", "Inf"}, []string{"--input-price +Inf"}},
		"timeout":          {"a.csv", someOrders, []string{"--timeout", "-5s"}, []string{"--timeout -5s"}},
		"engine twice":     {"a.csv", someOrders, []string{"--engine", url + "/"}, []string{"--engine", "given twice"}},
		"lines' own":       {"a.jsonl", line, []string{"--temperature", "1"}, []string{"--temperature 1", "whole requests"}},
		"lines' own model": {"a.jsonl", line, []string{"--model", "m"}, []string{"--model m"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"batch", "run", write(t, c.file, c.text), "--engine", url}, c.args...)
			if !strings.HasSuffix(c.file, ".jsonl") && name != "no prompt" && name != "template" && name != "unclosed" {
				args = append(args, "--prompt", "Where is it?")
			}
			_, _, err := runBoth(t, args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests were sent", asked.Load())
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("a database or an output is left: %v, %v", left, err)
	}
}

// A run without a single answer is a failure for scripts, too.
func TestBatchRunWithoutAnyAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no such option"}}`, http.StatusBadRequest)
	}))
	defer server.Close()
	out := filepath.Join(t.TempDir(), "out.csv")
	shown, _, err := runBoth(t, "batch", "run", write(t, "orders.csv", someOrders), "--engine", server.URL, "--out", out, "--prompt", "Where?")
	why := strings.TrimSuffix(out, ".csv") + ".errors.csv"
	if err == nil || err.Error() != "no row has an answer; "+why+" says why" || !strings.Contains(shown, "4 rows without an answer") {
		t.Errorf("%v: %s", err, shown)
	}
	if text, err := os.ReadFile(why); err != nil || strings.Count(string(text), "no such option") != 4 {
		t.Errorf("%v: %s", err, text)
	}
}

// A job that was cancelled is over; the error says how to begin again.
func TestBatchRunOfACancelledJob(t *testing.T) {
	url, _ := chatServer(t, "yes")
	var locked atomic.Bool
	locked.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if locked.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, url+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	out := filepath.Join(t.TempDir(), "out.csv")
	args := []string{"batch", "run", write(t, "orders.csv", someOrders), "--engine", server.URL, "--out", out, "--prompt", "Where?"}
	if _, _, err := runBoth(t, args...); err == nil || !strings.Contains(err.Error(), "paused after 0 of 4 rows") {
		t.Fatal(err)
	}
	if shown, _, err := runBoth(t, "batch", "cancel", "out.csv", "--db", out+".jobs.db"); err != nil || shown != "job out.csv: cancelled\n" {
		t.Fatalf("%q, %v", shown, err)
	}
	_, _, err := runBoth(t, args...)
	const want = `job "out.csv" is cancelled (cancelled by command): its state does not allow this; --retry goes on, ` +
		`another --name asks all rows again, batch write writes the answers so far`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	locked.Store(false)
	if shown, _, err := runBoth(t, append(args, "--retry")...); err != nil || !strings.Contains(shown, "4 rows") {
		t.Errorf("%v: %s", err, shown)
	}
}

// Rows that failed are asked again with --retry, and no others; batch write writes what is there at any time.
func TestBatchRetryAndWrite(t *testing.T) {
	var asked atomic.Int64
	var refuse atomic.Bool
	refuse.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "Lima") {
			asked.Add(1)
		}
		if refuse.Load() && strings.Contains(string(body), "Oslo") {
			http.Error(w, `{"error":{"message":"not that town"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	dir := t.TempDir()
	out, source := filepath.Join(dir, "out.csv"), write(t, "orders.csv", someOrders)
	args := []string{
		"batch", "run", source, "--engine", server.URL, "--out", out, "--prompt", "Is it near the sea?\n{{*}}",
		"--api-key", "k", "--overwrite",
	}
	if shown, _, err := runBoth(t, args...); err != nil || !strings.Contains(shown, "1 row without an answer") || asked.Load() != 2 {
		t.Fatalf("%v, %d requests: %s", err, asked.Load(), shown)
	}
	refuse.Store(false)
	if shown, _, err := runBoth(t, args...); err != nil || !strings.Contains(shown, "1 row without an answer") || asked.Load() != 2 {
		t.Errorf("without --retry: %v, %d requests: %s", err, asked.Load(), shown)
	}
	if shown, _, err := runBoth(t, append(args, "--retry")...); err != nil || strings.Contains(shown, "without") || asked.Load() != 2 {
		t.Errorf("with --retry: %v, %d requests: %s", err, asked.Load(), shown)
	}
	some, db := filepath.Join(dir, "some.csv"), out+".jobs.db"
	for _, c := range []struct {
		args []string
		want string // of the output, or of the error
	}{
		{[]string{"out.csv", source, "--db", db, "--out", some}, some + ": 4 rows\n"},
		{[]string{"out.csv", source, "--db", db, "--out", some}, "--overwrite replaces it"},
		{[]string{"out.csv", out, "--db", db, "--out", some, "--overwrite", "--answer", "again"}, "was made of another table"},
		{[]string{"out.csv", source, "--db", db, "--out", db}, "it is the file of --out"},
		{[]string{"out.csv", source, "--db", db}, "--out is required"},
		{[]string{"out.csv", source, "--out", some}, "--db is required"},
		{[]string{"out.csv", "-", "--db", db, "--out", some}, "--format is required"},
		{[]string{"absent", source, "--db", db, "--out", some}, `"absent": no such batch job`},
	} {
		shown, _, err := runBoth(t, append([]string{"batch", "write"}, c.args...)...)
		if err != nil {
			shown = err.Error()
		}
		if !strings.Contains(shown, c.want) {
			t.Errorf("%v: %q is not in %q", c.args, c.want, shown)
		}
	}
	first, err := os.ReadFile(out)
	second, err2 := os.ReadFile(some)
	if err != nil || err2 != nil || string(first) != string(second) {
		t.Errorf("%q and %q, %v, %v", first, second, err, err2)
	}
}

func TestBatchJobCommands(t *testing.T) {
	url, _ := chatServer(t, "yes")
	out := filepath.Join(t.TempDir(), "out.csv")
	db := out + ".jobs.db"
	source := write(t, "orders.csv", someOrders)
	if _, _, err := runBoth(t, "batch", "run", source, "--engine", url, "--out", out, "--name", "orders", "--prompt", "Where?"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // of the output, or of the error
	}{
		{[]string{"status", "--db", db}, "orders  finished  4     4         0       50.0%"},
		{[]string{"status", "orders", "--db", db}, "3 answered, 0 failed, of 3; 3 sent"},
		{[]string{"status", "1", "--db", db}, "4 answered, 0 failed, of 4"},
		{[]string{"status", "absent", "--db", db}, `batch job "absent": no such batch job`},
		{[]string{"status"}, "--db is required"},
		{[]string{"status", "--db", db + "x"}, "no such file"},
		{[]string{"status", "--db", "host=h password=hunter2"}, "--db: no such file"},
		{[]string{"run", source, "--db", "host=h password=hunter2", "--out", out + "2.csv", "--engine", url, "--prompt", "Where?"}, "or postgres://"},
		{[]string{"run", source, "--db", "host=h password=hunter2", "--no-work", "--prompt", "Where?"}, "--no-work: workers"},
		{[]string{"pause", "orders", "--db", db}, `batch job "orders" is finished: its state does not allow this`},
		{[]string{"cancel", "orders", "--db", db}, "does not allow this"},
		{[]string{"worker", "--engine", url}, "--db is required"},
	} {
		shown, _, err := runBoth(t, append([]string{"batch"}, c.args...)...)
		if err != nil {
			shown = err.Error()
		}
		if !strings.Contains(shown, c.want) || strings.Contains(shown, "hunter2") {
			t.Errorf("%v: %q is not in %q", c.args, c.want, shown)
		}
	}
}
