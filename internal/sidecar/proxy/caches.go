package proxy

import (
	"net/http"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

// Caches follows what engines say of their caches, and which prompts they are sent. It is called concurrently and does not
// block.
type Caches interface {
	// Follows reports whether prompts to a model are followed at all.
	Follows(model string) bool
	// Follow follows a prompt that is about to be sent. Nil: it does not.
	Follow(Prompt) Followed
}

// Followed is one prompt on its way. Its methods are called in this order, those of an answer that never came left out.
type Followed interface {
	// Sent returns what the request must have besides: members of its body that it does not have, "" for none, and headers.
	Sent() (member, value string, header http.Header)
	// Answer is given the answer, and may take out of its body what only Sent has asked for.
	Answer(*http.Response)
	// Ended takes whether the engine has computed the prompt, as far as is known.
	Ended(computed bool)
}

// Prompt is a prompt whose way in engines' caches is to be followed.
type Prompt struct {
	ID            string // unique in its tenant
	Tenant, Model string
	Path          string // one of the proxy's own
	Body          []byte // as it is sent; not to be kept or changed
	Indexed       bool   // the index endpoints know it by its ID
	Passes        bool   // its answer passes here: false for one that a gateway forwards
	Size          int    // bytes of Body in which the prompt stands
	Parts         []Part // what the pilot's index has of it
}

// Part is a run of documents in a prompt.
type Part struct {
	Scope         contextpilot.Scope
	ID            string // in the pilot's index
	Start, Length int    // bytes of the body
	Tokens        int    // by the pilot's count
}

// Lost reports that nothing of a part is in any cache any more.
func (p *Proxy) Lost(scope contextpilot.Scope, id string) { p.engine.Lost(scope, id) }

// Shrunk reports that only the first tokens of a part are left, by the pilot's count.
func (p *Proxy) Shrunk(scope contextpilot.Scope, id string, tokens int) {
	p.engine.Shrunk(scope, id, tokens)
}

// Cut takes the ID of a tenant's request, if the engine reports that only its first tokens are cached.
func (p *Proxy) Cut(tenant, id string, tokens int) { p.engine.Cut(tenant, id, tokens) }

// follow has a prompt followed in the engine's caches, if anything can be learned of it. What is forwarded as it came stays so.
func (x *exchange) follow(passes bool) {
	if x.p.opt.Caches == nil || x.dialect != openAI && x.dialect != completion || x.mode.asCame() || len(x.turn.Plans) == 0 && !x.indexed ||
		!x.p.opt.Caches.Follows(x.model) {
		return
	}
	pr := Prompt{
		ID: x.id, Tenant: x.tenant, Model: x.model, Path: x.r.URL.Path, Body: x.send, Indexed: x.indexed, Passes: passes, Size: len(x.send),
		Parts: make([]Part, len(x.turn.Plans)),
	}
	for i := range x.turn.Plans {
		pr.Parts[i] = x.body.part(&x.turn.Plans[i])
	}
	if pr.ID == "" {
		pr.ID = x.turn.Plans[0].ID
	}
	if x.followed = x.p.opt.Caches.Follow(pr); x.followed == nil {
		return
	}
	x.followedID = pr.ID
	if member, value, header := x.followed.Sent(); member != "" {
		x.send = addRaw(x.send, member, []byte(value))
		x.header = header
	}
}

// part returns where the documents of a plan stand in the body. Escapes are taken to be spread evenly.
func (b *body) part(pl *conversation.Plan) Part {
	text := unpack(pl.At)
	at, length := b.items[pl.Message].from+text.from+1, text.to-text.from-2
	return Part{
		Scope: pl.Scope, ID: pl.ID, Start: at + length*pl.Before/pl.Size, Length: length * max(pl.Size-pl.Before-pl.After, 0) / pl.Size,
		Tokens: pl.Tokens,
	}
}
