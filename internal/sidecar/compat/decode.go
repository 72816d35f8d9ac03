package compat

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
)

const (
	// maxProblems is how many problems of a request are reported.
	maxProblems = 100
	// maxEcho is the size of an input up to which a problem repeats it.
	maxEcho = 16 << 10
)

// decoder reads a request's fields. What is wrong with them is collected, in the order in which fields are asked for,
// and returned by done.
type decoder struct {
	body     value
	problems []problem
	refused  error // nil: nothing is too large
}

var unreadable = fail(http.StatusBadRequest, "There was an error parsing the body")

// decode reads the body. A client of the reference may name any content type, so it is not looked at.
func decode(r *http.Request) (*decoder, error) {
	raw, err := reqbody.ReadAll(r)
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large || r.Context().Err() != nil {
			return nil, err
		}
		if encoding, ok := errors.AsType[*reqbody.EncodingError](err); ok {
			return nil, fail(http.StatusUnsupportedMediaType, encoding.Error())
		}
		if errors.Is(err, reqbody.ErrGzip) {
			return nil, fail(http.StatusBadRequest, err.Error())
		}
		return nil, unreadable
	}
	if !utf8.Valid(raw) {
		return nil, unreadable
	}
	if len(raw) == 0 {
		return nil, invalid(missing([]any{"body"}, value{raw: []byte("null")}))
	}
	v, err := parse(raw)
	if bad, ok := errors.AsType[*syntaxError](err); ok {
		return nil, invalid(problem{
			Type: "json_invalid", Loc: []any{"body", bad.at}, Msg: "JSON decode error", Input: json.RawMessage("{}"),
			Ctx: map[string]any{"error": bad.msg},
		})
	}
	switch v.kind {
	case kindObject:
		return &decoder{body: v}, nil
	case kindNull:
		return nil, invalid(missing([]any{"body"}, v))
	}
	return nil, invalid(problem{
		Type: "model_attributes_type", Loc: []any{"body"}, Input: echo(v),
		Msg: "Input should be a valid dictionary or object to extract fields from",
	})
}

// done returns what is wrong with the request, nil if nothing is.
func (d *decoder) done() error {
	if len(d.problems) == 0 || d.refused != nil {
		return d.refused
	}
	return invalid(d.problems...)
}

// wrong collects a problem of an input at loc. The pointer is good until the next one.
func (d *decoder) wrong(kind, msg string, input value, loc ...any) *problem {
	return d.add(problem{Type: kind, Loc: append([]any{"body"}, loc...), Msg: msg, Input: echo(input)})
}

func (d *decoder) add(p problem) *problem {
	if len(d.problems) == maxProblems {
		return &p
	}
	d.problems = append(d.problems, p)
	return &d.problems[len(d.problems)-1]
}

// echo is the input as a problem repeats it, null if it is long.
func echo(v value) json.RawMessage {
	if len(v.raw) > maxEcho {
		return json.RawMessage("null")
	}
	return v.raw
}

func missing(loc []any, input value) problem {
	return problem{Type: "missing", Loc: loc, Msg: "Field required", Input: echo(input)}
}

// required returns a field that must be there.
func (d *decoder) required(name string) (value, bool) {
	v, ok := d.body.member(name)
	if !ok {
		d.add(missing([]any{"body", name}, d.body))
	}
	return v, ok
}

// list returns the items of a list at loc.
func (d *decoder) list(v value, loc ...any) []value {
	if v.kind != kindList {
		d.wrong("list_type", "Input should be a valid list", v, loc...)
		return nil
	}
	return v.items
}

// requiredList returns the items of a field that must be there and be a list.
func (d *decoder) requiredList(name string) []value {
	v, ok := d.required(name)
	if !ok {
		return nil
	}
	return d.list(v, name)
}

// number reads a number of at least least and at most most.
func (d *decoder) number(name string, usual, least, most float64) float64 {
	v, ok := d.body.member(name)
	if !ok {
		return usual
	}
	var x float64
	var err error
	switch v.kind {
	case kindInt, kindFloat:
		x, _ = strconv.ParseFloat(string(v.raw), 64) // infinite if it is too large
	case kindBool:
		x = float64(len("false") - len(v.raw)) // true is 1, as in Python
	case kindText:
		x, err = strconv.ParseFloat(strings.TrimSpace(v.text()), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			d.wrong("float_parsing", "Input should be a valid number, unable to parse string as a number", v, name)
			return usual
		}
	default:
		d.wrong("float_type", "Input should be a valid number", v, name)
		return usual
	}
	bound := func(kind, msg, limit string, at float64) {
		d.wrong(kind, msg+strconv.FormatFloat(at, 'f', -1, 64), v, name).Ctx = map[string]any{limit: at}
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		d.wrong("finite_number", "Input should be a finite number", v, name)
	case x < least:
		bound("greater_than_equal", "Input should be greater than or equal to ", "ge", least)
	case x > most:
		bound("less_than_equal", "Input should be less than or equal to ", "le", most)
	default:
		return x
	}
	return usual
}

