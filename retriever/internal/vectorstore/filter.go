package vectorstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// filter reads the value of vectorstores.WithFilters: a store.Filter, a map of keys and the values that they must have, as
// most stores of langchaingo take it, or a filter of Qdrant's REST interface (must, should, must_not), as its store for
// Qdrant takes it.
func filter(v any) (store.Filter, error) {
	switch f := v.(type) {
	case nil:
		return store.Filter{}, nil
	case store.Filter:
		return f, nil
	}
	var fields map[string]any
	if reflect.TypeOf(v).Kind() != reflect.Map {
		return store.Filter{}, refused("WithFilters", "a %T, want a store.Filter or a map", v)
	}
	raw, err := json.Marshal(v)
	if err == nil {
		fields, err = decoded(raw)
	}
	if err != nil {
		return store.Filter{}, refused("WithFilters", "a %T: %v", v, err)
	}
	f, err := clauses(fields)
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return f, refused("WithFilters", "%v", err)
	}
	return f, nil
}

// decoded reads a JSON object. Whole numbers are int64, as far as they fit: as float64 large ones would be mistaken for others.
func decoded(raw []byte) (map[string]any, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	fields, _ = numbered(fields).(map[string]any)
	return fields, nil
}

func numbered(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64()
		return f
	case []any:
		for i := range x {
			x[i] = numbered(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = numbered(x[k])
		}
	}
	return v
}

// clauses reads a filter of Qdrant's, or else a map of keys and values.
func clauses(fields map[string]any) (store.Filter, error) {
	if len(fields) == 0 || !qdrants(fields) {
		return equal(fields), nil
	}
	var all []store.Filter
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		of, err := conditions(name, fields[name])
		if err != nil {
			return store.Filter{}, err
		}
		switch {
		case len(of) == 0: // an empty list restricts nothing
		case name == "must":
			all = append(all, of...)
		case name == "should":
			all = append(all, store.Any(of...))
		default:
			all = append(all, store.Not(store.Any(of...)))
		}
	}
	if len(all) == 0 {
		return store.Filter{}, nil
	}
	return store.All(all...), nil
}

// qdrants reports whether the fields are those of a filter of Qdrant's, and their values what such filters hold.
func qdrants(fields map[string]any) bool {
	for name, value := range fields {
		switch value.(type) {
		case map[string]any, []any:
		default:
			return false
		}
		if name != "must" && name != "should" && name != "must_not" {
			return false
		}
	}
	return true
}

// equal asks for the value at each key; of a list, for one of its elements.
func equal(fields map[string]any) store.Filter {
	all := make([]store.Filter, 0, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		values, many := fields[key].([]any)
		if !many {
			values = []any{fields[key]}
		}
		all = append(all, store.In(key, values...))
	}
	if len(all) == 0 {
		return store.Filter{}
	}
	return store.All(all...)
}

// conditions reads a clause: a list of conditions, or one.
func conditions(clause string, v any) ([]store.Filter, error) {
	list, many := v.([]any)
	if !many {
		list = []any{v}
	}
	out := make([]store.Filter, len(list))
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s[%d] is a %T, want a condition", clause, i, item)
		}
		var err error
		if out[i], err = condition(fields); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", clause, i, err)
		}
	}
	return out, nil
}

// condition reads {"key": …, "match": …}, {"key": …, "range": …} or a filter within a filter.
func condition(fields map[string]any) (store.Filter, error) {
	if len(fields) > 0 && qdrants(fields) {
		return clauses(fields)
	}
	key, _ := fields["key"].(string)
	for name, value := range fields {
		inner, ok := value.(map[string]any)
		switch {
		case name == "key":
		case name == "match" && ok && len(fields) == 2:
			return match(key, inner)
		case name == "range" && ok && len(fields) == 2:
			return between(key, inner)
		default:
			return store.Filter{}, fmt.Errorf("%q in a condition, want key and match, or key and range, and nothing else", name)
		}
	}
	return store.Filter{}, fmt.Errorf("key %q without match or range", key)
}

func match(key string, m map[string]any) (store.Filter, error) {
	for name, value := range m {
		list, many := value.([]any)
		switch {
		case len(m) != 1:
		case name == "value":
			return store.Eq(key, value), nil
		case name == "any" && many:
			return store.In(key, list...), nil
		}
	}
	return store.Filter{}, fmt.Errorf("match %v of key %q, want value or any, or must_not, which documents without the key meet as well", m,
		key)
}

func between(key string, r map[string]any) (store.Filter, error) {
	low, high := math.Inf(-1), math.Inf(1)
	for name, value := range r {
		if value == nil {
			continue
		}
		n, ok := value.(float64)
		if whole, is := value.(int64); is {
			n, ok = float64(whole), true
		}
		switch {
		case !ok:
			return store.Filter{}, fmt.Errorf("range %s = %v of key %q, want a number", name, value, key)
		case name == "gte":
			low = max(low, n)
		case name == "gt":
			low = max(low, math.Nextafter(n, math.Inf(1)))
		case name == "lte":
			high = min(high, n)
		case name == "lt":
			high = min(high, math.Nextafter(n, math.Inf(-1)))
		default:
			return store.Filter{}, fmt.Errorf("range %q of key %q, want gt, gte, lt or lte", name, key)
		}
	}
	return store.Between(key, low, high), nil
}
