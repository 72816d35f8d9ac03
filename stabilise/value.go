package stabilise

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/ragpilot/ragpilot/internal/base/jsonorder"
)

// Value returns a JSON Schema that a program holds as a value, so that it is always written as the same JSON, or as it came if it is not
// certain what it says. A map stays a map, since encoding/json sorts its members: in a copy only required lists are sorted. What is neither
// a map nor nil becomes a json.RawMessage. The rule must be on.
func (s *Stabiliser) Value(v any) any {
	if !s.cfg.Schemas || v == nil {
		return v
	}
	if m, ok := v.(map[string]any); ok {
		return schemaOf(m)
	}
	var done Stats
	defer func() { s.count(&done) }()
	raw, err := json.Marshal(v)
	if err != nil {
		return v // it is the model's to report
	}
	out, err := jsonorder.Schema(raw)
	if err != nil {
		done.Kept++
		return v
	}
	if string(out) != string(raw) {
		done.Schemas++
	}
	return json.RawMessage(out)
}

// schemaOf returns a copy of a schema in which required lists are sorted.
func schemaOf(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for name, v := range m {
		switch {
		case name == "required":
			out[name] = sortedNames(v)
		case jsonorder.IsSchema(name):
			out[name] = schemasOf(v)
		case jsonorder.IsSchemaMap(name):
			if inner, ok := v.(map[string]any); ok {
				inner = maps.Clone(inner)
				for key, value := range inner {
					inner[key] = schemasOf(value)
				}
				out[name] = inner
			}
		}
	}
	return out
}

// schemasOf does so for a schema or a list of schemas.
func schemasOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return schemaOf(v)
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = schemasOf(out[i])
		}
		return out
	}
	return v
}

// sortedNames returns a sorted copy of a list of names; anything else stays.
func sortedNames(v any) any {
	switch v := v.(type) {
	case []string:
		out := slices.Clone(v)
		slices.Sort(out)
		return out
	case []any:
		out := slices.Clone(v)
		for _, item := range out {
			if _, ok := item.(string); !ok {
				return v
			}
		}
		slices.SortFunc(out, func(a, b any) int {
			x, _ := a.(string)
			y, _ := b.(string)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		return out
	}
	return v
}
