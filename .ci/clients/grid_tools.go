package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
)

var (
	verbs    = strings.Fields("create update delete list search export archive approve assign merge")
	nouns    = strings.Fields("invoice ticket shipment contract employee asset meeting report vendor campaign")
	nameless = strings.Fields("id title owner status priority due_date amount currency region tags comment limit cursor format dry_run")
)

// invented makes n tools with schemas of two levels.
func (r *Run) invented(n int) (tools []map[string]any) {
	for len(tools) < n {
		i := len(tools)
		name := verbs[i%len(verbs)] + "_" + nouns[(i*7+i/len(verbs))%len(nouns)]
		tools = append(tools, map[string]any{
			"name": name, "description": fmt.Sprintf("Use this to %s. It needs the right %q.",
				strings.ReplaceAll(name, "_", " an entry of the kind "), name),
			"parameters": r.schema(2),
		})
	}
	return tools
}

func (r *Run) schema(depth int) map[string]any {
	props, required := map[string]any{}, []any{}
	for _, i := range r.rand.Perm(len(nameless))[:4+r.rand.IntN(3)] {
		p := nameless[i]
		props[p] = map[string]any{"type": "string", "description": "The " + strings.ReplaceAll(p, "_", " ") + " of the entry."}
		if len(required) < 3 {
			required = append(required, p)
		}
	}
	props["mode"] = map[string]any{"type": "string", "enum": []any{"draft", "final", "hidden", "shared"}}
	if depth > 1 {
		props["address"] = r.schema(depth - 1)
	}
	return map[string]any{"type": "object", "properties": props, "required": required}
}

// written writes a value with the members of one object, or the items of one list, in an order. The steps lead to it.
func written(v any, steps []string, order []int) json.RawMessage {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(steps) == 0 && order != nil {
			names = Pick(names, order)
		}
		var b strings.Builder
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", name, written(v[name], below(steps, name), If(below(steps, name) != nil, order, nil)))
		}
		return json.RawMessage("{" + b.String() + "}")
	case []any:
		if len(steps) == 0 && order != nil {
			return must(json.Marshal(Pick(v, order)))
		}
	}
	return must(json.Marshal(v))
}

// below returns the steps behind the first if that is a name, and nil if it is not.
func below(steps []string, name string) []string {
	if len(steps) == 0 || steps[0] != name {
		return nil
	}
	return steps[1:]
}

// raw is tools as a program writes them by hand.
func (c *chat) raw(tools []map[string]any, parameters func(i int, schema any) json.RawMessage) {
	c.params.Tools = nil
	for i, t := range tools {
		var p openai.FunctionParameters
		raw := parameters(i, t["parameters"])
		check(json.Unmarshal(raw, &p))
		for name := range p {
			p[name] = must(field(raw, name))
		}
		c.params.Tools = append(c.params.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: t["name"].(string), Description: openai.String(t["description"].(string)), Parameters: p,
		}))
	}
}

func field(raw json.RawMessage, name string) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m[name], err
}

func plain(_ int, schema any) json.RawMessage { return written(schema, nil, nil) }

// shuffles are the places in a schema whose order may come from a map.
var shuffles = map[string][]string{
	"properties": {"properties"}, "required": {"required"}, "nested": {"properties", "address", "properties"},
	"nested-required": {"properties", "address", "required"}, "enum": {"properties", "mode", "enum"},
}

// GridTools returns cases with many invented tools.
func GridTools() (cases []Case) {
	for _, name := range keys(shuffles) {
		steps := shuffles[name]
		for i, n := range []int{1, 4, 12} {
			at := []int{0, 2, 11}[i]
			cases = append(cases, Case{Name: fmt.Sprintf("grid-map-order-%s-%d", name, n), Run: func(r *Run) {
				c := newChat(r, "gpt-4.1", travelText, nil)
				list := r.invented(n)
				for k := range 2 {
					c.raw(list, func(i int, schema any) json.RawMessage {
						if i != at || k == 0 || !r.Sick {
							return plain(i, schema)
						}
						return written(schema, steps, r.Shuffled(size(schema, steps), 0))
					})
					c.only(k)
				}
			}, Want: []Label{{
				Line: 2, Against: 1, Cause: "map-order",
				Path: fmt.Sprintf("tools[%d].function.parameters.%s", at, strings.Join(steps, ".")),
			}}})
		}
	}
	return append(cases, toolLists()...)
}

// size counts the members or items that the steps lead to.
func size(v any, steps []string) int {
	for _, s := range steps {
		v = v.(map[string]any)[s]
	}
	if list, ok := v.([]any); ok {
		return len(list)
	}
	return len(v.(map[string]any))
}

// toolLists are cases in which the list of tools changes.
func toolLists() (cases []Case) {
	for _, n := range []int{2, 3, 6, 15, 40} {
		// Two neighbours change places; all change places; one leaves; one comes; one gets a parameter.
		middle := n / 2
		for _, change := range []struct {
			cause, name string
			path        int
			do          func(r *Run, list []map[string]any) []map[string]any
		}{
			{"tool-order", "two", middle - 1, func(_ *Run, l []map[string]any) []map[string]any {
				l[middle-1], l[middle] = l[middle], l[middle-1]
				return l
			}},
			{"tool-order", "all", 0, func(r *Run, l []map[string]any) []map[string]any { return Pick(l, r.Shuffled(len(l), 0)) }},
			{"tool-set", "less", middle, func(_ *Run, l []map[string]any) []map[string]any { return slices.Delete(l, middle, middle+1) }},
			{"tool-set", "more", middle, func(_ *Run, l []map[string]any) []map[string]any {
				extra := map[string]any{
					"name": "ping", "description": "Says whether the server is there.",
					"parameters": map[string]any{"type": "object", "properties": map[string]any{}},
				}
				return slices.Insert(l, middle, extra)
			}},
			{"tool-set", "last", n, func(_ *Run, l []map[string]any) []map[string]any {
				return append(l, map[string]any{
					"name": "ping", "description": "Says whether the server is there.",
					"parameters": map[string]any{"type": "object", "properties": map[string]any{}},
				})
			}},
			{"tool-set", "renamed", middle, func(_ *Run, l []map[string]any) []map[string]any {
				l[middle] = maps.Clone(l[middle])
				l[middle]["name"] = "v2_" + l[middle]["name"].(string)
				return l
			}},
		} {
			cases = append(cases, Case{Name: fmt.Sprintf("grid-%s-%s-%d", change.cause, change.name, n), Run: func(r *Run) {
				c := newChat(r, "gpt-4.1", opsText, nil)
				list := r.invented(n)
				c.raw(list, plain)
				c.turn(0)
				if r.Sick {
					c.raw(change.do(r, slices.Clone(list)), plain)
				}
				c.turn(1)
			}, Want: []Label{{
				Line: 2, Against: 1, Cause: change.cause, Path: fmt.Sprintf("tools[%d]", change.path),
				Within: change.name == "renamed",
			}}})
		}
	}
	return cases
}
