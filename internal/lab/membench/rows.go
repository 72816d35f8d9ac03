package membench

import (
	"errors"
	"fmt"
	"io"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
)

// row is a line of a file: the conversations of one user, and questions about them.
type row struct {
	User      string       `json:"user"`
	Sessions  []rowSession `json:"sessions"`
	Questions []rowAsk     `json:"questions"`
}

type rowSession struct {
	ID    string    `json:"id"` // for people; it may be empty
	Turns []rowTurn `json:"turns"`
}

type rowTurn struct {
	ID      string `json:"id"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
}

type rowAsk struct {
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Evidence []string `json:"evidence"`
}

// maxRow bounds a line in bytes.
const maxRow = 64 << 20

// ReadRows reads conversations as LoCoMo has them, in JSON lines, one user a line:
//
//	{"user": "ana",
//	 "sessions": [{"id": "1", "turns": [{"id": "D1:1", "speaker": "Ana", "text": "I live in Porto."}]}],
//	 "questions": [{"question": "Where does Ana live?", "answer": "Porto", "evidence": ["D1:1"]}]}
//
// The memory stores each turn in its order, and each question asked; the IDs in evidence are those of the turns that answer it.
// Speaker, answer and the session's id may be empty; nothing else, and users differ. Errors name the line and the member.
func ReadRows(r io.Reader) (*Data, error) {
	data := &Data{}
	users := map[string]int{} // → line
	err := jsonlines.Read(r, maxRow, func(number int, line []byte) error {
		var read row
		if err := strictjson.Decode(line, &read); err != nil {
			return err
		}
		c, err := read.toCase()
		if err != nil {
			return err
		}
		if first := users[c.User]; first != 0 {
			return fmt.Errorf("user %q is that of line %d", c.User, first)
		}
		users[c.User] = number
		data.Cases = append(data.Cases, c)
		return nil
	})
	if err == nil && len(data.Cases) == 0 {
		err = errors.New("no line with a user")
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (r *row) toCase() (Case, error) {
	if r.User == "" {
		return Case{}, errors.New(`user "": want a name`)
	}
	c := Case{User: r.User, Asked: true}
	texts := map[string]string{} // ID of a turn → text
	for i, session := range r.Sessions {
		for j, turn := range session.Turns {
			at := fmt.Sprintf("sessions[%d].turns[%d]", i, j)
			if turn.ID == "" {
				return Case{}, fmt.Errorf(`%s.id "": want a name`, at)
			}
			if turn.Text == "" {
				return Case{}, fmt.Errorf(`%s.text "": want a text`, at)
			}
			if _, twice := texts[turn.ID]; twice {
				return Case{}, fmt.Errorf("%s.id %q is that of another turn", at, turn.ID)
			}
			texts[turn.ID] = turn.Text
			c.Statements = append(c.Statements, Said{Speaker: turn.Speaker, Text: turn.Text})
		}
	}
	if len(c.Statements) == 0 {
		return Case{}, errors.New("sessions: want at least one turn")
	}
	if len(r.Questions) == 0 {
		return Case{}, errors.New("questions []: want at least one")
	}
	for i, ask := range r.Questions {
		at := fmt.Sprintf("questions[%d]", i)
		if ask.Question == "" {
			return Case{}, fmt.Errorf(`%s.question "": want a text`, at)
		}
		if len(ask.Evidence) == 0 {
			return Case{}, fmt.Errorf("%s.evidence []: want at least one", at)
		}
		q := Question{Text: ask.Question}
		for j, id := range ask.Evidence {
			text, ok := texts[id]
			if !ok {
				return Case{}, fmt.Errorf("%s.evidence[%d] %q: no turn has this id", at, j, id)
			}
			q.Needs = append(q.Needs, text)
		}
		c.First = append(c.First, q)
		c.Turns = append(c.Turns, Turn{Session: i, Text: ask.Question, Answer: ask.Answer, Needs: q.Needs, Value: ask.Answer})
	}
	c.Then = c.First
	return c, nil
}
