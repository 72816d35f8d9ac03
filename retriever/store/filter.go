package store

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Op says what a [Filter] asks for.
type Op int

// What filters ask for.
const (
	// OpTrue fits every document. It is what the zero Filter asks for.
	OpTrue Op = iota
	// OpIn: the value at Key is one of Values; of a list, one of its elements is.
	OpIn
	// OpRange: the value at Key is a number from Min to Max, both included.
	OpRange
	// OpAll: every filter of Of fits.
	OpAll
	// OpAny: at least one filter of Of fits.
	OpAny
	// OpNot: the only filter of Of does not fit.
	OpNot
)

// Filter is a condition on the metadata of documents, made by [Eq], [In], [Between], [All], [Any] and [Not]. Its
// fields are exported for stores, which translate it. A document without the key fits neither OpIn nor OpRange.
// A Filter is not changed after it was made and may be shared.
type Filter struct {
	Op Op
	// Key names the value; a dot always leads into a map: "author.name".
	Key string
	// Values are strings, booleans and int64.
	Values []any
	// Min and Max are the limits of OpRange, ±Inf if there is none.
	Min, Max float64
	Of       []Filter
}

// Eq fits documents whose value at key is the string, boolean or whole number, or a list that holds it.
func Eq(key string, value any) Filter { return In(key, value) }

// In fits documents whose value at key is one of the strings, booleans or whole numbers.
func In(key string, values ...any) Filter {
	f := Filter{Op: OpIn, Key: key, Values: make([]any, len(values))}
	for i, v := range values {
		f.Values[i] = normal(v)
	}
	return f
}

// Between fits documents whose value at key is a number from low to high, both included. math.Inf leaves a side open.
func Between(key string, low, high float64) Filter {
	return Filter{Op: OpRange, Key: key, Min: low, Max: high}
}

// All fits what every one of the filters fits.
func All(of ...Filter) Filter { return Filter{Op: OpAll, Of: of} }

// Any fits what at least one of the filters fits.
func Any(of ...Filter) Filter { return Filter{Op: OpAny, Of: of} }

// Not fits what the filter does not fit, documents without the key included.
func Not(f Filter) Filter { return Filter{Op: OpNot, Of: []Filter{f}} }

// maxDepth bounds the nesting of filters: servers have such a limit as well, and answer less clearly.
const maxDepth = 16

// Check returns an error that wraps [ErrBadQuery] if the filter is not one that the functions of this package make of
// valid arguments.
func (f Filter) Check() error { return f.check(maxDepth) }

func (f Filter) check(depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: filters are nested more than %d deep", ErrBadQuery, maxDepth)
	}
	switch f.Op {
	case OpTrue:
		return nil
	case OpIn:
		return f.checkIn()
	case OpRange:
		return f.checkRange()
	case OpNot:
		if len(f.Of) != 1 {
			return fmt.Errorf("%w: Not has %d filters, want 1", ErrBadQuery, len(f.Of))
		}
	case OpAll, OpAny:
		if len(f.Of) == 0 {
			return fmt.Errorf("%w: All or Any without filters", ErrBadQuery)
		}
	default:
		return fmt.Errorf("%w: Filter.Op = %d is unknown", ErrBadQuery, f.Op)
	}
	for _, inner := range f.Of {
		if err := inner.check(depth - 1); err != nil {
			return err
		}
	}
	return nil
}

func (f Filter) checkKey() error {
	if f.Key == "" || !utf8.ValidString(f.Key) {
		return fmt.Errorf("%w: Filter.Key = %q, want the key of a value", ErrBadQuery, f.Key)
	}
	return nil
}

func (f Filter) checkIn() error {
	if err := f.checkKey(); err != nil {
		return err
	}
	if len(f.Values) == 0 {
		return fmt.Errorf("%w: no values for key %q", ErrBadQuery, f.Key)
	}
	for _, v := range f.Values {
		switch s := v.(type) {
		case bool, int64:
		case string:
			if !utf8.ValidString(s) {
				return fmt.Errorf("%w: value %q for key %q is not UTF-8", ErrBadQuery, s, f.Key)
			}
		default:
			return fmt.Errorf("%w: value %v for key %q is a %T, want string, bool or a whole number", ErrBadQuery, v, f.Key, v)
		}
	}
	return nil
}

func (f Filter) checkRange() error {
	if err := f.checkKey(); err != nil {
		return err
	}
	if math.IsNaN(f.Min) || math.IsNaN(f.Max) || f.Min > f.Max {
		return fmt.Errorf("%w: range %v to %v for key %q", ErrBadQuery, f.Min, f.Max, f.Key)
	}
	return nil
}
