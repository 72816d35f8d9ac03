package batch_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// written is a file in a test's folder.
func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path string) *table.Table {
	t.Helper()
	tab, err := table.Open(t.Context(), path, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tab.Close() })
	return tab
}

func jobsAt(t testing.TB, source string) *batch.Jobs {
	t.Helper()
	jobs, err := batch.Open(t.Context(), source, batch.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close() })
	return jobs
}

// fakeEngine answers with the prompt, between brackets, and counts the prompts.
type fakeEngine struct {
	engines.Engine

	mu     sync.Mutex
	asked  map[string]int
	before func(n int, prompt string) error // called with the number of earlier calls
}

func newFake(before func(n int, prompt string) error) *fakeEngine {
	f := &fakeEngine{asked: map[string]int{}, before: before}
	f.Engine = batch.Func("fake", func(_ context.Context, prompt string) (string, error) {
		f.mu.Lock()
		n := 0
		for _, k := range f.asked {
			n += k
		}
		f.asked[prompt]++
		f.mu.Unlock()
		if f.before != nil {
			if err := f.before(n, prompt); err != nil {
				return "", err
			}
		}
		return "[" + prompt + "]", nil
	})
	return f
}

func (f *fakeEngine) replicas() batch.WorkOptions {
	return batch.WorkOptions{Replicas: []batch.Replica{{Name: "fake", Engine: f}}, Concurrency: 4}
}

func records(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// orders is a table of n rows, some of them equal but for their number.
func orders(n int) string {
	var b strings.Builder
	b.WriteString("number,city,item\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%s,%s\n", i, []string{"Lima", "Oslo", "Quito"}[i%3], []string{"chair", "table"}[i%2])
	}
	return b.String()
}

