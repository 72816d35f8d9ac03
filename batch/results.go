package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/batch/table"
)

// WriteOptions say where the answers of a job go.
type WriteOptions struct {
	// Out is the file for the answers, in the order of the table: its rows with a column more, or OpenAI's batch output. The format goes
	// by its name. What cannot be in a text, bytes that are no UTF-8 and NUL, is replaced by U+FFFD; in OpenAI's output a NUL stays, as an
	// escape.
	Out string
	// Errors is the file for rows without an answer and the reasons; empty: beside Out, "a.errors.csv" for "a.csv" and for "a.parquet". It
	// is only made if there are such rows. Their cell in Out is empty (NULL where the format has that); OpenAI's batch output does not
	// have them.
	Errors string
	// Column is the name of the added column; empty: "answer".
	Column string
	// Overwrite replaces files that are there. If each row has an answer, an error file that is there is replaced by one without rows. The
	// table is never replaced.
	Overwrite bool
}

// Written says what was written.
type Written struct {
	Rows, Failed int    // of all rows, those without an answer
	Errors       string // the file that says why; empty: every row has an answer
}

// errorsBeside returns the name of the error file beside an output: "a.csv" has "a.errors.csv", "a.b.csv.gz" has "a.b.errors.csv.gz". An
// error file is never Parquet: "a.parquet" has "a.errors.csv".
func errorsBeside(out string) string {
	dir, base := filepath.Split(out)
	packed := ""
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gz") {
		base, packed = strings.TrimSuffix(base, ext), ext
	}
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if stem == "" { // ".csv" is a name, without an ending
		stem, ext = base, ""
	}
	switch strings.ToLower(ext) {
	case ".parquet", ".pq":
		ext = ".csv"
	}
	return dir + stem + ".errors" + ext + packed
}

func (o WriteOptions) withDefaults() WriteOptions {
	o.Column = cmp.Or(o.Column, "answer")
	o.Errors = cmp.Or(o.Errors, errorsBeside(o.Out))
	return o
}

// Check returns an error if the answers to a table cannot be written, because of the names or what is there. It leaves nothing behind.
// [Jobs.Run] calls it before the first request is sent.
func (o WriteOptions) Check(t *table.Table) error { return o.withDefaults().check(t) }

// check finds out whether the files can be written, before the first request is sent.
func (o WriteOptions) check(t *table.Table) error {
	if same, err := samePath(o.Out, o.Errors); err != nil || same {
		return cmp.Or(err, fmt.Errorf("errors %q: it is the file for the answers", o.Errors))
	}
	out, err := o.open(t)
	if err != nil {
		return err
	}
	failures, err := o.openErrors(t)
	if err == nil {
		err = failures.Close()
	}
	return errors.Join(err, out.Close())
}

// samePath reports whether two names are those of one file, which need not be there.
func samePath(a, b string) (bool, error) {
	x, err := filepath.Abs(a)
	if err != nil {
		return false, err
	}
	y, err := filepath.Abs(b)
	if err != nil {
		return false, err
	}
	first, err := os.Stat(x)
	if err != nil {
		return x == y, nil //nolint:nilerr // a file that is not there is no other's
	}
	second, err := os.Stat(y)
	return err == nil && os.SameFile(first, second), nil
}

// rowWriter writes one of the files.
type rowWriter interface {
	Commit() error
	Close() error
}

func (o WriteOptions) table() table.WriteOptions { return table.WriteOptions{Overwrite: o.Overwrite} }

func (o WriteOptions) open(t *table.Table) (rowWriter, error) {
	if t.Format == table.OpenAI {
		return wrap(table.CreateResults(o.Out, t, o.table()))
	}
	return wrap(table.Create(o.Out, t, []string{o.Column}, o.table()))
}

func (o WriteOptions) openErrors(t *table.Table) (rowWriter, error) {
	if t.Format == table.OpenAI {
		return wrap(table.CreateResults(o.Errors, t, o.table()))
	}
	return wrap(table.CreateFailures(o.Errors, t, o.table()))
}

