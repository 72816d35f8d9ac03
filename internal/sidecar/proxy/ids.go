package proxy

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// ids are the members of a body that name things to an engine: the request, the first of each name, and whose part of its
// cache it may use.
type ids struct {
	rid, requestID gjson.Result
	salt           gjson.Result // the last of its name, which engines take
	some           bool         // the body has members
}

// readIDs finds the IDs in an object.
func readIDs(root gjson.Result) ids {
	var m ids
	root.ForEach(func(key, value gjson.Result) bool {
		m.note(key.Str, value)
		return true
	})
	return m
}

// note is told of each member.
func (m *ids) note(name string, value gjson.Result) {
	m.some = true
	switch {
	case name == "rid" && !m.rid.Exists():
		m.rid = value
	case name == "request_id" && !m.requestID.Exists():
		m.requestID = value
	case name == "cache_salt":
		m.salt = value
	}
}

// own is the ID that the client has chosen, "" if it has not. Then free reports whether the request may be given one: not
// where the client has sent something that is no name, or is too long for one.
func (m *ids) own() (id string, free bool) {
	for _, v := range []gjson.Result{m.rid, m.requestID} {
		switch {
		case missing(v):
		case v.Type == gjson.String && len(v.Str) <= maxName:
			return strings.Clone(v.Str), false // it is kept longer than the body
		default:
			return "", false
		}
	}
	return "", true
}

// missing reports whether a member says nothing: it is not there, null or empty.
func missing(v gjson.Result) bool {
	return v.Type == gjson.Null || v.Type == gjson.String && v.Str == ""
}

// maxName is the length in bytes of the longest name of a request, a model or a session that is kept.
const maxName = 512

// tell adds to the edits of an object those that tell the engine an ID and a salt, where there is one and the client has not
// given its own.
func (m *ids) tell(raw []byte, id, salt string, edits []edit) []edit {
	var add [][]byte
	switch {
	case id == "":
	case !m.rid.Exists():
		add = append(add, member("rid", id))
	case missing(m.rid):
		edits = append(edits, edit{from: m.rid.Index, to: m.rid.Index + len(m.rid.Raw), with: quote(id)})
	}
	return m.tellSalt(raw, salt, m.some, add, edits)
}

// tellSalt adds the salt, too: behind members that are to be added, to an object that has some already or not.
func (m *ids) tellSalt(raw []byte, salt string, some bool, add [][]byte, edits []edit) []edit {
	switch {
	case salt == "":
	case !m.salt.Exists():
		add = append(add, member("cache_salt", salt))
	case m.salt.Type == gjson.Null:
		edits = append(edits, edit{from: m.salt.Index, to: m.salt.Index + len(m.salt.Raw), with: quote(salt)})
	}
	if len(add) == 0 {
		return edits
	}
	return append(edits, addition(raw, some, add))
}

func member(name, value string) []byte { return append([]byte(`"`+name+`":`), quote(value)...) }

// addition is the edit that puts members in JSON behind the others of the object raw, if there are some.
func addition(raw []byte, some bool, members [][]byte) edit {
	at := bytes.LastIndexByte(raw, '}')
	with := bytes.Join(members, []byte{','})
	if some {
		with = append([]byte{','}, with...)
	}
	return edit{from: at, to: at, with: string(with)}
}

// addRaw adds a member with a value in JSON to an object that does not have it.
func addRaw(raw []byte, name string, value []byte) []byte {
	root := gjson.ParseBytes(raw)
	if !root.IsObject() || root.Get(name).Exists() || bytes.LastIndexByte(raw, '}') < 0 {
		return raw
	}
	some := false
	root.ForEach(func(_, _ gjson.Result) bool {
		some = true
		return false
	})
	return splice(raw, []edit{addition(raw, some, [][]byte{append([]byte(`"`+name+`":`), value...)})})
}
