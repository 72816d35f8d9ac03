// Package jsonorder puts the members of JSON objects into a fixed order. It moves bytes and changes none: numbers, strings, escapes and
// the white space between two members stay as they are.
//
//	sorted, err := jsonorder.Schema(raw) // a JSON Schema, also the names in its required lists
//	sorted, err := jsonorder.Sort(raw)   // any value: objects only, all arrays stay
//	sorted, err := jsonorder.Object(raw, []string{"name", "description"}, nil)
//
// Names are compared as they are read, so "\u0061" is "a". An object that has a name twice is an error: readers differ in which of the two
// they take, and another order would change that. All of it takes time linear in the text, but for the sorting of each object.
package jsonorder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is returned for what is not one JSON value.
var ErrInvalid = errors.New("not one JSON value")

// DuplicateError is returned for an object that has a name more than once.
type DuplicateError struct{ Name string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("member %q stands in one object twice", e.Name)
}

// Sort returns a JSON value with the members of all its objects sorted by name.
func Sort(raw []byte) ([]byte, error) { return sorted(raw, false) }

// Schema does what [Sort] does, and also sorts the names in the required lists of a JSON Schema. What stands in a schema as data, such as
// the values of const, default, enum and examples, keeps the order of its lists, whatever its members are called.
func Schema(raw []byte) ([]byte, error) { return sorted(raw, true) }

func sorted(raw []byte, schema bool) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, ErrInvalid
	}
	r := reader{raw: raw}
	root, err := r.value()
	if err != nil {
		return nil, err
	}
	if schema {
		root.sortSchema(raw)
	} else {
		root.sort()
	}
	out := append(make([]byte, 0, len(raw)), raw[:root.from]...)
	return append(root.write(out, raw), raw[root.to:]...), nil
}

// Object returns a JSON object with its own members in order: first those that are named, then all others by name. inner returns what to
// write for a value and may be nil. The values keep the order of their members, unless inner changes it.
func Object(raw []byte, first []string, inner func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, ErrInvalid
	}
	r := reader{raw: raw}
	root, err := r.value()
	if err != nil {
		return nil, err
	}
	if raw[root.from] != '{' {
		return nil, errors.New("not a JSON object")
	}
	order := root.order(func(m *member) int {
		if at := slices.Index(first, m.name); at >= 0 {
			return at
		}
		return len(first)
	})
	out := append(make([]byte, 0, len(raw)), raw[:root.from]...)
	at := root.from
	for i := range root.members {
		place, m := &root.members[i], &root.members[order[i]]
		out = append(append(out, raw[at:place.from]...), raw[m.from:m.value.from]...)
		value := raw[m.value.from:m.value.to]
		if inner != nil {
			if value, err = inner(m.name, value); err != nil {
				return nil, err
			}
		}
		out, at = append(out, value...), place.value.to
	}
	return append(out, raw[at:]...), nil
}

// node is a value and where it stands.
type node struct {
	from, to int
	members  []member // of an object
	items    []node   // of an array
	sorted   []int    // members[sorted[0]] is written first; for items the same; nil: as they stand
}

// member is a name with its value.
type member struct {
	name  string
	from  int // of the name
	value node
}

// order returns the members' numbers in the order of their ranks, then of their names.
func (n *node) order(rank func(*member) int) []int {
	out := make([]int, len(n.members))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int {
		x, y := &n.members[a], &n.members[b]
		return cmp.Or(cmp.Compare(rank(x), rank(y)), strings.Compare(x.name, y.name))
	})
	return out
}

// sort orders the members of all objects in a value.
func (n *node) sort() {
	if len(n.members) > 0 {
		n.sorted = n.order(func(*member) int { return 0 })
	}
	for i := range n.members {
		n.members[i].value.sort()
	}
	for i := range n.items {
		n.items[i].sort()
	}
}

// What the keywords of a schema hold.
var (
	schemaKeywords = map[string]bool{
		"items": true, "additionalItems": true, "additionalProperties": true, "unevaluatedItems": true, "unevaluatedProperties": true,
		"contains": true, "contentSchema": true, "propertyNames": true, "not": true, "if": true, "then": true, "else": true,
		"allOf": true, "anyOf": true, "oneOf": true, "prefixItems": true,
	}
	mapKeywords = map[string]bool{
		"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true, "dependencies": true,
	}
)

