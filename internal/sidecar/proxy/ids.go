package proxy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// ids are the members of a body that name things to an engine: the request, the first of each name, and whose part of its
// cache it may use.
type ids struct {
	rid, requestID gjson.Result
	salt           gjson.Result // the last of its name, which engines take
	some           bool         // the body has members
	asks           bool         // it asks a provider what it says of its cache
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

// note takes a member.
func (m *ids) note(name string, value gjson.Result) {
	m.some = true
	switch {
	case name == "rid" && !m.rid.Exists():
		m.rid = value
	case name == "request_id" && !m.requestID.Exists():
		m.requestID = value
	case name == "cache_salt":
		m.salt = value
	case name == "diagnostics", name == "prompt_cache_options":
		m.asks = value.IsObject()
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

// add adds the edits that put an ID and a salt into an object, where there is one and the client has not given its own.
func (m *ids) add(raw []byte, id, salt string, edits []edit) []edit {
	var members [][]byte
	switch {
	case id == "":
	case !m.rid.Exists():
		members = append(members, member("rid", id))
	case missing(m.rid):
		edits = append(edits, edit{from: m.rid.Index, to: m.rid.Index + len(m.rid.Raw), with: quote(id)})
	}
	return m.addSalt(raw, salt, m.some, members, edits)
}

// addSalt adds the salt, too: behind members that are added, to an object that has some already or not.
func (m *ids) addSalt(raw []byte, salt string, some bool, members [][]byte, edits []edit) []edit {
	switch {
	case salt == "":
	case !m.salt.Exists():
		members = append(members, member("cache_salt", salt))
	case m.salt.Type == gjson.Null:
		edits = append(edits, edit{from: m.salt.Index, to: m.salt.Index + len(m.salt.Raw), with: quote(salt)})
	}
	if len(members) == 0 {
		return edits
	}
	return append(edits, addition(raw, some, members))
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

// idHeader names a request to its engine. vLLM prefers it to what the body says.
const idHeader = "X-Request-Id"

// clientID is the ID that the client has put into the header, "" if there is none that could stand in reports.
func clientID(r *http.Request) string {
	id := r.Header.Get(idHeader)
	if len(id) > maxName || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return id
}

// withID adds to the headers that go upstream the ID under which a request is known here, "" for none. An engine reports
// evictions by it.
func withID(h http.Header, id string) http.Header {
	if id == "" {
		return h
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set(idHeader, id)
	return h
}

// sendsID reports whether the engine gets the ID of the first prompt that is planned in the request: not where it would never be used
// in a report, and not where the request passes as it came.
func (x *exchange) sendsID() bool {
	return x.p.opt.Provider == nil && !x.mode.asCame() && x.dialect != responses
}

// engineID is the ID that the engine gets in the header: that of the first prompt that was planned in the request, or the request's
// own where the client's header names another. "": none.
func (x *exchange) engineID() string {
	switch {
	case !x.sendsID():
	case len(x.turn.Plans) > 0:
		return x.turn.Plans[0].ID
	case x.r.Header.Get(idHeader) != "":
		return x.id
	}
	return ""
}

// promptID is the ID for the first prompt that is planned: the request's own, or the client's, where that is free. "": none of them.
func (x *exchange) promptID() string {
	if x.id != "" {
		return x.id
	}
	id := clientID(x.r)
	if id == "" || x.p.engine.Knows(x.tenant, id) {
		return "" // the client has sent it before
	}
	return id
}

// salt is what keeps a tenant's prompts apart from all others in an engine's cache, and cannot be guessed: 64 hexadecimal
// digits. Empty: it is switched off, or there is no tenant. A provider keeps its customers apart itself.
func (p *Proxy) salt(tenant string) string {
	if p.opt.SaltKey == "" || tenant == "" || p.opt.Provider != nil {
		return ""
	}
	h := hmac.New(sha256.New, []byte(p.opt.SaltKey))
	h.Write([]byte(tenant))
	return hex.EncodeToString(h.Sum(nil))
}

// salted is a body with its tenant's salt, and with nothing else changed.
func (p *Proxy) salted(tenant string, raw []byte) []byte {
	salt := p.salt(tenant)
	if salt == "" {
		return raw
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() {
		return raw
	}
	m := readIDs(root)
	return splice(raw, m.add(raw, "", salt, nil))
}
