package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// Request is one recorded retrieval: what was asked and which blocks came back.
type Request struct {
	ID      string   `json:"id"`
	Session string   `json:"session"` // the ID when the trace names none
	Turn    int      `json:"turn"`    // rises within a session, from 1 as a rule
	Query   string   `json:"query"`
	Docs    []string `json:"docs"`             // block IDs, best first, no repeats
	Answer  string   `json:"answer,omitempty"` // "" when none was recorded
}

// Plain returns the plan that sends the documents in retrieval order.
func (r Request) Plain() Plan {
	return Plan{ID: r.ID, Session: r.Session, Turn: r.Turn, Docs: slices.Clone(r.Docs)}
}

// First returns the request with its first k documents; all of them if k is 0.
func (r Request) First(k int) Request {
	if k > 0 && k < len(r.Docs) {
		r.Docs = r.Docs[:k]
	}
	return r
}

// Reader reads a trace one request at a time. It remembers the IDs and sessions it has seen, to check them.
type Reader struct {
	lines  *lines
	blocks *Blocks
	lineOf map[string]int // request ID -> line
	turns  map[string]int // session -> its last turn
}

// NewReader returns a Reader of r. The name stands for the file in errors. With blocks given, a request that names
// an unknown one is an error; nil skips that check.
func NewReader(r io.Reader, name string, blocks *Blocks) *Reader {
	return newReader(newLines(r, name), blocks)
}

// Open returns a Reader of a file, which the caller must Close; path may end in ".gz" or be "-". See [NewReader] for
// blocks.
func Open(path string, blocks *Blocks) (*Reader, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	return newReader(l, blocks), nil
}

// Load reads a whole trace with its blocks.
func Load(tracePath, blocksPath string) ([]Request, *Blocks, error) {
	blocks, err := LoadBlocks(blocksPath)
	if err != nil {
		return nil, nil, err
	}
	r, err := Open(tracePath, blocks)
	if err != nil {
		return nil, nil, err
	}
	var all []Request
	for q, err := range r.All() {
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		all = append(all, q)
	}
	return all, blocks, r.Close()
}

func newReader(l *lines, blocks *Blocks) *Reader {
	return &Reader{lines: l, blocks: blocks, lineOf: map[string]int{}, turns: map[string]int{}}
}

// Next returns the next request, io.EOF after the last one. It reads one line and no further: on a pipe, what
// comes after that line need not exist yet. After an error Next keeps returning it.
func (r *Reader) Next() (Request, error) {
	q, err := nextObject(r.lines, parseRequest)
	if err != nil {
		return Request{}, err
	}
	if err := r.check(q); err != nil {
		return Request{}, r.lines.fail(fmt.Errorf("request %q: %w", q.ID, err))
	}
	return q, nil
}

// All walks the requests that are left; it ends after the first error.
func (r *Reader) All() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for {
			q, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(q, err) || err != nil {
				return
			}
		}
	}
}

// Close closes the file that [Open] opened; for other Readers and for standard input it only ends the reading.
func (r *Reader) Close() error { return r.lines.close() }

func (r *Reader) check(q Request) error {
	if n, ok := r.lineOf[q.ID]; ok {
		return fmt.Errorf("occurs twice, first on line %d", n)
	}
	r.lineOf[q.ID] = r.lines.n
	if last, ok := r.turns[q.Session]; ok && q.Turn <= last {
		return fmt.Errorf("turn %d of session %q comes after turn %d", q.Turn, q.Session, last)
	}
	r.turns[q.Session] = q.Turn
	if r.blocks == nil {
		return nil
	}
	for _, id := range q.Docs {
		if _, ok := r.blocks.at[id]; !ok {
			return fmt.Errorf("names unknown block %q", id)
		}
	}
	return nil
}

func parseRequest(m *members) Request {
	q := Request{ID: m.name("request")}
	q.Session, q.Turn, q.Query, q.Docs = m.session(q.ID), m.turn(1), m.text("query"), m.ids("docs", true)
	if id, twice := repeated(q.Docs); twice {
		m.fail("document %q occurs twice", id)
	}
	q.Answer = m.optionalText("answer")
	return q
}
