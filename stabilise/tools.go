package stabilise

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/jsonorder"
)

// tools puts the tools of a body in order, and the members of each.
func (w *writer) tools(t *table, key sum, owner string) {
	rules := w.s.cfg.Rules
	if !rules.Tools && !rules.Schemas || !w.b.tools.IsArray() {
		return
	}
	var items []gjson.Result
	w.b.tools.ForEach(func(_, item gjson.Result) bool {
		items = append(items, item)
		return len(items) <= maxParts
	})
	if len(items) == 0 || len(items) > maxParts {
		return
	}
	raws := make([]string, len(items))
	for i, item := range items {
		raws[i] = item.Raw
		if !rules.Schemas {
			continue
		}
		sorted, err := definition([]byte(item.Raw))
		switch {
		case err != nil:
			w.done.Kept++
		case string(sorted) != item.Raw:
			raws[i] = string(sorted)
			w.done.Schemas++
		}
	}
	if order := w.order(t, key, owner, items); order != nil {
		raws = arranged(raws, items, order)
		w.done.Tools++
	}
	for i, item := range items {
		if raws[i] != item.Raw {
			w.replace(item, raws[i])
		}
	}
}

// order returns the order of the tools; nil: as they came.
func (w *writer) order(t *table, key sum, owner string, items []gjson.Result) []int {
	if !w.s.cfg.Tools {
		return nil
	}
	names := make([]string, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		names[i] = toolName(item)
		if names[i] == "" || seen[names[i]] {
			w.done.Kept++
			return nil
		}
		seen[names[i]] = true
	}
	order := t.arrange(key, owner, names)
	if slices.IsSorted(order) {
		return nil
	}
	return order
}

// toolName returns the name of a tool: tools of a provider have a type, and some are of a server.
func toolName(item gjson.Result) string {
	for _, path := range []string{"name", "function.name", "custom.name"} {
		if v := item.Get(path); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	if kind := item.Get("type").Str; kind != "" {
		return strings.TrimSuffix(kind+":"+item.Get("server_label").Str, ":")
	}
	return ""
}

// arranged returns definitions in an order. Marks for the provider's cache stay where they are in the list: what is in front of one is
// cached, whatever it is.
func arranged(raws []string, items []gjson.Result, order []int) []string {
	out := make([]string, len(raws))
	for i, from := range order {
		out[i] = raws[from]
		had, has := markOf(items[from]), markOf(items[i])
		if had == has {
			continue
		}
		if had != "" {
			out[i] = withoutMark(out[i])
		}
		if has != "" {
			at := len(out[i]) - 1
			out[i] = out[i][:at] + behindAll(out[i], has) + out[i][at:]
		}
	}
	return out
}

// withoutMark takes the marks out of an object.
func withoutMark(raw string) string {
	var b body
	gjson.Parse(raw).ForEach(func(key, value gjson.Result) bool {
		b.keys, b.members = append(b.keys, key), append(b.members, value)
		return true
	})
	w := writer{b: &body{raw: []byte(raw)}}
	w.remove(len(b.keys), func(i int) bool { return slices.Contains(marks, b.keys[i].Str) },
		func(i int) int { return b.keys[i].Index }, func(i int) int { return ends(b.members[i]) })
	return string(w.bytes())
}

// usual is the order in which the members of a tool are usually written; others come behind them by name.
var usual = []string{"type", "function", "custom", "name", "description", "parameters", "input_schema", "strict"}

// definition returns the definition of a tool with its members in order.
func definition(raw []byte) ([]byte, error) {
	return jsonorder.Object(raw, usual, func(name string, value []byte) ([]byte, error) {
		object := bytes.HasPrefix(value, []byte{'{'})
		switch {
		case object && (name == "function" || name == "custom"):
			return jsonorder.Object(value, usual, member)
		default:
			return member(name, value)
		}
	})
}

// member orders the value of a member of a tool.
func member(name string, value []byte) ([]byte, error) {
	if strings.HasSuffix(name, "schema") || name == "parameters" {
		return jsonorder.Schema(value)
	}
	return jsonorder.Sort(value)
}

// Schema returns a JSON Schema with its members in order, or as it came if it is not certain what it says. The rule must be on.
func (s *Stabiliser) Schema(raw []byte) []byte {
	if !s.cfg.Schemas {
		return raw
	}
	var done Stats
	out, err := jsonorder.Schema(raw)
	switch {
	case err != nil:
		out, done.Kept = raw, 1
	case !bytes.Equal(out, raw):
		done.Schemas = 1
	}
	s.count(&done)
	return out
}
