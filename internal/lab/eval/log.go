package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
)

// Outcome is one row with what every arm made of it.
type Outcome struct {
	Row      string `json:"row"`
	Session  string `json:"session,omitempty"`
	Turn     int    `json:"turn"`
	GoldRank int    `json:"gold_rank,omitempty"`
	// Arms are in the order of the run's.
	Arms []Answer `json:"arms"`
}

// Answer is what the model said and how likely the row's answer was to it.
type Answer struct {
	Arm string `json:"arm"`
	// Prompt is a hash of the messages. Arms with the same messages have the same answer: the model was asked once.
	Prompt string `json:"prompt"`
	Layout
	Text string `json:"text"`
	Match
	// NLL is the negative log likelihood of the row's answer, per token, in nats; nil: the scorer does not report it.
	NLL *float64 `json:"nll,omitempty"`
	// KL is the divergence from the plain arm's distribution to this one's at the answer's tokens, KL(plain ‖ arm), in nats per
	// token; nil: the scorer does not report it.
	KL *float64 `json:"kl,omitempty"`
	// PromptTokens and CachedTokens are what the engine reports, of arms about cells only; nil: it does not report the part that it found
	// in its cache.
	PromptTokens int  `json:"prompt_tokens,omitempty"`
	CachedTokens *int `json:"cached_tokens,omitempty"`
}

// Header is the first line of a file of outcomes: what the run was. A run goes on only from a file with the same header.
type Header struct {
	Format    int    `json:"ragpilot_eval"` // 1
	Scorer    string `json:"scorer"`
	Rows      int    `json:"rows"`
	RowsHash  string `json:"rows_sha256"`
	Arms      []Arm  `json:"arms"`
	System    string `json:"system"`
	MaxTokens int    `json:"max_tokens"`
	Seed      uint64 `json:"seed"`
}

// Header describes the run.
func (r *Run) Header() (Header, error) {
	sum := sha256.New()
	if err := WriteRows(sum, r.Rows); err != nil {
		return Header{}, err
	}
	return Header{1, r.Scorer.Name(), len(r.Rows), hex.EncodeToString(sum.Sum(nil)), r.Arms, r.System, r.MaxTokens, r.Seed}, nil
}

// Log is a file of outcomes: a [Header], and a line for each row. Not safe for concurrent use.
type Log struct{ file *os.File }

// CreateLog begins a file, which must not exist.
func CreateLog(path string, h Header) (*Log, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{f}
	if err := l.write(h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// ResumeLog goes on with a file and returns what it holds. A last line that was cut off is removed. An error says which member
// of the header differs, or which line is damaged or the second of its row. A file that does not exist is created.
func ResumeLog(path string, h Header) (*Log, []Outcome, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.IndexByte(data, '\n') < 0 {
		if err == nil { // not even the header was written
			if err = os.Remove(path); err != nil {
				return nil, nil, err
			}
		}
		l, err := CreateLog(path, h)
		return l, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	was, outcomes, err := ReadLog(bytes.NewReader(whole))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := was.same(h); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Truncate(int64(len(whole))); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &Log{f}, outcomes, nil
}

// Add appends an outcome.
func (l *Log) Add(o *Outcome) error { return l.write(o) }

func (l *Log) write(v any) error {
	enc := json.NewEncoder(l.file) // writes a line in one call, so that it is cut off at most at its end
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// ReadLog reads a file of outcomes whose lines are all complete.
func ReadLog(r io.Reader) (h Header, outcomes []Outcome, err error) {
	rows := map[string]int{}
	err = jsonlines.Read(r, MaxLine, func(number int, line []byte) error {
		if h.Format == 0 {
			err := strictjson.Decode(line, &h)
			if err == nil && h.Format != 1 {
				err = fmt.Errorf("ragpilot_eval %d: want 1", h.Format)
			}
			return err
		}
		var o Outcome
		if err := strictjson.Decode(line, &o); err != nil {
			return err
		}
		if first := rows[o.Row]; first > 0 {
			return fmt.Errorf("row %q: is that of line %d", o.Row, first)
		}
		if len(o.Arms) != len(h.Arms) {
			return fmt.Errorf("row %q: %d arms, want %d", o.Row, len(o.Arms), len(h.Arms))
		}
		rows[o.Row] = number
		outcomes = append(outcomes, o)
		return nil
	})
	if err == nil && h.Format == 0 {
		err = errors.New("line 1: no header")
	}
	return h, outcomes, err
}

// same names the first member in which two headers differ.
func (h Header) same(now Header) error {
	a, b := reflect.ValueOf(h), reflect.ValueOf(now)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Errorf("%s is %+v in the file, %+v now", a.Type().Field(i).Tag.Get("json"), x, y)
		}
	}
	return nil
}
