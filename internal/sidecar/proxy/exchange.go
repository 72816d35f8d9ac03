package proxy

import (
	"net/http"
	"time"

	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/tracing"
	"github.com/ragpilot/ragpilot/stabilise"
)

// exchange is one prompt on its way: it is received, planned, sent and answered. What is known after each of these steps is a type of
// its own.
type exchange struct {
	p     *Proxy
	stage tracing.Span // of parsing, then of planning
	received
	sending
	answered
}

// received is what was read from the client.
type received struct {
	w       http.ResponseWriter // nil: a gateway forwards the request
	r       *http.Request
	dialect dialect
	began   time.Time
	tenant  string
	control control
	raw     []byte // as it came
	body    *body  // nil: it has no messages, or they were sent
}

// sending is what was planned, and what is sent to the engine.
type sending struct {
	mode       mode
	share      float64 // of sessions that are held out
	model      string
	session    string
	id         string // request ID for the engine; "": none
	indexed    bool   // the index endpoints know it by its ID
	turn       *conversation.Forward
	result     result
	stabilised stabilise.Sent // empty: there is no stabiliser
	rewritten  bool           // texts were changed, now or in earlier turns
	send       []byte         // as it goes
	header     http.Header    // in place of the client's, where set
	would      []byte         // in shadow mode what would have been sent, if texts are kept
	ready      time.Time      // planned; from then on it may be held
	cache      cloudcache.Handle
	followed   Followed       // nil: it is not followed in the engine's cache
	pass       *holdback.Pass // nil: it was not looked at whether to hold it

	followedID string    // its ID there
	sentAt     time.Time // known if prompts are diagnosed
	asks       bool      // the client asks the provider what it says of its cache
}

// answered is what the engine answered, and how fast.
type answered struct {
	first   time.Duration // to the first byte
	begun   bool          // a byte of an answer that is no error has come
	settled bool          // the provider's cache knows the answer's usage
	ended   bool          // it was reported

	reported  string    // ID of the report; "": not chosen yet
	diagnosed Diagnosed // nil: it is not looked at
	reasons   *reasons  // nil: the provider is not asked
}

// receive begins an exchange.
func (p *Proxy) receive(w http.ResponseWriter, r *http.Request, d dialect) *exchange {
	return &exchange{
		p:        p,
		received: received{w: w, r: r, dialect: d, began: p.opt.Now(), tenant: tenantOf(r), control: readControl(r.Header)},
		sending:  sending{turn: new(conversation.Forward)},
	}
}

// mode is how a request is treated. Settings and the client decide that for a conversation that begins. One that has begun otherwise
// goes on as it began, since the engine has its messages in the cache that way.
//
//	mode           when                                                     planned  forwarded   reported as
//	rewrite        normally                                                 yes      rewritten   planned
//	unplanned      the client says so, or places in texts must stay         no       as it came  -
//	shadow         in shadow mode                                           yes      as it came  planned, shadow
//	heldOut        its session is held out                                  no       as it came  held out
//	heldOutShadow  both                                                     no       as it came  held out, shadow
//	stillRewrite   it began as rewrite, and would be another mode now       yes      rewritten   planned, carried
//	stillAsCame    it began as it came, and would be rewritten now          no       as it came  carried
//
// Also a request that is unplanned is given an ID.
type mode uint8

const (
	rewrite mode = iota
	unplanned
	shadow
	heldOut
	heldOutShadow
	stillRewrite
	stillAsCame
)

func (m mode) planned() bool { return m == rewrite || m == shadow || m == stillRewrite }
func (m mode) asCame() bool  { return m == shadow || m.heldOut() || m == stillAsCame }
func (m mode) shadow() bool  { return m == shadow || m == heldOutShadow }
func (m mode) heldOut() bool { return m == heldOut || m == heldOutShadow }
func (m mode) carried() bool { return m == stillRewrite || m == stillAsCame }

// modeOf returns the mode of a conversation that begins.
func modeOf(inShadow, isHeldOut bool) mode {
	switch {
	case inShadow && isHeldOut:
		return heldOutShadow
	case isHeldOut:
		return heldOut
	case inShadow:
		return shadow
	}
	return rewrite
}
