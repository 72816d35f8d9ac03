package proxy

import (
	"net/http"

	"github.com/ragpilot/ragpilot/internal/base/validjson"
)

// Rewritten is a request that another program forwards, such as a gateway. Answer and Ended must be called, so that the index of
// prompts learns what became of it.
type Rewritten struct {
	// Body is what must be sent; nil: what came.
	Body []byte
	// Answer returns the headers to add to the answer, when its status is known.
	Answer func(status int) http.Header
	// Ended takes how the answer ended, with its first and last bytes, in which the usage stands.
	Ended func(head, tail []byte, err error)
}

// Rewrite plans a request without forwarding it. What is not understood is not changed; requests to a cloud provider are not
// either, as they carry its credentials.
func (p *Proxy) Rewrite(r *http.Request, raw []byte) Rewritten {
	untouched := Rewritten{Answer: func(int) http.Header { return nil }, Ended: func(_, _ []byte, _ error) {}}
	d, ok := dialects[r.URL.Path]
	if !ok || r.Method != http.MethodPost || !validjson.Valid(raw) {
		return untouched
	}
	if d == completion {
		untouched.Body = p.salted(tenantOf(r), raw)
		return untouched
	}
	if p.opt.Provider != nil {
		return untouched
	}
	x := p.receive(nil, r, d)
	x.raw = raw
	err := x.prepare()
	x.leave("")
	if err == nil {
		x.follow(false)
	}
	x.ready = p.opt.Now()
	if err != nil { // the gateway has gone
		x.end(unknown, err)
		return untouched
	}
	status := 0
	x.sentAt = x.ready
	return Rewritten{
		Body: x.send,
		Answer: func(code int) http.Header {
			status, x.first = code, p.opt.Now().Sub(x.began)
			h := http.Header{}
			x.setResult(h)
			x.diagnose(code, h)
			return h
		},
		Ended: func(head, tail []byte, err error) {
			x.begun = status > 0 && status < 300 && len(head) > 0
			u := findUsage(head, tail)
			switch {
			case status == 0:
				u, err = unknown, errUnreachable
			case status >= 300 && err == nil:
				err = errStatus
			}
			x.end(u, err)
		},
	}
}

// dialects are the endpoints with prompts.
var dialects = map[string]dialect{
	"/v1/chat/completions": openAI, "/v1/messages": anthropic, "/v1/responses": responses, "/v1/completions": completion,
}
