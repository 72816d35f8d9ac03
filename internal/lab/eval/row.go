package eval

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
)

// Row is one question with the blocks that a retriever found for it. Rows of one Session are the turns of a conversation,
// in the order in which they stand; rows without a Session are conversations of their own.
type Row struct {
	// ID names the row. IDs of a set of rows differ.
	ID string `json:"id"`
	// Session is the conversation that the row is a turn of; empty: of none.
	Session string `json:"session,omitempty"`
	// Blocks are what was retrieved, best first.
	Blocks []Block `json:"blocks"`
	// Question is what the model is asked.
	Question string `json:"question"`
	// Answers are all accepted; the first is the one whose likelihood is measured, and what later turns of the
	// conversation have as the answer.
	Answers []string `json:"answers"`
	// Lead is how a whole sentence that gives the answer begins, "The home port of the Swift Otter is". An answer may begin
	// with it; and likelihood is that of an answer behind it, since a model that likes to speak in sentences says little about
	// the answer in its first token. Empty: the answer stands alone.
	Lead string `json:"lead,omitempty"`
	// Gold holds the IDs of the blocks that have the answer; empty if that is not known.
	Gold []string `json:"gold,omitempty"`
}

// Block is one retrieved block.
type Block struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// GoldRank is the retriever's rank, from 1, of the first block that has the answer; 0 if the row does not name one.
func (r *Row) GoldRank() int {
	return 1 + slices.IndexFunc(r.Blocks, func(b Block) bool { return slices.Contains(r.Gold, b.ID) })
}

// check returns what is wrong with a row.
func (r *Row) check() error {
	switch {
	case r.ID == "":
		return errors.New(`id "": want a name`)
	case len(r.Blocks) == 0:
		return errors.New("blocks []: want at least one")
	case r.Question == "":
		return errors.New(`question "": want a text`)
	case len(r.Answers) == 0:
		return errors.New("answers []: want at least one")
	}
	for i, b := range r.Blocks {
		if b.ID == "" {
			return fmt.Errorf(`blocks[%d].id "": want a name`, i)
		}
		if b.Text == "" {
			return fmt.Errorf(`blocks[%d].text "": want a text`, i)
		}
		if first := slices.IndexFunc(r.Blocks, func(x Block) bool { return x.ID == b.ID }); first < i {
			return fmt.Errorf("blocks[%d].id %q: is that of blocks[%d]", i, b.ID, first)
		}
	}
	for i, a := range r.Answers {
		if Normalise(a) == "" {
			return fmt.Errorf("answers[%d] %q: nothing is left of it to compare", i, a)
		}
	}
	for i, g := range r.Gold {
		if !slices.ContainsFunc(r.Blocks, func(b Block) bool { return b.ID == g }) {
			return fmt.Errorf("gold[%d] %q: no such block", i, g)
		}
	}
	return nil
}

// MaxLine bounds a line of a file of rows, in bytes.
const MaxLine = 16 << 20

// ReadRows reads rows, one JSON object a line. Empty lines are skipped; anything else that is not a row, a member that
// rows do not have, and an ID that an earlier row had are errors that name line, field and value.
func ReadRows(r io.Reader) ([]Row, error) {
	var rows []Row
	seen := map[string]int{}
	err := jsonlines.Read(r, MaxLine, func(number int, line []byte) error {
		row, err := parseRow(line)
		if err != nil {
			return err
		}
		if first, ok := seen[row.ID]; ok {
			return fmt.Errorf("id %q: is that of line %d", row.ID, first)
		}
		seen[row.ID] = number
		rows = append(rows, row)
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = errors.New("no rows")
	}
	return rows, err
}

// parseRow reads and checks one line.
func parseRow(line []byte) (row Row, err error) {
	if !utf8.Valid(line) {
		return row, errors.New("not UTF-8")
	}
	if err := strictjson.Decode(line, &row); err != nil {
		return row, err
	}
	return row, row.check()
}

// WriteRows writes rows as [ReadRows] reads them.
func WriteRows(w io.Writer, rows []Row) error { return jsonlines.Write(w, rows) }
