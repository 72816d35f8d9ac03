package proxy

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// newID makes a request ID in the reference's form.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req-" + hex.EncodeToString(b[:])
}

// completions gives a plain completion a request ID under both names that engines know. The prompt is left alone: it is
// one text, in which documents cannot be found for certain.
func (p *Proxy) completions(w http.ResponseWriter, r *http.Request) {
	x := p.receive(w, r, completion)
	raw, ok := p.read(w, r)
	if !ok {
		return
	}
	if !validjson.Valid(raw) {
		writeError(w, http.StatusBadRequest, "Invalid JSON body")
		return
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() || p.opt.Provider != nil {
		p.forward(w, r, outgoing{base: p.opt.Upstream, body: raw, header: p.credentials(r), failed: unreachableEngine})
		return
	}
	c := withIDs(raw, root, p.salt(x.tenant), clientID(r))
	x.mode, x.send, x.id, x.model = unplanned, c.body, c.id, c.model
	x.indexed = x.id != "" && p.opt.Index != nil && p.opt.Index.HasIndex(x.tenant)
	x.track()
	if err := x.hold(); err != nil {
		x.abandon(err)
		return
	}
	x.leave("")
	x.follow(true)
	x.ready = x.began // nothing was planned
	x.forward(unreachableEngine, func(resp *http.Response) func(usage) {
		show := func(u usage) {
			if resp.StatusCode == http.StatusOK {
				text, _ := json.Marshal(struct {
					ID     json.RawMessage `json:"request_id"`
					Tokens int             `json:"tokens_reported"`
				}{c.shown, max(u.total, 0)})
				resp.Header.Set(ResultHeader, ascii(text))
			}
		}
		show(unknown) // until more is known
		return show
	})
}

// plainCompletion is a request to /v1/completions as it is sent.
type plainCompletion struct {
	body []byte
	// id is the request's, "" if what the client has sent is no name.
	id    string
	shown json.RawMessage // the ID as the client sees it in the answer
	model string
}

// withIDs writes the ID of a plain completion, the client's own or a new one, into its body under both names, and takes
// out what engines do not know. The tenant's salt is added, if there is one. An ID that is no name, such as a list of them, stays as
// it is. other is the client's ID from elsewhere, "" if it has none.
func withIDs(raw []byte, root gjson.Result, salt, other string) plainCompletion {
	m := readIDs(root)
	own := m.requestID
	if missing(own) {
		own = m.rid
	}
	var c plainCompletion
	switch {
	case missing(own):
		c.id = cmp.Or(other, newID())
	case own.Type == gjson.String && len(own.Str) <= maxName:
		c.id = strings.Clone(own.Str) // it is kept longer than the body
	case len(own.Raw) <= maxName:
		c.shown = json.RawMessage(strings.Clone(own.Raw))
	default:
		c.shown = json.RawMessage("null")
	}
	var add [][]byte
	if c.id != "" {
		c.shown = json.RawMessage(quote(c.id))
		add = [][]byte{member("rid", c.id), member("request_id", c.id)}
	}
	var named gjson.Result
	var edits []edit
	kept := -1             // end of the last member that stays
	first, behind := -1, 0 // members that go and have none in front that stays
	root.ForEach(func(key, value gjson.Result) bool {
		if key.Str == "model" && !named.Exists() {
			named = value
		}
		to := value.Index + len(value.Raw)
		goes := key.Str == "apply_chat_template" || key.Str == "system_prompt" ||
			c.id != "" && (key.Str == "rid" || key.Str == "request_id")
		switch {
		case !goes:
			if first >= 0 {
				edits, first = append(edits, edit{from: first, to: key.Index}), -1
			}
			kept = to
		case kept >= 0: // with the comma in front
			edits = append(edits, edit{from: kept, to: to})
			kept = to
		default:
			if first < 0 {
				first = key.Index
			}
			behind = to
		}
		return true
	})
	if first >= 0 {
		edits = append(edits, edit{from: first, to: behind})
	}
	edits = m.addSalt(raw, salt, kept >= 0, add, edits)
	c.body, c.model = splice(raw, edits), strings.Clone(named.Str) // the answer may take minutes: not all of the body
	return c
}
