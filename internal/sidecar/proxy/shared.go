package proxy

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

const sharedObjects = "Stored objects are shared by all who use this server's key: send a key of your own for them, or set stored_objects"

// refersToShared returns the member of a body that names an object stored under our key, which may be another tenant's; "" if there
// is none, or if no other tenant can have one there.
func (p *Proxy) refersToShared(tenant string, raw []byte) string {
	if tenant == "" || p.opt.StoredObjects || !p.hasKey() || !mayRefer(raw) {
		return ""
	}
	return reference(gjson.ParseBytes(raw), atTop, 0)
}

// storedMembers are members whose text, or list of texts, names what is stored, at any depth of a body.
var storedMembers = map[string]bool{
	"file_id": true, "file_ids": true, "vector_store_ids": true, "vector_store_id": true, "container_id": true, "skill_id": true,
}

// topMembers do so as members of the body itself; container in the description of a tool, too.
var topMembers = map[string]bool{"previous_response_id": true, "conversation": true, "container": true, "prompt": true}

// mayRefer passes over most bodies: they have none of the names, and no letter that is escaped.
func mayRefer(raw []byte) bool {
	for _, part := range []string{
		"file_id", "vector_store_id", "skill_id", "previous_response_id", `"conversation"`, `"container`, `"prompt"`, "item_reference",
		`"audio"`, `"input"`, `\u00`,
	} {
		if bytes.Contains(raw, []byte(part)) {
			return true
		}
	}
	return false
}

// maxReferenceDepth is how deep members are looked for. No API nests its own members so deep.
const maxReferenceDepth = 16

// part of a body in which a member stands.
type part int

const (
	inside  part = iota
	atTop        // the body itself
	inTools      // what describes tools
	inInput      // the list of items of /v1/responses
)

// applications are members of the body whose content is the application's own.
var applications = map[string]bool{"metadata": true, "response_format": true, "chat_template_kwargs": true}

// reference looks for such a member. What describes a tool's parameters or is a tool's input has names of the application's own.
// A name may stand in an object twice, and engines take the last: all count.
func reference(v gjson.Result, where part, depth int) string {
	if depth > maxReferenceDepth {
		return ""
	}
	toolUse := where != atTop && v.IsObject() && strings.HasSuffix(v.Get("type").Str, "tool_use")
	if where == inInput && v.IsObject() && v.Get("id").Exists() && v.Get("type").Type != gjson.String && !v.Get("role").Exists() {
		return "id" // a reference needs no type
	}
	found := ""
	v.ForEach(func(name, value gjson.Result) bool {
		switch {
		case storedMembers[name.Str] && hasText(value),
			where == atTop && topMembers[name.Str] && names(value),
			where == inTools && name.Str == "container" && names(value),
			name.Str == "audio" && value.Get("id").Type == gjson.String:
			found = name.Str
		case name.Str == "type" && value.Str == "item_reference":
			found = value.Str
		case where == atTop && applications[name.Str],
			where == atTop && name.Str == "text",
			where == inTools && (name.Str == "parameters" || name.Str == "input_schema"),
			toolUse && name.Str == "input":
		case value.IsObject() || value.IsArray():
			found = reference(value, within(where, name.Str), depth+1)
		}
		return found == ""
	})
	return found
}

// within returns the part that a member's content is.
func within(where part, name string) part {
	switch {
	case where == inTools, where == atTop && (name == "tools" || name == "functions"):
		return inTools
	case where == atTop && name == "input", where == inInput && name == "": // the items of the list
		return inInput
	}
	return inside
}

// names reports whether a value is an ID, or an object with one. The prompt of a plain completion is a text, and is not asked about.
func names(v gjson.Result) bool { return hasText(v) || v.Get("id").Exists() }

// hasText reports whether a value is a text, or a list with one.
func hasText(v gjson.Result) bool {
	if v.Type == gjson.String {
		return true
	}
	found := false
	if v.IsArray() {
		v.ForEach(func(_, item gjson.Result) bool {
			found = item.Type == gjson.String
			return !found
		})
	}
	return found
}

// refuseShared answers 403 if a body refers to such an object.
func (p *Proxy) refuseShared(w http.ResponseWriter, r *http.Request, raw []byte) (refused bool) {
	member := p.refersToShared(tenantOf(r), raw)
	if member != "" {
		writeError(w, http.StatusForbidden, member+": "+sharedObjects)
	}
	return member != ""
}

// count forwards a request that counts the tokens of a prompt, which may refer to stored objects as the prompt itself may.
func (p *Proxy) count(w http.ResponseWriter, r *http.Request) {
	raw, ok := p.read(w, r)
	if ok && !p.refuseShared(w, r, raw) {
		p.forward(w, r, outgoing{base: p.opt.Upstream, body: raw, header: p.credentials(r), failed: unreachableEngine})
	}
}
