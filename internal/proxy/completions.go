package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

var (
	errStatus      = errors.New("the upstream answered with an error")
	errUnreachable = errors.New("the upstream could not be reached")
)

// newID makes a request ID in the reference's form.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req-" + hex.EncodeToString(b[:])
}

// completions gives a plain completion a request ID under both names that engines know. The prompt is left alone: it is
// one text, and nobody can tell which of it are documents.
func (p *Proxy) completions(w http.ResponseWriter, r *http.Request) {
	began := p.opt.Now()
	raw, ok := p.read(w, r)
	if !ok {
		return
	}
	if !valid(raw) {
		writeError(w, http.StatusBadRequest, "Invalid JSON body")
		return
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() || p.opt.Provider != nil {
		p.forward(w, r, outgoing{base: p.opt.Upstream, body: raw, header: p.credentials(r), failed: "Inference engine backend error"})
		return
	}
	id := newID()
	for _, member := range []string{"rid", "request_id"} {
		if v := root.Get(member); v.Type == gjson.String && v.Str != "" {
			id = strings.Clone(v.Str) // it is kept longer than the body
		}
	}
	name := tenantOf(r)
	indexed := p.opt.Index != nil && p.opt.Index.HasIndex(name)
	if indexed {
		p.opt.Index.Track(name, id)
	}
	body := raw
	for _, member := range []string{"rid", "request_id", "apply_chat_template", "system_prompt"} {
		body = dropMember(body, member)
	}
	body = addMember(addMember(body, "rid", id), "request_id", id)
	model := strings.Clone(root.Get("model").Str) // the answer may take minutes: not all of the body
	first := time.Duration(0)
	var followed Followed
	header := p.credentials(r)
	if indexed && p.opt.Caches != nil && p.opt.Caches.Follows(model) {
		body, header, followed = p.followed(r, body, header, Prompt{ID: id, Tenant: name, Model: model, Indexed: true})
	}
	p.forward(w, r, outgoing{
		base: p.opt.Upstream, body: body, header: header, failed: "Inference engine backend error",
		answer: func(resp *http.Response) error {
			if followed != nil {
				followed.Answer(resp)
			}
			report := func(u usage) {
				if resp.StatusCode == http.StatusOK {
					text, _ := json.Marshal(struct {
						ID     string `json:"request_id"`
						Tokens int    `json:"tokens_reported"`
					}{id, max(u.total, 0)})
					resp.Header.Set(ResultHeader, string(text))
				}
			}
			if isStream(resp.Header) || resp.ContentLength < 0 || resp.ContentLength > shortAnswer {
				report(unknown)
			}
			return p.watch(resp, began, func(took time.Duration) { first = took }, report, func(u usage, err error) {
				if followed != nil {
					followed.Ended(err == nil && resp.StatusCode < 300)
				}
				report := Report{
					ID: id, At: began, Tenant: name, Path: r.URL.Path, Model: model, TTFT: first, Total: p.opt.Now().Sub(began), Prompt: u.whole(), Cached: u.cached, Predicted: -1, Usage: u.counts(),
					Failed: err != nil || resp.StatusCode >= 300,
				}
				describe(p.opt.Tracer.Current(r.Context()), &report, u.output)
				if p.opt.Recorder != nil {
					p.opt.Recorder.Answered(report)
				}
			})
		},
	})
}

// dropMember takes a member out of a JSON object, as often as it stands there.
func dropMember(raw []byte, name string) []byte {
	var drop []edit
	kept := -1             // end of the last member that stays
	first, behind := -1, 0 // members that go and have none in front that stays
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		end := value.Index + len(value.Raw)
		switch {
		case key.Str != name:
			if first >= 0 {
				drop, first = append(drop, edit{from: first, to: key.Index}), -1
			}
			kept = end
		case kept >= 0: // with the comma in front
			drop = append(drop, edit{from: kept, to: end})
			kept = end
		default:
			if first < 0 {
				first = key.Index
			}
			behind = end
		}
		return true
	})
	if first >= 0 {
		drop = append(drop, edit{from: first, to: behind})
	}
	return splice(raw, drop)
}
