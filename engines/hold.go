package engines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
)

// HoldOptions say when [Router.Do] holds a request back: while another one on the same replica computes the same long prefix. It
// would compute it again. Zero values are the recommended setup.
type HoldOptions struct {
	// Tokens is how many tokens of a prompt another request must be computing; about, as they are estimated at four bytes each. 0: 100.
	Tokens int
	// Longest bounds how long a request is held; 0: a minute; negative: none is held.
	Longest time.Duration
	// All holds requests also before engines that are not [Unshared], until the first piece of the other's answer. It is for engines
	// with a paged cache that compute the same prefix twice. vLLM, SGLang and the local engine share or wait themselves.
	All bool
}

// Unshared is implemented by engines that have slots for prompts, none of which uses what another one has: llama.cpp's server. A
// prefix then serves another request when the one that has computed it has ended. See [HoldOptions].
type Unshared interface {
	// UnsharedSlots returns the number of slots, as far as it is known; less than 2: nothing need be held. It must not block.
	UnsharedSlots() int
}

// check returns an error that names the option and its value.
func (o HoldOptions) check() error {
	if o.Tokens < 0 {
		return fmt.Errorf("engines: RouterOptions.Hold.Tokens %d: want at least 0", o.Tokens)
	}
	return nil
}

// gate returns what holds requests for an engine back; nil: nothing does.
func (o HoldOptions) gate(e Engine) (*holdback.Gate, error) {
	if o.Longest < 0 {
		return nil, nil
	}
	h := holdback.Options{Tokens: o.Tokens, Longest: o.Longest}
	switch u, ok := e.(Unshared); {
	case ok:
		h.Slots = u.UnsharedSlots
	case e == nil || !o.All:
		return nil, nil
	}
	return holdback.New(h)
}

// HoldStats counts the requests that [Router.Do] has held back, see [HoldOptions].
type HoldStats struct {
	Held   int64         // since the replica was added
	Late   int64         // of them, those that went on because a bound was reached
	Waited time.Duration // all of them together
}

// enter waits until the request may be sent to its replica. The error is that of ctx, or says that the replica has lost its cache
// meanwhile, see heldInVain.
func (rt *Route) enter(ctx context.Context, req *Request) (*holdback.Pass, error) {
	if rt.replica.gate == nil {
		return nil, nil
	}
	found := rt.Score.Match.Tokens
	pass, err := rt.replica.gate.Enter(ctx, holdback.Prompt{
		Chain: chainOf(rt.Plan.Scope.Tenant, req), Found: found, Left: max(rt.Score.Match.Prompt-found, 0),
	})
	if err != nil {
		return nil, fmt.Errorf("engines: replica %q: while the request was held: %w", rt.Score.Replica, err)
	}
	return pass, nil
}

// heldInVain reports whether an error says that a request was held for a replica that went down or lost its cache. It was not sent.
func heldInVain(err error) bool { return errors.Is(err, holdback.ErrReset) }

// chainOf names the beginnings of a request's prompt. Tenants have nothing in common.
func chainOf(tenant string, req *Request) []uint64 {
	var kind strings.Builder
	fmt.Fprintf(&kind, "%q %q", tenant, req.Model)
	for _, name := range slices.Sorted(maps.Keys(req.Extra)) { // tools, a cache salt, an adapter
		fmt.Fprintf(&kind, " %q %q", name, req.Extra[name])
	}
	texts := make([]string, 0, 2*len(req.Messages))
	for _, m := range req.Messages {
		texts = append(texts, string(m.Role), m.Content)
	}
	return holdback.Chain(kind.String(), texts...)
}

// endPass reports to a gate how a request has ended.
func endPass(pass *holdback.Pass, u Usage, err error) {
	cached := -1
	if u.CachedKnown {
		cached = u.CachedTokens
	}
	pass.Done(err == nil, cached)
}