func TestRunAnswersEachRowOnce(t *testing.T) {
	path := written(t, "orders.csv", orders(300))
	out := filepath.Join(t.TempDir(), "out.csv")
	fake := newFake(nil)
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	task := batch.Task{Prompt: batch.Prompt{Text: "Which one?\n{{city}}\n{{item}}\nAnswer:"}}
	var report batch.Report
	job, w, err := jobs.Run(t.Context(), "orders", opened(t, path), task, batch.RunOptions{
		Work: fake.replicas(), Write: batch.WriteOptions{Out: out},
		Add: batch.AddOptions{Report: func(r batch.Report) error {
			report = r
			return nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.Rows != 300 || w.Failed != 0 || w.Errors != "" || job.RowsDone != 300 || job.Done != 6 || report.Requests != 6 {
		t.Errorf("%+v, %d rows by %d requests, %d planned", w, job.RowsDone, job.Done, report.Requests)
	}
	if len(fake.asked) != 6 {
		t.Errorf("%d prompts were sent, want 6: %v", len(fake.asked), fake.asked)
	}
	got := records(t, out)
	for i, r := range got[1:] {
		if r[0] != fmt.Sprint(i) || !strings.HasPrefix(r[3], "[Which one?\n") || !strings.Contains(r[3], r[1]+"\n") ||
			!strings.Contains(r[3], r[2]+"\n") || !strings.HasSuffix(r[3], "\nAnswer:]") {
			t.Fatalf("row %d: %q", i, r)
		}
	}
	if len(got) != 301 || got[0][3] != "answer" {
		t.Errorf("%d records, header %q", len(got), got[0])
	}
}

// A run that ends early goes on where it was, and asks for no answer again that it has.
func TestRunGoesOn(t *testing.T) {
	path := written(t, "orders.csv", orders(200))
	out, db := filepath.Join(t.TempDir(), "out.csv"), filepath.Join(t.TempDir(), "jobs.db")
	jobs := jobsAt(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	var again atomic.Bool
	fake := newFake(func(n int, _ string) error {
		if n == 77 {
			cancel()
		}
		if n >= 77 && !again.Load() { // four at a time: it is half a minute until all is sent
			time.Sleep(time.Second)
		}
		return nil
	})
	o := batch.RunOptions{Work: fake.replicas(), Write: batch.WriteOptions{Out: out}}
	if _, _, err := jobs.Run(ctx, "orders", opened(t, path), batch.Task{}, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want that it was interrupted", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is an output before all rows have an answer")
	}
	if n := len(fake.asked); n < 78 || n == 200 {
		t.Fatalf("%d requests before the interrupt", n)
	}
	again.Store(true)
	jobs = jobsAt(t, db)
	if _, w, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, o); err != nil || w.Rows != 200 {
		t.Fatalf("%+v, %v", w, err)
	}
	for prompt, n := range fake.asked {
		if n != 1 {
			t.Errorf("%d times: %q", n, prompt)
		}
	}
	if len(records(t, out)) != 201 {
		t.Errorf("%d records", len(records(t, out)))
	}
}

func TestRunWritesFailedRowsWithTheirReasons(t *testing.T) {
	path := written(t, "orders.csv", orders(60))
	out := filepath.Join(t.TempDir(), "out.csv")
	fake := newFake(func(_ int, prompt string) error {
		if strings.Contains(prompt, "number: 7\n") {
			return fmt.Errorf("%w: too hot", engines.ErrRefused)
		}
		return nil
	})
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	_, w, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, batch.RunOptions{
		Work: fake.replicas(), Write: batch.WriteOptions{Out: out},
	})
	if err != nil || w.Rows != 60 || w.Failed != 1 || filepath.Base(w.Errors) != "out.errors.csv" {
		t.Fatalf("%+v, %v", w, err)
	}
	failed := records(t, w.Errors)
	if len(failed) != 2 || failed[1][0] != "8" || failed[1][1] != "line 9" || failed[1][3] == "" ||
		!strings.Contains(failed[1][4], "too hot") {
		t.Errorf("%q", failed)
	}
	if got := records(t, out); len(got) != 61 || got[8][3] != "" || got[9][3] == "" {
		t.Errorf("%q", got[8:10])
	}
}

// An engine that refuses all requests alike pauses the job: no row is marked, and the same run goes on when the cause is gone.
func TestRunPausesWhenAllIsRefused(t *testing.T) {
	path := written(t, "orders.csv", orders(80))
	out := filepath.Join(t.TempDir(), "out.csv")
	denied := true
	fake := newFake(func(int, string) error {
		if denied {
			return fmt.Errorf("%w: status 401: no such key", engines.ErrRefused)
		}
		return nil
	})
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	o := batch.RunOptions{Work: fake.replicas(), Write: batch.WriteOptions{Out: out}}
	job, _, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, o)
	if !errors.Is(err, batch.ErrPaused) || !strings.Contains(err.Error(), "no such key") || job.RowsFailed != 0 {
		t.Fatalf("%v, %d rows failed", err, job.RowsFailed)
	}
	denied = false
	if _, w, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, o); err != nil || w.Rows != 80 || w.Failed != 0 {
		t.Fatalf("%+v, %v", w, err)
	}
}

// A bound of money pauses the job; a higher one lets it go on.
func TestRunKeepsToItsMoney(t *testing.T) {
	path := written(t, "orders.csv", orders(400))
	out := filepath.Join(t.TempDir(), "out.csv")
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	o := batch.RunOptions{Write: batch.WriteOptions{Out: out}, Work: batch.WorkOptions{
		Replicas: []batch.Replica{newSim("sim", 0)}, Concurrency: 4, Prices: batch.Prices{Input: 100, Cached: 10, Output: 100}, MaxCost: 0.1,
	}}
	task := batch.Task{MaxTokens: 5}
	job, _, err := jobs.Run(t.Context(), "orders", opened(t, path), task, o)
	spent := func() float64 { return o.Work.Prices.Cost(job.PromptTokens, job.CachedTokens, job.OutputTokens) }
	if !errors.Is(err, batch.ErrPaused) || spent() > 0.1 || job.RowsDone == 0 {
		t.Fatalf("%v, %g spent on %d rows", err, spent(), job.RowsDone)
	}
	o.Work.MaxCost = 10
	if job, _, err = jobs.Run(t.Context(), "orders", opened(t, path), task, o); err != nil || job.RowsDone != 400 || spent() <= 0.1 {
		t.Errorf("%v, %g spent on %d rows", err, spent(), job.RowsDone)
	}
}

