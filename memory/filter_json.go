package memory

import (
	"encoding/json"
	"fmt"
	"slices"
)

// MarshalJSON writes the filter in Mem0's form; the zero Filter is {}.
func (f Filter) MarshalJSON() ([]byte, error) {
	switch {
	case f.IsZero():
		return []byte("{}"), nil
	case f.Op == OpAnd, f.Op == OpOr, f.Op == OpNot:
		return json.Marshal(map[Op][]Filter{f.Op: append([]Filter{}, f.Of...)})
	case f.Op == OpAny:
		return json.Marshal(map[string]Op{f.Field: OpAny})
	}
	return json.Marshal(map[string]map[Op]any{f.Field: {f.Op: f.Value}})
}

// UnmarshalJSON reads Mem0's form. Errors wrap [ErrBadFilter].
func (f *Filter) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("%w: %w", ErrBadFilter, err)
	}
	if value == nil {
		*f = Filter{}
		return nil
	}
	read, err := filterOf(value, 0)
	if err != nil {
		return err
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*f = read
	return nil
}

// filterOf reads an object; its members are taken in the order of their names.
func filterOf(value any, depth int) (Filter, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return Filter{}, fmt.Errorf("%w: a filter must be an object", ErrBadFilter)
	}
	if depth >= maxFilterDepth {
		return Filter{}, fmt.Errorf("%w: more than %d levels", ErrBadFilter, maxFilterDepth)
	}
	var all []Filter
	for _, name := range sortedKeys(members) {
		var one Filter
		var err error
		switch op := Op(name); op {
		case OpAnd, OpOr, OpNot:
			one, err = combined(op, members[name], depth)
		default:
			one, err = compared(name, members[name])
		}
		if err != nil {
			return Filter{}, err
		}
		all = append(all, one)
	}
	return oneOf(all), nil
}

// combined reads the list behind AND, OR or NOT; NOT takes a single object too.
func combined(op Op, value any, depth int) (Filter, error) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	f := Filter{Op: op, Of: make([]Filter, len(list))}
	for i, v := range list {
		var err error
		if f.Of[i], err = filterOf(v, depth+1); err != nil {
			return Filter{}, err
		}
	}
	return f, nil
}

// compared reads what stands behind the name of a field.
func compared(field string, value any) (Filter, error) {
	if value == string(OpAny) {
		return Filter{Op: OpAny, Field: field}, nil
	}
	ops, ok := value.(map[string]any)
	if !ok {
		return Eq(field, value), nil
	}
	if len(ops) == 0 {
		return Filter{}, fmt.Errorf("%w: field %s without an operator", ErrBadFilter, field)
	}
	var all []Filter
	for _, op := range sortedKeys(ops) {
		all = append(all, Where(field, Op(op), ops[op]))
	}
	return oneOf(all), nil
}

// oneOf returns a filter that all of them must match, without a level that says nothing.
func oneOf(all []Filter) Filter {
	switch len(all) {
	case 0:
		return Filter{}
	case 1:
		return all[0]
	}
	return Filter{Op: OpAnd, Of: all}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
