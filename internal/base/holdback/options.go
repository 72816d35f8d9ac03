package holdback

import (
	"fmt"
	"time"
)

// Defaults of [Options].
const (
	// DefaultTokens is Strata's (section 4.3.1). A prefill of 100 tokens takes about as long as a few decoding steps: for less,
	// waiting gains nothing.
	DefaultTokens = 100
	// DefaultLongest is more than a prefill of some thousand tokens takes on one core, where waiting saves most. It matters where the other
	// request hangs, or before anything was measured: see [Gate].
	DefaultLongest = time.Minute
)

// Bounds of a Gate: prefixes known, some 100 bytes each, and requests held at a time. Beyond the latter nothing is held.
const (
	maxKnown = 1 << 16
	maxHeld  = 256
)

// Options configures a [Gate]. Zero values are the recommended setup of an engine with a paged cache.
type Options struct {
	// Tokens is how many tokens of a prompt must be computed by another one before it is held. They are estimated from the text, at
	// four bytes each. 0: DefaultTokens.
	Tokens int
	// Longest bounds how long a request is held. 0: DefaultLongest.
	Longest time.Duration
	// Slots returns how many slots the engine has, none of which uses what another one has. It must not block, and is called with the
	// gate's lock held. Less than 2: nothing is held. nil: the engine has a paged cache, and a prefix serves all once it is computed.
	Slots func() int
}

// withDefaults returns a copy of o with every field set, or an error that names the field and its value.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Tokens < 0:
		return o, fmt.Errorf("holdback: Options.Tokens %d: want at least 0", o.Tokens)
	case o.Longest < 0:
		return o, fmt.Errorf("holdback: Options.Longest %v: want at least 0s", o.Longest)
	}
	if o.Tokens == 0 {
		o.Tokens = DefaultTokens
	}
	if o.Longest == 0 {
		o.Longest = DefaultLongest
	}
	return o, nil
}