// Requests that an engine never answers fail in the end, although they cannot be distinguished from an ill engine at first. An engine that
// answers nothing is waited for.
func TestRunEndsAlthoughSomeRequestsAreNeverAnswered(t *testing.T) {
	path := written(t, "orders.csv", orders(80))
	out := filepath.Join(t.TempDir(), "out.csv")
	fake := newFake(func(_ int, prompt string) error {
		if strings.Contains(prompt, "city: Oslo\n") && strings.Contains(prompt, "item: chair\n") {
			return errors.New("out of memory")
		}
		return nil
	})
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	o := batch.RunOptions{Work: fake.replicas(), Write: batch.WriteOptions{Out: out}}
	_, w, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, o)
	if err != nil || w.Rows != 80 || w.Failed != 13 {
		t.Fatalf("%+v, %v; want 13 failed rows", w, err)
	}
	for _, f := range records(t, w.Errors)[1:] {
		if f[3] != "attempts" || !strings.Contains(f[4], "out of memory") {
			t.Errorf("%q", f)
		}
	}
}

// The lines of an OpenAI batch file are sent as they are; answers and failures are in OpenAI's form and in the order of the file.
func TestRunOpenAIBatchFile(t *testing.T) {
	var in strings.Builder
	for i := range 20 {
		fmt.Fprintf(&in, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":7,"messages":[`+
			`{"role":"system","content":"s%d"},{"role":"user","content":"q%d"}]}}`+"\n", i, i%2, i)
	}
	path := written(t, "in.jsonl", in.String())
	out := filepath.Join(t.TempDir(), "out.jsonl")
	fake := newFake(func(_ int, prompt string) error {
		if prompt == "q5" {
			return fmt.Errorf("%w: no", engines.ErrRefused)
		}
		return nil
	})
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	_, w, err := jobs.Run(t.Context(), "in", opened(t, path), batch.Task{}, batch.RunOptions{
		Work: fake.replicas(), Write: batch.WriteOptions{Out: out},
	})
	if err != nil || w.Failed != 1 {
		t.Fatalf("%+v, %v", w, err)
	}
	type line struct {
		CustomID string `json:"custom_id"`
		Response struct {
			Status int `json:"status_code"`
			Body   struct {
				Choices []struct{ Message struct{ Content string } }
			}
		}
		Error struct{ Code, Message string }
	}
	var got []string
	for _, file := range []string{out, w.Errors} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for one := range strings.Lines(string(text)) {
			var l line
			if err := json.Unmarshal([]byte(one), &l); err != nil {
				t.Fatal(err)
			}
			what := l.Error.Message
			if l.Response.Status == 200 {
				what = l.Response.Body.Choices[0].Message.Content
			}
			got = append(got, l.CustomID+" "+what)
		}
	}
	if len(got) != 20 || got[0] != "r0 [q0]" || got[5] != "r6 [q6]" || !strings.HasPrefix(got[19], "r5 ") {
		t.Errorf("%q", got)
	}
}

