package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds on what is read of a model's answer.
const (
	maxAnswer   = 1 << 20
	maxAttempts = 1000 // places at which JSON may begin and does not
)

// item is an entry of a model's list, in any of the forms that models use.
type item struct {
	ID         json.RawMessage `json:"id"`
	Event      string          `json:"event"`
	Text       string          `json:"text"`
	Memory     string          `json:"memory"`
	Fact       string          `json:"fact"`
	Attributed string          `json:"attributed_to"`
	Entities   json.RawMessage `json:"entities"`
}

func (it *item) text() string { return cmp.Or(it.Text, it.Memory, it.Fact) }

// entities reads a list of names; what is no text in it is passed over, and anything else counts as none.
func (it *item) entities() (names []string) {
	var list []json.RawMessage
	if json.Unmarshal(it.Entities, &list) != nil {
		return nil
	}
	for _, raw := range list {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// number reads the ID, "3" or 3, if it is below n.
func (it *item) number(n int) (int, bool) {
	i, err := strconv.Atoi(strings.Trim(strings.TrimSpace(string(it.ID)), `"[] `))
	return i, err == nil && i >= 0 && i < n
}

// readItems finds the list under the key in a model's answer, whatever stands around it: a fence, an explanation, a
// draft in front of the final answer (the last list counts). Entries that cannot be read are left out. The error, if there
// is no list, wraps ErrExtraction and does not repeat the answer, which may be private.
func readItems(answer, key string) ([]item, error) {
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("%w: an answer of %d bytes", ErrExtraction, len(answer))
	}
	list, ok := lastList(answer, key)
	if !ok {
		return nil, fmt.Errorf("%w: no JSON with a list %q in an answer of %d bytes", ErrExtraction, key, len(answer))
	}
	items := make([]item, 0, len(list))
	for _, raw := range list {
		var it item
		if json.Unmarshal(raw, &it.Text) == nil { // a plain string
			items = append(items, it)
			continue
		}
		it = item{}
		if json.Unmarshal(raw, &it) == nil {
			items = append(items, it)
		}
	}
	return items, nil
}

// lastList returns the list of the last JSON value that has one under the key, or else a list that is the first thing in the
// answer that could be JSON, if it holds nothing but texts and objects: "[1]" in a sentence is not an answer.
func lastList(answer, key string) (list []json.RawMessage, ok bool) {
	var bare []json.RawMessage
	haveBare, first := false, true
	for at, attempts := 0, 0; attempts < maxAttempts; {
		i := strings.IndexAny(answer[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		value, length, isJSON := valueAt(answer[at:])
		if !isJSON {
			at++
			attempts++
			first = false
			continue
		}
		at += length
		if found, has := listOf(value, key); has {
			list, ok = found, true
		} else if first && json.Unmarshal(value, &bare) == nil {
			haveBare = !slices.ContainsFunc(bare, func(raw json.RawMessage) bool { return raw[0] != '"' && raw[0] != '{' })
		}
		first = false
	}
	if ok {
		return list, true
	}
	return bare, haveBare
}

// valueAt reads the JSON value with which text begins.
func valueAt(text string) (value json.RawMessage, length int, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&value) != nil {
		return nil, 0, false
	}
	return value, int(d.InputOffset()), true
}

// listOf returns the list under the key of an object; a single entry counts as a list of one, and null as an empty one.
func listOf(value json.RawMessage, key string) ([]json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return nil, false
	}
	raw, ok := object[key]
	if !ok {
		return nil, false
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return list, true
	}
	return []json.RawMessage{raw}, true
}
