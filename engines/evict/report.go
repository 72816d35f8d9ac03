package evict

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Report is what one body says, with the engine's names of requests.
type Report struct {
	Gone   []string // nothing of them is cached
	Shrunk []Prefix
}

// Prefix says how much of a request is still cached.
type Prefix struct {
	ID     string
	Tokens int // from the beginning of its prompt
}

// Parse reads a body. Members that it does not know are ignored. An error wraps [ErrBody] or is a [Problems].
func Parse(body []byte) (Report, error) {
	if !utf8.Valid(body) {
		return Report{}, ErrBody
	}
	members, err := parseObject(body)
	if err != nil {
		return Report{}, err
	}
	d := decoder{}
	ids, hasIDs := members["request_ids"]
	prefixes, hasPrefixes := members["prefixes"]
	if !hasIDs && !hasPrefixes {
		d.add("missing", "Field required", body, "request_ids")
	}
	var r Report
	if hasIDs {
		r.Gone = d.strings(ids, "request_ids")
	}
	if hasPrefixes {
		r.Shrunk = d.prefixes(prefixes)
	}
	if len(d.problems) > 0 {
		return Report{}, d.problems
	}
	return r, nil
}

// ErrBody: the body is not UTF-8.
var ErrBody = errors.New("the body is not UTF-8")

// Problem is a part of a body that is not as it should be, in the form of the published server's validator.
type Problem struct {
	Type  string          `json:"type"`
	Loc   []any           `json:"loc"` // names and positions from "body" on
	Msg   string          `json:"msg"`
	Input json.RawMessage `json:"input"` // null if it is long
}

// Problems are what is wrong with a body, at least one.
type Problems []Problem

// Error returns the first problem and the number of others.
func (p Problems) Error() string {
	first, _ := json.Marshal(p[0].Loc)
	text := "bad report: " + p[0].Msg + " at " + string(first)
	if len(p) > 1 {
		text += " and " + strconv.Itoa(len(p)-1) + " more"
	}
	return text
}

// Bounds of what is reported of a bad body.
const (
	maxProblems = 100
	maxEcho     = 1 << 10
)

func problem(kind, msg string, input []byte, loc ...any) Problem {
	if len(input) > maxEcho || !json.Valid(input) {
		input = []byte("null")
	}
	return Problem{Type: kind, Loc: append([]any{"body"}, loc...), Msg: msg, Input: json.RawMessage(input)}
}

func parseObject(body []byte) (map[string]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || string(body) == "null" {
		return nil, Problems{problem("missing", "Field required", nil)}
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(body, &members)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, Problems{problem("json_invalid", "JSON decode error", nil, bad.Offset)}
	}
	if err != nil {
		return nil, Problems{problem("model_attributes_type", notObject, body)}
	}
	return members, nil
}

const notObject = "Input should be a valid dictionary or object to extract fields from"

// decoder collects what is wrong.
type decoder struct{ problems Problems }

func (d *decoder) add(kind, msg string, input []byte, loc ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, problem(kind, msg, input, loc...))
	}
}

func (d *decoder) list(raw json.RawMessage, name string) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		d.add("list_type", "Input should be a valid list", raw, name)
		return nil
	}
	return items
}

func (d *decoder) text(raw json.RawMessage, loc ...any) string {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		d.add("string_type", "Input should be a valid string", raw, loc...)
		return ""
	}
	return *s
}

func (d *decoder) strings(raw json.RawMessage, name string) []string {
	items := d.list(raw, name)
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = d.text(item, name, i)
	}
	return out
}

func (d *decoder) prefixes(raw json.RawMessage) []Prefix {
	const name = "prefixes"
	items := d.list(raw, name)
	out := make([]Prefix, len(items))
	for i, item := range items {
		var members map[string]json.RawMessage
		if json.Unmarshal(item, &members) != nil || members == nil {
			d.add("model_attributes_type", notObject, item, name, i)
			continue
		}
		if id, ok := members["request_id"]; ok {
			out[i].ID = d.text(id, name, i, "request_id")
		} else {
			d.add("missing", "Field required", item, name, i, "request_id")
		}
		if n, ok := members["resident_tokens"]; ok {
			out[i].Tokens = d.tokens(n, name, i, "resident_tokens")
		} else {
			d.add("missing", "Field required", item, name, i, "resident_tokens")
		}
	}
	return out
}

func (d *decoder) tokens(raw json.RawMessage, loc ...any) int {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.add("int_parsing_size", "Unable to parse input as an integer, exceeded maximum size", raw, loc...)
	case err != nil:
		d.add("int_type", "Input should be a valid integer", raw, loc...)
	case n < 0:
		d.add("greater_than_equal", "Input should be greater than or equal to 0", raw, loc...)
	}
	return int(min(max(n, 0), maxTokens))
}

// maxTokens is more than any prompt has, and far from overflowing.
const maxTokens = 1 << 40
