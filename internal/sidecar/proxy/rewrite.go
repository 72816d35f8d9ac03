package proxy

import (
	"net/http"

	"github.com/ragpilot/ragpilot/conversation"
)

// Rewritten is a request that somebody else forwards, such as a gateway. Answer and Ended must be called, so that the index of
// prompts learns what became of it.
type Rewritten struct {
	// Body is what is to be sent; nil: what came.
	Body []byte
	// Answer returns the headers that are to be added to the answer, when its status is known.
	Answer func(status int) http.Header
	// Ended tells how the answer ended, with its first and last bytes, in which the usage stands.
	Ended func(head, tail []byte, err error)
}

// Rewrite plans a request without forwarding it. What is not understood is not changed; requests to a cloud provider are not
// either, as they carry its credentials.
func (p *Proxy) Rewrite(r *http.Request, raw []byte) Rewritten {
	d, ok := dialects[r.URL.Path]
	if r.URL.Path == "/v1/completions" && r.Method == http.MethodPost && valid(raw) {
		return Rewritten{Body: p.salted(tenantOf(r), raw), Answer: func(int) http.Header { return nil }, Ended: func(_, _ []byte, _ error) {}}
	}
	if !ok || r.Method != http.MethodPost || p.opt.Provider != nil || !valid(raw) {
		return Rewritten{Answer: func(int) http.Header { return nil }, Ended: func(_, _ []byte, _ error) {}}
	}
	x := &exchange{p: p, r: r, dialect: d, began: p.opt.Now(), tenant: tenantOf(r), control: readControl(r.Header), raw: raw, send: raw, turn: new(conversation.Turn)}
	err := x.prepare()
	x.leave("")
	if err == nil {
		x.follow(false)
	}
	x.sent = p.opt.Now()
	if err != nil { // the gateway has gone
		x.end(unknown, err)
		return Rewritten{Answer: func(int) http.Header { return nil }, Ended: func(_, _ []byte, _ error) {}}
	}
	status := 0
	return Rewritten{
		Body: x.send,
		Answer: func(code int) http.Header {
			status, x.first = code, p.opt.Now().Sub(x.began)
			h := http.Header{}
			x.head(h)
			return h
		},
		Ended: func(head, tail []byte, err error) {
			x.begun = status > 0 && status < 300 && len(head) > 0
			switch {
			case status == 0:
				x.end(unknown, errUnreachable)
			case status >= 300 && err == nil:
				x.end(findUsage(head, tail), errStatus)
			default:
				x.end(findUsage(head, tail), err)
			}
		},
	}
}

// dialects are the endpoints with messages.
var dialects = map[string]dialect{"/v1/chat/completions": openAI, "/v1/messages": anthropic, "/v1/responses": responses}
