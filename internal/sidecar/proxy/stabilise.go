package proxy

import (
	"bytes"

	"github.com/ragpilot/ragpilot/stabilise"
)

// apis are the dialects that have system texts and tools.
var apis = map[dialect]stabilise.API{openAI: stabilise.Chat, anthropic: stabilise.Messages, responses: stabilise.Responses}

// stabilise returns the body whose beginning is kept as it was, see [Options.Stabiliser]. It is planned in place of what came.
// Conversations that are held out, or forwarded as they came for another reason, are known by it, too: what the client sends may begin with
// the time.
func (x *exchange) stabilise(b body) body {
	s := x.p.opt.Stabiliser
	if s == nil {
		return b
	}
	sent := s.Body(apis[x.dialect], stabilise.Conversation{Tenant: x.tenant, Name: x.control.session, Form: x.control.extract}, b.raw)
	if bytes.Equal(sent.Body, b.raw) {
		x.stabilised = sent
		return b
	}
	out, ok := readBody(sent.Body, x.dialect, x.p.opt.Compat != nil)
	if !ok {
		return b
	}
	x.stabilised, x.result.Stabilised = sent, true
	return out
}
