package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// MissHeader is the response header that says why the prompt will miss the engine's cache, see [Options.MissHeader].
const MissHeader = "X-Ragpilot-Miss"

// Diagnosis finds out why prompts were not in the engine's cache. It is called concurrently and does not block.
type Diagnosis interface {
	// Sent takes a prompt whose answer begins. Nil: it is not looked at.
	Sent(SentPrompt) Diagnosed
}

// Diagnosed is a prompt that is looked at.
type Diagnosed interface {
	// Miss compares the prompt with earlier ones now, and returns what the header says; "": nothing is lost.
	Miss() string
	// Ended takes how the answer ended, once, behind all else.
	Ended(Ended)
}

// SentPrompt is a prompt whose answer begins.
type SentPrompt struct {
	Tenant, Model string
	Session       string // as the client named it; "": it did not
	EngineID      string // under which the engine reports that it evicted the prompt; "": it does not
	Replica       string // which one answers; "": it is not known
	Body          []byte // as it was sent; it does not change any more
	Sent          time.Time
}

// Ended is how an answer ended. Numbers of tokens are -1 if they are not known.
type Ended struct {
	ID       string    // that of the report
	LogID    string    // under which the server logs the request; "": it has none
	Computed bool      // the engine has computed the prompt, as far as is known
	First    time.Time // the first byte of the answer
	Prompt   int       // tokens of the whole prompt
	Cached   int       // of them from the cache
	Usage    cloudcache.Usage
	Theirs   ProviderMiss
}

// ProviderMiss is what a provider says of its own cache, if the client has asked for that.
type ProviderMiss struct {
	Reason string // "": it said nothing
	Tokens int    // that were missed, by its own estimate; -1: it did not say
}

// diagnose has the prompt looked at, whose answer begins with these headers.
func (x *exchange) diagnose(status int, header http.Header) {
	if x.p.opt.Diagnosis == nil || status >= http.StatusMultipleChoices || len(x.send) == 0 {
		return
	}
	p := SentPrompt{
		Tenant: x.tenant, Model: x.model, Session: x.control.session, EngineID: x.id, Body: x.send, Sent: x.sentAt,
	}
	if x.followed != nil {
		p.EngineID = x.followedID
	}
	if name := x.p.opt.ReplicaHeader; name != "" {
		p.Replica = header.Get(name)
	}
	x.diagnosed = x.p.opt.Diagnosis.Sent(p)
	if x.diagnosed == nil || !x.p.opt.MissHeader {
		return
	}
	header.Del(MissHeader) // of another sidecar behind this one, which compares what this one has changed
	if miss := x.diagnosed.Miss(); miss != "" {
		header.Set(MissHeader, miss)
	}
}

// endDiagnosis says how the answer ended.
func (x *exchange) endDiagnosis(u usage, err error, computed bool) {
	if x.diagnosed == nil {
		return
	}
	e := Ended{
		ID: x.reportID(), LogID: x.p.opt.RequestID(x.r.Context()), Computed: computed && !errors.Is(err, errStatus), First: x.began.Add(x.first),
		Prompt: u.whole(), Cached: u.cached, Usage: u.counts(), Theirs: ProviderMiss{Tokens: -1},
	}
	if x.reasons != nil {
		e.Theirs = x.reasons.found()
	}
	x.diagnosed.Ended(e)
	x.diagnosed = nil
}
