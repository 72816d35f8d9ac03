package wiretest

import (
	"fmt"
	"regexp"
	"strings"
)

// placeholder is a name for an ID or an address that differs from run to run.
var placeholder = regexp.MustCompile(`<(id[0-9A-Za-z]*|upstream)>`)

// names are what placeholders stand for in one run.
type names struct {
	value map[string]string // by name
	name  map[string]string // by value: two names never stand for one ID
}

func newNames(known map[string]string) *names {
	n := &names{value: map[string]string{}, name: map[string]string{}}
	for name, v := range known {
		n.bind(name, v)
	}
	return n
}

func (n *names) bind(name, value string) {
	n.value[name], n.name[value] = value, name
}

// open reports whether a string has a placeholder that stands for nothing yet.
func (n *names) open(s string) bool {
	for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
		if _, ok := n.value[m[1]]; !ok {
			return true
		}
	}
	return false
}

// fill puts in what is known for placeholders, in all strings and names of a JSON value.
func (n *names) fill(v any) any {
	switch v := v.(type) {
	case string:
		return placeholder.ReplaceAllStringFunc(v, func(p string) string {
			if s, ok := n.value[strings.Trim(p, "<>")]; ok {
				return s
			}
			return p
		})
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.fill(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[n.fill(k).(string)] = n.fill(x)
		}
		return out
	}
	return v
}

// match reports whether got is want, and learns what its open placeholders stand for.
func (n *names) match(want, got string) error {
	want = n.fill(want).(string)
	if want == got {
		return nil
	}
	open := placeholder.FindAllStringSubmatch(want, -1)
	if len(open) == 0 {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	parts := placeholder.Split(want, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	found := regexp.MustCompile("(?s)^" + strings.Join(parts, "(.+?)") + "$").FindStringSubmatch(got)
	if found == nil {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	for i, m := range open {
		name, value := m[1], found[i+1]
		if other, taken := n.name[value]; taken && other != name {
			return fmt.Errorf("got %q for <%s>, which is <%s> already", value, name, other)
		}
		if known, ok := n.value[name]; ok && known != value {
			return fmt.Errorf("got %q for <%s>, which is %q", value, name, known)
		}
		n.bind(name, value)
	}
	return nil
}
