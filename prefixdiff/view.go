package prefixdiff

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// view is what is known of a part without its text.
type view struct {
	kind   Kind
	role   Role
	turn   int32
	size   int32  // in bytes
	hash   uint64 // of its bytes
	loose  uint64 // of JSON: whatever the order of members
	name   uint64 // of a tool or a setting
	words  []word // nil: not split yet
	chunks []piece
	text   string // if texts are kept
}

// viewSize is what a view takes in memory, without what it points to.
const viewSize = 160

// bytes is about what a view takes in memory.
func (v *view) bytes() int64 {
	return viewSize + 4*int64(cap(v.words)) + 16*int64(cap(v.chunks)) + int64(len(v.text))
}

// json reports whether a part of this kind is JSON.
func (k Kind) json() bool { return k == Function || k == Schema || k == Arguments }

// see makes the views of a prompt. Words are left out.
func (s splitter) see(p *Prompt) []view {
	views := make([]view, len(p.Parts))
	for i := range p.Parts {
		part := &p.Parts[i]
		v := &views[i]
		*v = view{
			kind: part.Kind, role: part.Role, turn: int32(part.Turn),
			size: int32(len(part.Text)), hash: s.hash(part.Text), name: nameOf(s, part),
		}
	}
	return views
}

// nameOf hashes the name of what has one.
func nameOf(s splitter, p *Part) uint64 {
	switch p.Kind {
	case Setting, Schema:
		return s.hash(p.Path)
	case Function:
		return s.hash(toolName(gjson.Parse(p.Text)))
	}
	return 0
}

// describe adds what is compared where two parts differ.
func (s splitter) describe(v *view, part *Part) {
	if v.words != nil {
		return
	}
	v.words, _ = s.split(part.worded(), make([]word, 0, len(part.Text)/5+4))
	if !part.Kind.json() {
		return
	}
	v.loose = v.hash
	if validjson.Valid([]byte(part.Text)) {
		v.loose = s.canonical(gjson.Parse(part.Text), "", 0)
	}
}

// toolName returns the name of a tool, or its type, if it is one of the provider's.
func toolName(tool gjson.Result) string {
	return cmp.Or(tool.Get("function.name").Str, tool.Get("name").Str, tool.Get("toolSpec.name").Str, tool.Get("type").Str)
}

// unordered are the lists of a schema whose order means nothing.
func unordered(name string) bool { return name == "required" || name == "enum" }

// canonical hashes JSON whatever the order of its members and the white space between them. Name is the member that v is.
func (s splitter) canonical(v gjson.Result, name string, depth int) uint64 {
	const object, list = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
	switch {
	case depth > maxDepth:
		return s.hash(v.Raw)
	case v.IsObject():
		var sum uint64 = object
		v.ForEach(func(key, value gjson.Result) bool {
			sum += mix(s.hash(key.Str), s.canonical(value, key.Str, depth+1))
			return true
		})
		return sum
	case v.IsArray():
		var sums []uint64
		v.ForEach(func(_, value gjson.Result) bool {
			sums = append(sums, s.canonical(value, "", depth+1))
			return true
		})
		if unordered(name) {
			slices.Sort(sums)
		}
		var sum uint64 = list
		for _, h := range sums {
			sum = mix(sum, h)
		}
		return sum
	case v.Type == gjson.String:
		return s.hash(v.Str) + 1
	}
	return s.hash(v.Raw)
}

// mix combines two hashes; the order counts.
func mix(a, b uint64) uint64 {
	h := a*0x9E3779B97F4A7C15 ^ b
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	return h ^ h>>32
}
