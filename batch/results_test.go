package batch

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/engines"
)

func TestErrorsBeside(t *testing.T) {
	for out, want := range map[string]string{
		"a.csv":             "a.errors.csv",
		"a.b.csv":           "a.b.errors.csv",
		"a.csv.gz":          "a.errors.csv.gz",
		"a.b.JSONL.GZ":      "a.b.errors.JSONL.GZ",
		"a":                 "a.errors",
		"a.gz":              "a.errors.gz",
		".csv":              ".csv.errors",
		".hidden.csv":       ".hidden.errors.csv",
		"a.parquet":         "a.errors.csv",
		"a.PQ":              "a.errors.csv",
		"x.y/a":             "x.y/a.errors",
		"/x.y/a.answers.md": "/x.y/a.answers.errors.md",
	} {
		if got := errorsBeside(filepath.FromSlash(out)); got != filepath.FromSlash(want) {
			t.Errorf("%s: %s, want %s", out, got, want)
		}
	}
}

// someAnswers are answers of rows in their order.
func someAnswers(answers ...queue.RowAnswer) iter.Seq2[queue.RowAnswer, error] {
	return func(yield func(queue.RowAnswer, error) bool) {
		for _, a := range answers {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// writeAnswers writes the answers of a job, as Jobs.Write does.
func writeAnswers(t *testing.T, in *table.Table, o WriteOptions, state State, answers iter.Seq2[queue.RowAnswer, error]) (Written, error) {
	t.Helper()
	o = o.withDefaults()
	if err := o.check(in); err != nil {
		return Written{}, err
	}
	x := &results{options: o, table: in, job: Job{ID: 7, Name: "orders", State: state}}
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	var err error
	if x.out, err = o.open(in); err != nil {
		return Written{}, err
	}
	if err := x.all(t.Context(), answers); err != nil {
		return Written{}, err
	}
	return x.commit()
}

// column reads a column of a file; NULL is "NULL".
func column(t *testing.T, path, name string) (cells []string) {
	t.Helper()
	in, err := table.Open(t.Context(), path, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	at, err := in.Column(name)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range in.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		cell := row.Cells[at]
		if row.Null(at) {
			cell = "NULL"
		}
		cells = append(cells, cell)
	}
	return cells
}

// Each format holds any answer: what cannot be in a text is replaced, and the rest stands there as it came. A row without an answer has
// NULL, or an empty cell, and a line in the error file.
func TestResultsHoldAnyAnswer(t *testing.T) {
	type record struct {
		City string `parquet:"city,optional"`
	}
	dir := t.TempDir()
	pq := filepath.Join(dir, "in.parquet")
	if err := parquet.WriteFile(pq, []record{{"Lima"}, {"Oslo"}, {"Quito"}}); err != nil {
		t.Fatal(err)
	}
	jsonl, csv := "{\"city\":\"Lima\"}\n{\"city\":\"Oslo\"}\n{\"city\":\"Quito\"}\n", "city\nLima\nOslo\nQuito\n"
	for _, c := range []struct {
		format         table.Format
		in, out, error string
		null           string
	}{
		{table.CSV, csv, "a.csv", "a.errors.csv", ""},
		{table.CSV, csv, "b.c.tsv.gz", "b.c.errors.tsv.gz", ""},
		{table.CSV, csv, "c.jsonl", "c.errors.jsonl", "NULL"},
		{table.JSONL, jsonl, "d.jsonl", "d.errors.jsonl", "NULL"},
		{table.JSONL, jsonl, "e.csv", "e.errors.csv", ""},
		{table.Parquet, "", "f.parquet", "f.errors.csv", "NULL"},
	} {
		t.Run(c.out, func(t *testing.T) {
			var in *table.Table
			if c.format == table.Parquet {
				var err error
				if in, err = table.Open(t.Context(), pq, table.Options{}); err != nil {
					t.Fatal(err)
				}
				defer in.Close()
			} else {
				in = tableOf(t, c.format, c.in)
			}
			text := "a\xff\xfeb\x00c\r\nd,\t\"e\" <f>\u2028 é\\"
			failure := queue.Failure{Code: "refused", Message: "no\xff\x00\n", Status: 400}
			w, err := writeAnswers(t, in, WriteOptions{Out: filepath.Join(dir, c.out)}, Finished, someAnswers(
				queue.RowAnswer{Row: 0, Answer: queue.Answer{Text: text}},
				queue.RowAnswer{Row: 1, Answer: queue.Answer{Attempts: 4, Failure: failure}},
				queue.RowAnswer{Row: 2},
			))
			if err != nil || w != (Written{3, 1, filepath.Join(dir, c.error)}) {
				t.Fatalf("%+v, %v", w, err)
			}
			want := []string{"a\uFFFDb\uFFFDc\r\nd,\t\"e\" <f>\u2028 é\\", c.null, ""}
			if got := column(t, filepath.Join(dir, c.out), "answer"); !reflect.DeepEqual(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := column(t, filepath.Join(dir, c.out), "city"); !reflect.DeepEqual(got, []string{"Lima", "Oslo", "Quito"}) {
				t.Errorf("cities %q", got)
			}
			for name, cell := range map[string]string{
				"row": "2", "code": "refused", "message": "no\uFFFD\uFFFD\n", "status": "400", "attempts": "4",
			} {
				if got := column(t, w.Errors, name); len(got) != 1 || got[0] != cell {
					t.Errorf("%s: %q, want %q", name, got, cell)
				}
			}
		})
	}
}

const batchLines = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"q"}]}}
{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"r"}]}}
{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"s"}]}}
`

func TestResultsInOpenAIsForm(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	at := time.Unix(1700000000, 0)
	w, err := writeAnswers(t, tableOf(t, table.OpenAI, batchLines), WriteOptions{Out: out}, Finished, someAnswers(
		queue.RowAnswer{Row: 0, Answer: queue.Answer{
			Text: "a\xffb\x00 <&>", Finish: "length", At: at, Replica: "http://one",
			Usage: engines.Usage{PromptTokens: 5, OutputTokens: 2, CachedTokens: 4, CachedKnown: true},
		}},
		queue.RowAnswer{Row: 1, Answer: queue.Answer{Failure: queue.Failure{Message: "no\x00 way"}}},
		queue.RowAnswer{Row: 2, Answer: queue.Answer{Text: "t", At: at, Replica: "http://one"}},
	))
	if err != nil || w.Rows != 3 || w.Failed != 1 {
		t.Fatalf("%+v, %v", w, err)
	}
	for path, want := range map[string]string{
		out: `{"id":"batch_req_7_0","custom_id":"a","response":{"status_code":200,"request_id":"batch_req_7_0","body":{"id":"batch_req_7_0",` +
			`"object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":"a\ufffdb\u0000 <&>"},"finish_reason":"length"}],"usage":{"completion_tokens":2,"prompt_tokens":5,` +
			`"prompt_tokens_details":{"cached_tokens":4},"total_tokens":7}}},"error":null}` + "\n" +
			`{"id":"batch_req_7_2","custom_id":"c","response":{"status_code":200,"request_id":"batch_req_7_2","body":{"id":"batch_req_7_2",` +
			`"object":"chat.completion","created":1700000000,"model":"http://one","choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":"t"},"finish_reason":"stop"}],"usage":{"completion_tokens":0,"prompt_tokens":0,"total_tokens":0}}},"error":null}` + "\n",
		w.Errors: `{"id":"batch_req_7_1","custom_id":"b","response":null,"error":{"code":"failed","message":"no` + "\uFFFD" + ` way"}}` + "\n",
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", filepath.Base(path), err, got, want)
		}
	}
}

// A job that was cancelled has answers for some rows, and every other row is in the error file.
func TestResultsOfACancelledJob(t *testing.T) {
	const cities = "city\nLima\nOslo\nQuito\nRome\n"
	dir := t.TempDir()
	some := someAnswers(queue.RowAnswer{Row: 1, Answer: queue.Answer{Text: "yes"}}, queue.RowAnswer{Row: 3, Answer: queue.Answer{Text: "no"}})
	w, err := writeAnswers(t, csvTable(t, cities), WriteOptions{Out: filepath.Join(dir, "a.csv"), Column: "reply"}, Cancelled, some)
	if err != nil || w.Rows != 4 || w.Failed != 2 {
		t.Fatalf("%+v, %v", w, err)
	}
	if got := column(t, filepath.Join(dir, "a.csv"), "reply"); !reflect.DeepEqual(got, []string{"", "yes", "", "no"}) {
		t.Errorf("%q", got)
	}
	if got := column(t, w.Errors, "place"); !reflect.DeepEqual(got, []string{"line 2", "line 4"}) {
		t.Errorf("%q", got)
	}
	if got := column(t, w.Errors, "message")[0]; got != "the job is cancelled, and the row has no answer" {
		t.Error(got)
	}
	if got := column(t, w.Errors, "code")[0]; got != "unanswered" {
		t.Error(got)
	}
	out := filepath.Join(dir, "out.jsonl")
	w, err = writeAnswers(t, tableOf(t, table.OpenAI, batchLines), WriteOptions{Out: out}, Cancelled, someAnswers())
	if err != nil || w.Rows != 3 || w.Failed != 3 {
		t.Fatalf("%+v, %v", w, err)
	}
	if got, err := os.ReadFile(out); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	if got := column(t, w.Errors, "custom_id"); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

// Answers that do not belong to the table, and answers that cannot be read, are errors, and leave no file.
func TestResultsThatDoNotFit(t *testing.T) {
	lost := errors.New("the database is away")
	for name, answers := range map[string]iter.Seq2[queue.RowAnswer, error]{
		"a row too many": someAnswers(queue.RowAnswer{Row: 0}, queue.RowAnswer{Row: 1}, queue.RowAnswer{Row: 2}),
		"a row twice":    someAnswers(queue.RowAnswer{Row: 0}, queue.RowAnswer{Row: 0}),
		"lost at once":   func(yield func(queue.RowAnswer, error) bool) { yield(queue.RowAnswer{}, lost) },
		"lost at last": func(yield func(queue.RowAnswer, error) bool) {
			_ = yield(queue.RowAnswer{Row: 0}, nil) && yield(queue.RowAnswer{Row: 1}, nil) && yield(queue.RowAnswer{}, lost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := writeAnswers(t, csvTable(t, "city\nLima\nOslo\n"), WriteOptions{Out: filepath.Join(dir, "a.csv")}, Finished, answers)
			if err == nil || strings.HasPrefix(name, "lost") != errors.Is(err, lost) {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// What cannot be written is found before anything is sent.
func TestWriteOptionsCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"there.csv", "old.errors.csv"} {
		if err := os.WriteFile(at(name), []byte("kept\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(at("there.csv"), at("link.csv")); err != nil {
		t.Fatal(err)
	}
	in := csvTable(t, "city\nLima\n")
	for name, c := range map[string]struct {
		o    WriteOptions
		want string
	}{
		"one file for both":    {WriteOptions{Out: at("a.csv"), Errors: dir + "/./a.csv"}, "it is the file for the answers"},
		"the same by a link":   {WriteOptions{Out: at("there.csv"), Errors: at("link.csv"), Overwrite: true}, "it is the file for the answers"},
		"out is there":         {WriteOptions{Out: at("there.csv")}, "there.csv"},
		"errors are there":     {WriteOptions{Out: at("old.csv")}, "old.errors.csv"},
		"a column of the name": {WriteOptions{Out: at("a.csv"), Column: "city"}, "choose another name for the answer"},
		"no such format":       {WriteOptions{Out: at("a.xlsx")}, "ending"},
		"no ending":            {WriteOptions{Out: at("a")}, "ending"},
		"errors in Parquet":    {WriteOptions{Out: at("a.csv"), Errors: at("e.parquet")}, "an error file is CSV, TSV or JSON lines"},
		"no such folder":       {WriteOptions{Out: at("none/a.csv")}, "none"},
	} {
		if err := c.o.withDefaults().check(in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("%v", left)
	}
	o := WriteOptions{Out: at("old.csv"), Overwrite: true}
	w, err := writeAnswers(t, in, o, Finished, someAnswers(queue.RowAnswer{Row: 0, Answer: queue.Answer{Text: "yes"}}))
	if err != nil || w != (Written{Rows: 1}) {
		t.Errorf("%+v, %v", w, err)
	}
	if got := column(t, at("old.errors.csv"), "row"); len(got) > 0 {
		t.Errorf("errors of an earlier time: %q", got)
	}
}
