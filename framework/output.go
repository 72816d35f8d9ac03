package framework

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/ragpilot/ragpilot/conversation"
)

// textMembers are the names under which tools return a text in an object.
var textMembers = []string{"output", "result", "content", "text", "stdout"}

// Output gives visit what a tool has returned: a text, or the one text of an object under a name that such texts have, and all
// else as JSON, which is only fenced. It returns what is to be sent in its place, which is another value if visit has changed a
// text; the tool's own is never changed. like says which tool and call it is.
func Output(value any, like conversation.Text, visit func(conversation.Text) string) (out any, changed bool) {
	like.Role = conversation.Tool
	object, ok := value.(map[string]any)
	if !ok {
		if text, ok := value.(string); ok {
			like.Value = text
			with := visit(like)
			return with, with != text
		}
		return opaque(value, like, visit)
	}
	name := textMember(object)
	if name == "" {
		return opaque(value, like, visit)
	}
	text, _ := object[name].(string)
	like.Value = text
	with := visit(like)
	rest := maps.Clone(object)
	delete(rest, name)
	if len(rest) > 0 {
		if fenced, ok := opaque(rest, like, visit); ok {
			rest, changed = fenced.(map[string]any)
			if !changed {
				return value, false
			}
		}
	}
	if with == text && !changed {
		return value, false
	}
	rest[name] = with
	return rest, true
}

// textMember returns the name of the one text that an object has; "" if there is none, or several.
func textMember(object map[string]any) (found string) {
	for _, name := range textMembers {
		if _, ok := object[name].(string); ok {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// opaque gives visit a value as JSON. What cannot be written as JSON is left alone.
func opaque(value any, like conversation.Text, visit func(conversation.Text) string) (any, bool) {
	if value == nil {
		return nil, false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return value, false
	}
	like.Value, like.Opaque = string(raw), true
	with := visit(like)
	if with == like.Value {
		return value, false
	}
	var out any
	d := json.NewDecoder(strings.NewReader(with))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return value, false
	}
	return out, true
}
