package demo

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
)

// Turn is one question of a user.
type Turn struct {
	User     string `json:"user"`
	Turn     int    `json:"turn"` // in the user's conversation, from 1
	Question string `json:"question"`
	// Answer is the known answer, such as "5 days"; empty: not known. See [Right].
	Answer string `json:"answer,omitempty"`
}

// ID names the turn in requests, tables and pictures.
func (t Turn) ID() string { return fmt.Sprintf("%s-%d", t.User, t.Turn) }

// Script is a chat of several users, in the order in which the questions are asked.
type Script []Turn

//go:embed script.jsonl
var defaultScript []byte

// DefaultScript returns the committed script about the project's documentation.
func DefaultScript() (Script, error) {
	return ReadScript(bytes.NewReader(defaultScript), "script.jsonl")
}

//go:embed library library.jsonl
var library embed.FS

// Library returns a few short documents about a library that does not exist, and questions about them with known answers, for a small
// model in this process: each asks for one fact that stands in one document, and prompts have up to 1,200 tokens, with the history.
func Library() (fs.FS, Script, error) {
	documents, err := fs.Sub(library, "library")
	if err != nil {
		return nil, nil, err
	}
	file, err := library.Open("library.jsonl")
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	script, err := ReadScript(file, "library.jsonl")
	return documents, script, err
}

// LibrarySystem is the message in front of conversations about the Library: one line, for a small model.
const LibrarySystem = "Answer the question in one short sentence, with the fact from the documents."

// LibraryBlocks is how many blocks are retrieved for each question about the Library.
const LibraryBlocks = 4

// Bounds of a script file. A line is one question; a larger one is something else.
const (
	maxScriptLine  = 64 << 10
	maxScriptTurns = 10_000
	maxUser        = 32
)

// ReadScript reads one JSON object in each line: {"user","turn","question"}, and "answer" if it is known. The turns of a user must count up
// from 1. An error names the file, the line and the member that is wrong.
func ReadScript(r io.Reader, name string) (Script, error) {
	var s Script
	last := map[string]int{}
	err := jsonlines.Read(r, maxScriptLine, func(_ int, line []byte) error {
		t, err := parseTurn(line)
		if err == nil && t.Turn != last[t.User]+1 {
			err = fmt.Errorf(`"turn" is %d, want %d: the turns of user %q must count up from 1`, t.Turn, last[t.User]+1, t.User)
		}
		if err == nil && len(s) == maxScriptTurns {
			err = fmt.Errorf("more than %d questions", maxScriptTurns)
		}
		last[t.User] = t.Turn
		s = append(s, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s, %w", name, err)
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("%s: no question in it", name)
	}
	return s, nil
}

func parseTurn(line []byte) (Turn, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return Turn{}, fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)
		}
		return Turn{}, errors.New(`want a JSON object {"user","turn","question"}`)
	}
	var t Turn
	fields := []struct {
		name, want string
		value      any
		optional   bool
	}{
		{"user", "a string", &t.User, false},
		{"turn", "a whole number", &t.Turn, false},
		{"question", "a string", &t.Question, false},
		{"answer", "a string", &t.Answer, true},
	}
	for _, f := range fields {
		raw, ok := members[f.name]
		if !ok && f.optional {
			continue
		}
		if !ok {
			return t, fmt.Errorf("%q is missing", f.name)
		}
		if err := json.Unmarshal(raw, f.value); err != nil || string(raw) == "null" {
			return t, fmt.Errorf("%q is %s, want %s", f.name, raw, f.want)
		}
		delete(members, f.name)
	}
	for name := range members {
		return t, fmt.Errorf("%q is not a member of a script's line", name)
	}
	return t, t.check()
}

// check looks at what a table and a search must be able to rely on.
func (t Turn) check() error {
	switch {
	case strings.TrimSpace(t.User) == "":
		return errors.New(`"user" is empty`)
	case len(t.User) > maxUser:
		return fmt.Errorf(`"user" is longer than %d bytes`, maxUser)
	case strings.ContainsFunc(t.User, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return fmt.Errorf(`"user" is %q, want no spaces and control characters`, t.User)
	case strings.TrimSpace(t.Question) == "":
		return errors.New(`"question" is empty`)
	case t.Answer != "" && len(words(t.Answer)) == 0:
		return fmt.Errorf(`"answer" is %q, want a word in it`, t.Answer)
	}
	return nil
}