func (d *decoder) boolean(name string, usual bool) bool {
	v, ok := d.body.member(name)
	if !ok {
		return usual
	}
	word := string(v.raw)
	switch v.kind {
	case kindBool:
		return word == "true"
	case kindText:
		word = strings.ToLower(v.text())
	case kindInt, kindFloat:
		if x, err := strconv.ParseFloat(word, 64); err == nil {
			word = strconv.FormatFloat(x, 'f', -1, 64)
		}
	default:
		d.wrong("bool_type", "Input should be a valid boolean", v, name)
		return usual
	}
	switch word {
	case "1", "true", "t", "yes", "y", "on":
		return true
	case "0", "false", "f", "no", "n", "off", "-0":
		return false
	}
	d.wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input", v, name)
	return usual
}

// maxTokens bounds counts of tokens, so that sums of them do not overflow.
const maxTokens = 1 << 40

func (d *decoder) tokens(name string) int {
	v, ok := d.body.member(name)
	if !ok {
		return 0
	}
	return int(min(max(d.integer(v, name), -maxTokens), maxTokens))
}

// integer reads an integer at loc.
func (d *decoder) integer(v value, loc ...any) int64 {
	p := wholeNumber(v)
	if p.msg != "" {
		d.wrong(p.kind, p.msg, v, loc...)
	}
	return p.n
}

type whole struct {
	n         int64
	kind, msg string // what is wrong
}

// wholeNumber reads what the reference takes for an integer: also true, "12" and 12.0.
func wholeNumber(v value) whole {
	word := string(v.raw)
	switch v.kind {
	case kindBool:
		return whole{n: int64(len("false") - len(v.raw))}
	case kindFloat:
		x, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil:
			return whole{kind: "finite_number", msg: "Input should be a finite number"}
		case x != math.Trunc(x):
			return whole{kind: "int_from_float", msg: "Input should be a valid integer, got a number with a fractional part"}
		case math.Abs(x) >= 1<<53:
			return whole{kind: "int_parsing_size", msg: "Unable to parse input string as an integer, exceeded maximum size"}
		}
		return whole{n: int64(x)}
	case kindText:
		word = strings.TrimSpace(v.text())
		if i := strings.IndexByte(word, '.'); i > 0 && strings.Trim(word[i+1:], "0") == "" {
			word = word[:i]
		}
	case kindInt:
	default:
		return whole{kind: "int_type", msg: "Input should be a valid integer"}
	}
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return whole{kind: "int_parsing_size", msg: "Unable to parse input string as an integer, exceeded maximum size"}
	case err != nil:
		return whole{kind: "int_parsing", msg: "Input should be a valid integer, unable to parse string as an integer"}
	}
	return whole{n: n}
}

// text reads a string; null is "" where it is allowed.
func (d *decoder) text(name, usual string, nullable bool) string {
	v, ok := d.body.member(name)
	if !ok || nullable && v.kind == kindNull {
		return usual
	}
	return d.str(v, name)
}

func (d *decoder) str(v value, loc ...any) string {
	if v.kind != kindText {
		d.wrong("string_type", "Input should be a valid string", v, loc...)
		return ""
	}
	return v.text()
}

// oneOf reads a string that must be one of the names.
func (d *decoder) oneOf(name, usual string, names []string) string {
	s := d.text(name, usual, false)
	if v, ok := d.body.member(name); ok && v.kind == kindText && !slices.Contains(names, s) {
		quoted := "'" + strings.Join(names[:len(names)-1], "', '") + "' or '" + names[len(names)-1] + "'"
		d.wrong("literal_error", "Input should be "+quoted, v, name).Ctx = map[string]any{"expected": quoted}
	}
	return s
}

// parents reads a list of strings or nulls, which are "".
func (d *decoder) parents(items []value, name string) []string {
	out := make([]string, len(items))
	for i, v := range items {
		if v.kind != kindNull {
			out[i] = d.str(v, name, i)
		}
	}
	return out
}