// IsSchema reports whether a keyword of a JSON Schema holds a schema or a list of schemas.
func IsSchema(keyword string) bool { return schemaKeywords[keyword] }

// IsSchemaMap reports whether a keyword of a JSON Schema holds an object whose values are schemas.
func IsSchemaMap(keyword string) bool { return mapKeywords[keyword] }

// sortSchema orders the members of a schema, or those of a list of schemas, and required lists.
func (n *node) sortSchema(raw []byte) {
	for i := range n.items {
		n.items[i].sortSchema(raw)
	}
	if len(n.members) == 0 {
		return
	}
	n.sorted = n.order(func(*member) int { return 0 })
	for i := range n.members {
		switch m := &n.members[i]; {
		case schemaKeywords[m.name]:
			m.value.sortSchema(raw)
		case mapKeywords[m.name]:
			m.value.sort() // a map of names that are the application's own
			for j := range m.value.members {
				m.value.members[j].value.sortSchema(raw)
			}
		case m.name == "required":
			m.value.sort()
			m.value.sortNames(raw)
		default:
			m.value.sort()
		}
	}
}

// sortNames orders the items of a list, if all are strings.
func (n *node) sortNames(raw []byte) {
	if len(n.items) == 0 {
		return
	}
	names := make([]string, len(n.items))
	for i, item := range n.items {
		if raw[item.from] != '"' {
			return
		}
		names[i] = unquote(raw[item.from:item.to])
	}
	n.sorted = make([]int, len(n.items))
	for i := range n.sorted {
		n.sorted[i] = i
	}
	slices.SortStableFunc(n.sorted, func(a, b int) int { return strings.Compare(names[a], names[b]) })
}

// write appends the value as it is ordered. What stands between two members stays where it is.
func (n *node) write(out, raw []byte) []byte {
	at := n.from
	for i := range n.members {
		place, m := &n.members[i], &n.members[i]
		if n.sorted != nil {
			m = &n.members[n.sorted[i]]
		}
		out = append(append(out, raw[at:place.from]...), raw[m.from:m.value.from]...)
		out = m.value.write(out, raw)
		at = place.value.to
	}
	for i := range n.items {
		place, item := &n.items[i], &n.items[i]
		if n.sorted != nil {
			item = &n.items[n.sorted[i]]
		}
		out = item.write(append(out, raw[at:place.from]...), raw)
		at = place.to
	}
	return append(out, raw[at:n.to]...)
}

// reader reads JSON that is known to be valid.
type reader struct {
	raw []byte
	at  int
}

// skip passes over white space.
func (r *reader) skip() {
	for r.at < len(r.raw) && strings.IndexByte(" \t\r\n", r.raw[r.at]) >= 0 {
		r.at++
	}
}

// value reads a value with the white space in front of it.
func (r *reader) value() (n node, err error) {
	r.skip()
	n.from = r.at
	switch r.raw[r.at] {
	case '{':
		err = r.object(&n)
	case '[':
		err = r.array(&n)
	case '"':
		r.text()
	default: // a number or a word
		for r.at < len(r.raw) && strings.IndexByte(",]} \t\r\n", r.raw[r.at]) < 0 {
			r.at++
		}
	}
	n.to = r.at
	return n, err
}

func (r *reader) object(n *node) error {
	seen := map[string]bool{}
	r.at++
	for r.skip(); r.raw[r.at] != '}'; r.skip() {
		if r.raw[r.at] == ',' {
			r.at++
			r.skip()
		}
		m := member{from: r.at}
		r.text()
		m.name = unquote(r.raw[m.from:r.at])
		if seen[m.name] {
			return &DuplicateError{m.name}
		}
		seen[m.name] = true
		r.skip()
		r.at++ // the colon
		var err error
		if m.value, err = r.value(); err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	r.at++
	return nil
}

func (r *reader) array(n *node) error {
	r.at++
	for r.skip(); r.raw[r.at] != ']'; r.skip() {
		if r.raw[r.at] == ',' {
			r.at++
		}
		item, err := r.value()
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	r.at++
	return nil
}

// text passes over a string.
func (r *reader) text() {
	for r.at++; r.raw[r.at] != '"'; r.at++ {
		if r.raw[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
}

// unquote returns what a string says.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is known to be valid
	return s
}
