package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// object is one line's members, not yet decoded. A map is used rather than a struct because encoding/json
// would match struct fields in any letter case, and because IDs may be strings or numbers.
type object map[string]json.RawMessage

func parseObject(line []byte) (object, error) {
	var o object
	err := json.Unmarshal(line, &o)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("broken JSON at byte %d: %w", syntax.Offset, err)
	}
	if err != nil || o == nil { // a valid value, but not an object
		return nil, fmt.Errorf("want a JSON object, found %s", kind(line))
	}
	return o, nil
}

// kind names the type of a JSON value for messages.
func kind(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}

// id returns a member that must be there.
func (o object) id(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", fmt.Errorf("%q is missing", name)
	}
	return parseID(name, raw)
}

// text returns a string member that must be there.
func (o object) text(name string) (string, error) {
	if _, ok := o[name]; !ok {
		return "", fmt.Errorf("%q is missing", name)
	}
	if kind(o[name]) == "null" {
		return "", fmt.Errorf("%q is null, want a string", name)
	}
	return o.optionalText(name)
}

// optionalText returns a string member, "" when it is missing or null.
func (o object) optionalText(name string) (string, error) {
	raw, ok := o[name]
	if !ok || kind(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%q is %s, want a string", name, kind(raw))
	}
	return s, nil
}

// ids returns a list of IDs; a missing or null list is an error if required, else empty.
func (o object) ids(name string, required bool) ([]string, error) {
	raw, ok := o[name]
	if !required && (!ok || kind(raw) == "null") {
		return nil, nil
	}
	if !ok {
		return nil, fmt.Errorf("%q is missing", name)
	}
	var list []json.RawMessage
	if kind(raw) != "a list" || json.Unmarshal(raw, &list) != nil {
		return nil, fmt.Errorf("%q is %s, want a list of IDs", name, kind(raw))
	}
	out := make([]string, len(list))
	for i, raw := range list {
		id, err := parseID(fmt.Sprintf("%s[%d]", name, i), raw)
		if err != nil {
			return nil, err
		}
		out[i] = id
	}
	return out, nil
}

// turn returns the member "turn", missing if there is none: an integer, possibly written as a string.
func (o object) turn(missing int) (int, error) {
	raw, ok := o["turn"]
	if !ok {
		return missing, nil
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil {
		return 0, fmt.Errorf("\"turn\" is %.40s, want an integer", raw)
	}
	return n, nil
}

func parseID(name string, raw json.RawMessage) (string, error) {
	switch kind(raw) {
	case "a string":
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case "a number":
		return pythonStr(string(raw)), nil
	}
	return "", fmt.Errorf("%q is %s, want a string or a number", name, kind(raw))
}

// pythonStr returns a JSON number as str(json.loads(number)) prints it in Python: 7 is the same ID as "7", and 7.0
// is another one.
func pythonStr(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		if number == "-0" {
			return "0"
		}
		return number // integers have no size limit there
	}
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case err != nil:
		return number // not reached: number was checked as JSON
	}
	// repr: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// repeated returns the first ID that occurs twice in the lists taken together.
func repeated(lists ...[]string) (string, bool) {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	seen := make(map[string]struct{}, n)
	for _, l := range lists {
		for _, id := range l {
			if _, ok := seen[id]; ok {
				return id, true
			}
			seen[id] = struct{}{}
		}
	}
	return "", false
}
