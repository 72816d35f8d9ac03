package proxy

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/conversation"
)

// extent is a range of an item's bytes.
type extent struct{ from, to int }

// extentOf returns where a value stands, which is a part of the item; zero if it is not there.
func (it *item) extentOf(v gjson.Result) extent {
	if !v.Exists() {
		return extent{}
	}
	return extent{v.Index - it.from, v.Index - it.from + len(v.Raw)}
}

// opaque adds what an item holds of tools and documents beside its texts: parts of other types, and strings that are not
// planned because their characters would not survive.
func (it *item) opaque(d dialect) {
	texts := len(it.texts)
	for _, o := range it.foreign(d) {
		at := o.from
		add := func(end int) {
			opaque := conversation.Text{Value: it.value.Raw[at:end], Role: conversation.Tool, Opaque: true}
			it.texts = append(it.texts, text{Text: opaque, from: at, to: end})
		}
		for i := range texts { // in the order of the item
			if tx := it.texts[i]; tx.from >= at && tx.to <= o.to {
				add(tx.from)
				at = tx.to
			}
		}
		add(o.to)
	}
}

// foreign returns what of an item is a tool's or a document's, where it is more than one text.
func (it *item) foreign(d dialect) []extent {
	if d == responses {
		return it.results()
	}
	raw := it.value.Raw[it.inner.from:it.inner.to]
	switch {
	case it.role == conversation.Tool && (len(it.texts) != 1 || it.texts[0].list):
		return []extent{it.inner}
	case it.role == conversation.Tool, !strings.HasPrefix(raw, "["):
		return nil
	}
	var out []extent
	gjson.Parse(raw).ForEach(func(_, part gjson.Result) bool {
		part.Index += it.from + it.inner.from
		switch kind := part.Get("type").Str; {
		case strings.HasSuffix(kind, "tool_result"), kind == "toolResult":
			if c := part.Get("content"); c.Exists() {
				out = append(out, it.extentOf(c))
			}
		case kind == "document", kind == "search_result":
			out = append(out, it.extentOf(part))
		}
		return true
	})
	return out
}

// results returns what tools have returned in an item of /v1/responses, of whichever type.
func (it *item) results() []extent {
	switch it.value.Get("type").Str {
	case "", "message", "reasoning", "function_call", "item_reference":
		return nil
	}
	var out []extent
	it.value.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "output", "outputs", "results", "tools":
			out = append(out, it.extentOf(value))
		}
		return true
	})
	return out
}