// wrap keeps a nil pointer from becoming an interface that is not nil.
func wrap[T rowWriter](w T, err error) (rowWriter, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Write writes the answers that a job has, for the table that it was made of. Out has every row of the table, once, and the error
// file those without an answer: rows that failed, and those that the job has not come to. Of an OpenAI batch file each
// row is in one of the two. The files appear when both are complete, that of the errors first.
func (j *Jobs) Write(ctx context.Context, job Job, t *table.Table, o WriteOptions) (w Written, err error) {
	o = o.withDefaults()
	if job.State == Loading {
		return w, fmt.Errorf("job %q is %s: %w", job.Name, job.State, ErrState)
	}
	s, err := readSpec(job.spec)
	if err != nil {
		return w, err
	}
	if summary, err := t.Check(ctx); err != nil {
		return w, err
	} else if summary.Digest != s.Table {
		return w, fmt.Errorf("job %q was made of another table, or the table has changed since", job.Name)
	}
	if err := o.check(t); err != nil {
		return w, err
	}
	x := &results{options: o, table: t, job: job}
	defer func() { err = errors.Join(err, x.close()) }()
	if x.out, err = o.open(t); err != nil {
		return w, err
	}
	if err := x.all(ctx, j.queue.Rows(ctx, job.ID)); err != nil {
		return w, err
	}
	return x.commit()
}

// results writes the files of a job.
type results struct {
	options WriteOptions
	table   *table.Table
	job     Job
	out     rowWriter
	errors  rowWriter // nil: every row has an answer so far
	rows    int
	failed  int
}

// all writes every row of the table with its answer. Answers come in the order of rows; a job that was cancelled has not all.
func (x *results) all(ctx context.Context, answers iter.Seq2[queue.RowAnswer, error]) error {
	next, stop := iter.Pull2(answers)
	defer stop()
	answer, err, more := next()
	for row, rowErr := range x.table.Rows(ctx) {
		if rowErr != nil {
			return rowErr
		}
		if err != nil {
			return err
		}
		why := fmt.Sprintf("the job is %s, and the row has no answer", x.job.State)
		a := queue.Answer{Failure: queue.Failure{Code: "unanswered", Message: why}}
		if more && answer.Row == row.Number {
			a = answer.Answer
			answer, err, more = next()
		}
		if err := x.row(row, &a); err != nil {
			return err
		}
	}
	if err == nil && more {
		err = fmt.Errorf("job %q has an answer for row %d, which the table does not have", x.job.Name, answer.Row+1)
	}
	return err
}

func (x *results) row(row *table.Row, a *queue.Answer) error {
	x.rows++
	if a.Failure != (queue.Failure{}) {
		if err := x.fail(row, a); err != nil || x.table.Format == table.OpenAI {
			return err
		}
		return x.out.(*table.Writer).Write(row, table.Cell{Null: true})
	}
	if x.table.Format != table.OpenAI {
		return x.out.(*table.Writer).Write(row, table.Text(clean(a.Text)))
	}
	choices, err := choicesOf(row.Body, a)
	if err != nil {
		return err
	}
	body, err := chatCompletion(x.id(row), cmp.Or(gjson.GetBytes(row.Body, "model").String(), a.Replica), choices, a)
	if err != nil {
		return err
	}
	return x.out.(*table.ResultWriter).Write(table.Result{ID: x.id(row), CustomID: row.ID, Status: 200, RequestID: x.id(row), Body: body})
}

// clean returns a text that every format can hold.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// id returns the name of a line of OpenAI's batch output.
func (x *results) id(row *table.Row) string {
	return fmt.Sprintf("batch_req_%d_%d", x.job.ID, row.Number)
}

// fail writes a row without an answer.
func (x *results) fail(row *table.Row, a *queue.Answer) (err error) {
	x.failed++
	if x.errors == nil {
		if x.errors, err = x.options.openErrors(x.table); err != nil {
			return err
		}
	}
	f := a.Failure
	f.Code, f.Message = cmp.Or(f.Code, "failed"), clean(f.Message)
	if x.table.Format != table.OpenAI {
		return x.errors.(*table.FailureWriter).Write(table.RowFailure{
			Row: row.Number, Place: row.Place(), ID: row.ID, Code: f.Code, Message: f.Message, Status: f.Status, Attempts: a.Attempts,
		})
	}
	return x.errors.(*table.ResultWriter).Write(table.Result{ID: x.id(row), CustomID: row.ID, Code: f.Code, Message: f.Message})
}

// commit makes the files appear: that of the errors first, so that answers are never there without it.
func (x *results) commit() (Written, error) {
	w := Written{Rows: x.rows, Failed: x.failed}
	if x.errors == nil { // one of an earlier time must not be taken for this one's
		if _, err := os.Stat(x.options.Errors); err == nil && x.options.Overwrite {
			if x.errors, err = x.options.openErrors(x.table); err != nil {
				return w, err
			}
		}
	}
	if x.errors != nil {
		if err := x.errors.Commit(); err != nil {
			return w, err
		}
		w.Errors = x.options.Errors
	}
	if x.failed == 0 {
		w.Errors = ""
	}
	return w, x.out.Commit()
}

func (x *results) close() error {
	var errs []error
	for _, w := range []rowWriter{x.out, x.errors} {
		if w != nil {
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}

// choicesOf returns the choices of an answer: those that the engine gave, if the body asks for more than a text, else one with the text.
func choicesOf(body json.RawMessage, a *queue.Answer) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	if asksMore(members) != "" {
		return json.RawMessage(strings.ToValidUTF8(a.Text, "\uFFFD")), nil
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type choice struct {
		Index   int     `json:"index"`
		Message message `json:"message"`
		Finish  string  `json:"finish_reason"`
	}
	return encoded([]choice{{0, message{"assistant", a.Text}, cmp.Or(a.Finish, "stop")}})
}

// chatCompletion returns an answer in the form of OpenAI's chat API. model is the one that was asked for.
func chatCompletion(id, model string, choices json.RawMessage, a *queue.Answer) (json.RawMessage, error) {
	usage := map[string]any{
		"prompt_tokens": a.Usage.PromptTokens, "completion_tokens": a.Usage.OutputTokens,
		"total_tokens": a.Usage.PromptTokens + a.Usage.OutputTokens,
	}
	if a.Usage.CachedKnown {
		usage["prompt_tokens_details"] = map[string]int{"cached_tokens": a.Usage.CachedTokens}
	}
	return encoded(struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created int64           `json:"created"`
		Model   string          `json:"model"`
		Choices json.RawMessage `json:"choices"`
		Usage   map[string]any  `json:"usage"`
	}{id, "chat.completion", a.At.Unix(), model, choices, usage})
}

// encoded returns a value as JSON, in which "<" stays as it is.
func encoded(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.Bytes(), err
}
