package store

import (
	"reflect"
	"strings"
)

// Matches reports whether a document with this metadata fits. Stores that filter on a server do not call it; embedded
// ones may, and tests compare with it.
func (f Filter) Matches(metadata map[string]any) bool {
	switch f.Op {
	case OpTrue:
		return true
	case OpIn:
		return anyValue(metadata, f.Key, f.in)
	case OpRange:
		return anyValue(metadata, f.Key, f.inRange)
	case OpAll:
		for _, inner := range f.Of {
			if !inner.Matches(metadata) {
				return false
			}
		}
		return true
	case OpAny:
		for _, inner := range f.Of {
			if inner.Matches(metadata) {
				return true
			}
		}
	case OpNot:
		return len(f.Of) == 1 && !f.Of[0].Matches(metadata)
	}
	return false
}

// anyValue reports whether fits holds for the value at the key, or for an element of the list there.
func anyValue(metadata map[string]any, key string, fits func(any) bool) bool {
	value, found := at(metadata, key)
	if !found {
		return false
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return fits(value)
	}
	for i := range list.Len() {
		if fits(list.Index(i).Interface()) {
			return true
		}
	}
	return false
}

// at follows the dots of a key.
func at(metadata map[string]any, key string) (any, bool) {
	head, rest, dotted := strings.Cut(key, ".")
	value, found := metadata[head]
	if !dotted {
		return value, found
	}
	inner, _ := value.(map[string]any) // nil has no keys
	return at(inner, rest)
}

func (f Filter) in(value any) bool {
	value = normal(value)
	for _, want := range f.Values {
		if reflect.TypeOf(value) == reflect.TypeOf(want) && value == want { // lists cannot be compared
			return true
		}
	}
	return false
}

func (f Filter) inRange(value any) bool {
	var n float64
	switch v := normal(value).(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		return false
	}
	return f.Min <= n && n <= f.Max
}
