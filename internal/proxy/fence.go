package proxy

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/extract"
	"github.com/ragpilot/ragpilot/internal/notes"
)

// fence fences what others wrote in the texts of an item: tool results, and the documents of a system text.
func (x *exchange) fence(it *item) {
	var parts []string
	for i := range it.texts {
		switch tx := &it.texts[i]; tx.role {
		case tool:
			parts = append(parts, tx.value)
		case system:
			tx.value = x.fencedSystem(tx.value)
		}
	}
	parts = notes.FenceParts(parts)
	for i := range it.texts {
		if tx := &it.texts[i]; tx.role == tool {
			tx.value, parts = parts[0], parts[1:]
		}
	}
}

// fencedSystem fences the documents of a system text. Where it is not sure which these are, all that follows the first mark of
// one counts: a document could be written so that there is doubt.
func (x *exchange) fencedSystem(value string) string {
	if notes.Fence(value) == value {
		return value
	}
	if found, ok := extract.Find(value, x.control.extract); ok {
		return notes.FenceWhere(value, found.Inside)
	}
	if mark := documentMark.FindStringIndex(value); mark != nil {
		return notes.FenceWhere(value, func(at int) bool { return at >= mark[0] })
	}
	return value
}

// documentMark is what may begin a document.
var documentMark = regexp.MustCompile(`(?i)<(doc|context|passage|reference|file|item|result)|\[[0-9]+\]|[{]\s*"`)

// extent is a range of an item's bytes.
type extent struct{ from, to int }

// extentOf returns where a value stands, which is a part of the item; zero if it is not there.
func (it *item) extentOf(v gjson.Result) extent {
	if !v.Exists() {
		return extent{}
	}
	return extent{v.Index - it.from, v.Index - it.from + len(v.Raw)}
}

// fenceOthers fences what an item holds of tools and documents beside its texts: parts of other types, and strings that
// are not planned because their characters would not survive. It works on the JSON, and inserts what needs no escapes.
func fenceOthers(edits []edit, it *item, d dialect) []edit {
	for _, o := range it.foreign(d) {
		at := o.from
		fence := func(end int) {
			raw := it.value.Raw[at:end]
			if with := notes.Fence(raw); with != raw {
				edits = append(edits, edit{from: at, to: end, with: []byte(with)})
			}
		}
		for _, tx := range it.texts { // in the order of the item
			if tx.from >= at && tx.to <= o.to {
				fence(tx.from)
				at = tx.to
			}
		}
		fence(o.to)
	}
	return edits
}

// foreign returns what of an item is a tool's or a document's, where it is more than one text.
func (it *item) foreign(d dialect) []extent {
	if d == responses {
		return it.results()
	}
	raw := it.value.Raw[it.inner.from:it.inner.to]
	switch {
	case it.role == tool && (len(it.texts) != 1 || it.texts[0].list):
		return []extent{it.inner}
	case it.role == tool, !strings.HasPrefix(raw, "["):
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
