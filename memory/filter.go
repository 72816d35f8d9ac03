package memory

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Op is the operator of a [Filter], under Mem0's names.
type Op string

// The operators. Those of a field compare its value with Filter.Value; And, Or and Not combine the filters of Filter.Of.
const (
	OpEq        Op = "eq"
	OpNe        Op = "ne" // also of memories that lack the field
	OpIn        Op = "in" // Value is a list
	OpNin       Op = "nin"
	OpGt        Op = "gt"
	OpGte       Op = "gte"
	OpLt        Op = "lt"
	OpLte       Op = "lte"
	OpContains  Op = "contains"  // a part of a string, or an element of a list
	OpIcontains Op = "icontains" // the same without regard to case
	OpAny       Op = "*"         // the memory has the field
	OpAnd       Op = "AND"
	OpOr        Op = "OR"
	OpNot       Op = "NOT" // none of Of matches
)

// Filter selects memories. The zero Filter selects all.
//
// A field is a key of the metadata, or one of id, text, hash, role, actor_id, user_id, agent_id, run_id, created_at,
// updated_at and expires_at. Numbers compare with numbers, strings with strings; strings that are dates or RFC 3339 times
// on both sides compare as times, a date as its first moment in UTC. Values that cannot be compared do not match.
//
// In JSON a filter has the form of Mem0's: {"field": value}, {"field": {"gte": 1, "lt": 5}}, {"field": "*"},
// {"AND": [...]}, {"OR": [...]}, {"NOT": [...]}; several members of an object must all match.
type Filter struct {
	Op    Op
	Field string
	Value any
	Of    []Filter
}

// Eq selects memories whose field has the value.
func Eq(field string, value any) Filter { return Where(field, OpEq, value) }

// Where compares a field with a value.
func Where(field string, op Op, value any) Filter { return Filter{Op: op, Field: field, Value: value} }

// And selects what all of the filters select; without filters that is everything.
func And(of ...Filter) Filter { return Filter{Op: OpAnd, Of: slices.Clone(of)} }

// Or selects what one of the filters selects; without filters that is nothing.
func Or(of ...Filter) Filter { return Filter{Op: OpOr, Of: slices.Clone(of)} }

// Not selects what none of the filters selects.
func Not(of ...Filter) Filter { return Filter{Op: OpNot, Of: slices.Clone(of)} }

// IsZero reports whether the filter selects everything because it says nothing.
func (f *Filter) IsZero() bool {
	return f.Op == "" && f.Field == "" && f.Value == nil && len(f.Of) == 0
}

// maxFilterDepth bounds what a filter from outside can make a machine do.
const maxFilterDepth = 64

// Validate returns an error that wraps [ErrBadFilter] and names the field and the operator.
func (f *Filter) Validate() error { return f.validate(0) }

func (f *Filter) validate(depth int) error {
	if f.IsZero() {
		return nil
	}
	if depth >= maxFilterDepth {
		return fmt.Errorf("%w: more than %d levels", ErrBadFilter, maxFilterDepth)
	}
	switch f.Op {
	case OpAnd, OpOr, OpNot:
		for i := range f.Of {
			if err := f.Of[i].validate(depth + 1); err != nil {
				return err
			}
		}
		return nil
	}
	if f.Field == "" {
		return fmt.Errorf("%w: operator %q without a field", ErrBadFilter, f.Op)
	}
	return f.validateValue()
}

func (f *Filter) validateValue() error {
	value, err := plain(f.Value)
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrBadFilter, f.Field, f.Op, err)
	}
	ok := true
	switch f.Op {
	case OpEq, OpNe, OpAny:
	case OpIn, OpNin:
		_, ok = value.([]any)
	case OpGt, OpGte, OpLt, OpLte:
		switch value.(type) {
		case float64, string:
		default:
			ok = false
		}
	case OpContains, OpIcontains:
		ok = value != nil
	default:
		return fmt.Errorf("%w: operator %q of field %s", ErrBadFilter, f.Op, f.Field)
	}
	if !ok {
		return fmt.Errorf("%w: %s %s %v", ErrBadFilter, f.Field, f.Op, f.Value)
	}
	return nil
}

// plain returns a value as encoding/json decodes it, so that what a program compares with looks like what is stored.
func plain(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, float64, bool:
		return v, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(raw, &out)
	return out, err
}