// A line that asks for more than a text, here two answers with a tool, is sent without streaming, and its choices are in the output as they
// came. An engine that gives a text only fails it, or it is refused before.
func TestRunOpenAIBatchFileWithTools(t *testing.T) {
	const (
		choices = `[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":` +
			`{"name":"f","arguments":"{\"a\": \"<\\u0000\"}"}}]},"finish_reason":"tool_calls"},{"index":1,"message":{"content":"b"}}]`
		messages = `"messages":[{"role":"user","content":"a"}]`
	)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var body map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if len(body["tools"]) == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"plain"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		if string(body["stream"]) != "false" || len(body["stream_options"]) > 0 || string(body["n"]) != "2" {
			t.Errorf("it was sent %s", body)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":`+choices+`,"usage":{"prompt_tokens":5,"completion_tokens":7}}`)
	}))
	defer server.Close()
	line := func(id, more string) string {
		return `{"custom_id":"` + id + `","method":"POST","url":"/v1/chat/completions","body":{` + messages + more + `}}` + "\n"
	}
	path := written(t, "in.jsonl", line("tools", `,"n":2,"stream":false,"tools":[{"type":"function","function":{"name":"f"}}]`)+line("text", ""))
	engine, err := openai.New(openai.Config{BaseURL: server.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	run := func(name string, o batch.WorkOptions) (string, batch.Written) {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		_, w, err := jobs.Run(t.Context(), name, opened(t, path), batch.Task{}, batch.RunOptions{Work: o, Write: batch.WriteOptions{Out: out}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), w
	}
	text, w := run("http", batch.WorkOptions{Replicas: []batch.Replica{{Name: "http", Engine: engine}}})
	if w.Failed != 0 || asked.Load() != 2 || !strings.Contains(text, `"choices":`+choices) || !strings.Contains(text, `"content":"plain"`) {
		t.Errorf("%+v, %d requests:\n%s", w, asked.Load(), text)
	}
	if text, w = run("text", newFake(nil).replicas()); w.Failed != 1 || strings.Contains(text, "tools") || !strings.Contains(text, `"content":"[a]"`) {
		t.Errorf("%+v:\n%s", w, text)
	}
	_, err = batch.Preview(t.Context(), opened(t, path), batch.Task{}, batch.AddOptions{TextOnly: true})
	if want := "line 1: body.n: 2 is not possible: the engine gives the text of one answer only"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The rows that a pause is reported with include those that were in flight when it came.
func TestRunCountsWhatWasInFlight(t *testing.T) {
	path := written(t, "orders.csv", orders(60))
	jobs := jobsAt(t, filepath.Join(t.TempDir(), "jobs.db"))
	fake := newFake(func(n int, _ string) (err error) {
		if n == 0 {
			err = jobs.Pause(context.Background(), 1, "by hand")
		}
		time.Sleep(600 * time.Millisecond) // Run notices the pause meanwhile, on a busy machine that of a later row
		return err
	})
	o := batch.RunOptions{Work: fake.replicas(), Write: batch.WriteOptions{Out: filepath.Join(t.TempDir(), "out.csv")}}
	o.Work.Concurrency = 1
	job, _, err := jobs.Run(t.Context(), "orders", opened(t, path), batch.Task{}, o)
	asked := len(fake.asked)
	want := fmt.Sprintf("the job is paused after %d of 60 rows: by hand", asked)
	if !errors.Is(err, batch.ErrPaused) || err.Error() != want || job.RowsDone != asked || asked == 60 {
		t.Errorf("%v, %d rows done of %d that were asked for", err, job.RowsDone, asked)
	}
}

// A tokenizer that fails, whenever it does, leaves the estimate of both orders.
func TestReportWithoutTheTokenizer(t *testing.T) {
	testkit.NotUnderRace(t)
	tab := opened(t, written(t, "orders.csv", orders(30)))
	estimate, err := batch.Preview(t.Context(), tab, batch.Task{}, batch.AddOptions{})
	if err != nil || estimate.Planned.Prompt == 0 || estimate.Unplanned.Prompt == 0 {
		t.Fatalf("%+v, %v", estimate, err)
	}
	for _, fails := range []int32{1, 31} { // among the prompts of the plan, and among those of the rows
		var asked atomic.Int32
		report, err := batch.Preview(t.Context(), tab, batch.Task{}, batch.AddOptions{
			Tokenize: func(context.Context, []engines.Message) ([]int32, error) {
				if asked.Add(1) == fails {
					return nil, errors.New("away")
				}
				return []int32{1, 2, 3}, nil
			},
		})
		if err != nil || report != estimate {
			t.Errorf("%+v, %v, want %+v", report, err, estimate)
		}
	}
}
