package memory

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Match reports whether the filter, which must be valid, selects the memory. A filter that is used often should have plain
// values (string, float64, bool and lists of them): others are brought to that form at each call.
func (f *Filter) Match(m *Memory) bool {
	matches := func(of Filter) bool { return of.Match(m) }
	switch f.Op {
	case OpAnd:
		return !slices.ContainsFunc(f.Of, func(of Filter) bool { return !of.Match(m) })
	case OpOr:
		return slices.ContainsFunc(f.Of, matches)
	case OpNot:
		return !slices.ContainsFunc(f.Of, matches)
	case "":
		return f.IsZero()
	}
	have, ok := m.field(f.Field)
	want, err := plain(f.Value)
	if err != nil {
		return false
	}
	switch f.Op {
	case OpAny:
		return ok
	case OpNe:
		return !ok || !equal(have, want)
	case OpNin:
		return !ok || !among(have, want)
	}
	return ok && f.Op.holds(have, want)
}

// holds compares a field that is there.
func (op Op) holds(have, want any) bool {
	switch op {
	case OpEq:
		return equal(have, want)
	case OpIn:
		return among(have, want)
	case OpContains:
		return contains(have, want, func(s string) string { return s })
	case OpIcontains:
		return contains(have, want, strings.ToLower)
	}
	c, ok := compare(have, want)
	if !ok {
		return false
	}
	switch op {
	case OpGt:
		return c > 0
	case OpGte:
		return c >= 0
	case OpLt:
		return c < 0
	case OpLte:
		return c <= 0
	}
	return false
}

// field returns the value that filters compare. The fields of a memory itself hide metadata of the same name.
func (m *Memory) field(name string) (any, bool) {
	text := func(s string) (any, bool) { return s, s != "" }
	moment := func(t time.Time) (any, bool) { return t.Format(time.RFC3339Nano), !t.IsZero() }
	switch name {
	case "id":
		return text(m.ID)
	case "text":
		return text(m.Text)
	case "hash":
		return text(m.Hash)
	case "role":
		return text(m.Role)
	case "actor_id":
		return text(m.Actor)
	case "user_id":
		return text(m.Scope.User)
	case "agent_id":
		return text(m.Scope.Agent)
	case "run_id":
		return text(m.Scope.Run)
	case "created_at":
		return moment(m.CreatedAt)
	case "updated_at":
		return moment(m.UpdatedAt)
	case "expires_at":
		return moment(m.ExpiresAt)
	}
	value, ok := m.Metadata[name]
	return value, ok
}

func equal(a, b any) bool {
	if c, ok := compare(a, b); ok {
		return c == 0
	}
	return reflect.DeepEqual(a, b)
}

func among(have, list any) bool {
	values, _ := list.([]any)
	return slices.ContainsFunc(values, func(v any) bool { return equal(have, v) })
}

func contains(have, want any, fold func(string) string) bool {
	part, isText := want.(string)
	switch h := have.(type) {
	case string:
		return isText && strings.Contains(fold(h), fold(part))
	case []any:
		return slices.ContainsFunc(h, func(v any) bool {
			s, ok := v.(string)
			return ok && isText && fold(s) == fold(part) || equal(v, want)
		})
	}
	return false
}

// compare orders two numbers, two times or two strings.
func compare(a, b any) (c int, ok bool) {
	if x, isNumber := a.(float64); isNumber {
		y, both := b.(float64)
		return cmp.Compare(x, y), both
	}
	x, okX := a.(string)
	y, okY := b.(string)
	if !okX || !okY {
		return 0, false
	}
	if s, isTime := timeOf(x); isTime {
		if t, both := timeOf(y); both {
			return s.Compare(t), true
		}
	}
	return strings.Compare(x, y), true
}

// timeOf reads RFC 3339 and dates; what cannot be one is refused at a glance.
func timeOf(s string) (time.Time, bool) {
	if len(s) < len(time.DateOnly) || s[4] != '-' {
		return time.Time{}, false
	}
	layout := time.RFC3339
	if len(s) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	t, err := time.Parse(layout, s)
	return t, err == nil
}
