package table

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Result is a line of OpenAI's batch output: an answer, or why there is none.
type Result struct {
	ID        string // of the line, such as "batch_req_1"
	CustomID  string // that of the input
	Status    int    // HTTP status of the answer; 0: there was no answer
	RequestID string // of the answer
	Body      json.RawMessage
	Code      string // why there is no answer; empty: there is one
	Message   string
}

// ResultWriter writes a file in the form of OpenAI's batch API: the output file has the answers, the error file the others, in lines of
// the same form. It is not safe for concurrent use.
type ResultWriter struct{ out *output }

// CreateResults begins a file of results. like is the input, which is not replaced; it may be nil.
func CreateResults(path string, like *Table, opts WriteOptions) (*ResultWriter, error) {
	format, packed, err := outputFormat(path, opts)
	if err == nil && format != JSONL && format != OpenAI {
		err = fmt.Errorf("%w: results of a batch are JSON lines", ErrFormat)
	}
	if err != nil {
		return nil, &Error{Source: path, Err: err}
	}
	out, err := createOutput(path, like, opts, packed)
	if err != nil {
		return nil, err
	}
	return &ResultWriter{out}, nil
}

// resultLine is the JSON of a Result.
type resultLine struct {
	ID       string          `json:"id"`
	CustomID string          `json:"custom_id"`
	Response *resultResponse `json:"response"`
	Error    *resultError    `json:"error"`
}

type resultResponse struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

type resultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Write writes a line. After an error nothing more is written.
func (w *ResultWriter) Write(r Result) error {
	if err := w.out.ready(); err != nil {
		return err
	}
	line := resultLine{ID: r.ID, CustomID: r.CustomID}
	if r.Status != 0 {
		line.Response = &resultResponse{r.Status, r.RequestID, r.Body}
	}
	if r.Code != "" {
		line.Error = &resultError{r.Code, r.Message}
	}
	if line.Response == nil && line.Error == nil {
		return w.out.fail(r.CustomID, fmt.Errorf("%w: a result without an answer and without an error", ErrInvalid))
	}
	return w.out.fail(r.CustomID, writeJSON(w.out, line))
}

// writeJSON writes a line.
func writeJSON(o *output, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := o.w.Write(b.Bytes())
	return err
}

// Commit makes the file appear under its name, once it is on the disk.
func (w *ResultWriter) Commit() error { return w.out.commit() }

// Close removes the file if it was not committed. It may always be called.
func (w *ResultWriter) Close() error { return w.out.drop() }
