package workload

import (
	"cmp"
	"fmt"
	"math"
)

// Options describe a workload. A zero number stands for its default, except where 0 has a meaning of its own.
type Options struct {
	// Seed makes two workloads differ that are alike in all else.
	Seed uint64
	// Contexts is the number of requests: Sessions x Turns if both are given, else 1000.
	Contexts int
	// K is the mean number of blocks that a request retrieves, 15 by default. KSpread lets it vary evenly from
	// K-KSpread to K+KSpread; it must be less than K.
	K, KSpread int
	// Pool is the number of blocks, whether a request retrieves them or not. The default is a third of Contexts,
	// but at least 20 times K for each tenant; with an Overlap of 0 as many as are needed.
	Pool int
	// Topics is the number of groups that the blocks come in: Pool/2K by default, Pool/4K when Growing.
	Topics int
	// Zipf is the exponent of the popularity of topics; 0 makes all equally popular. Within a topic it is 1 more: even
	// then some blocks are more central than others.
	Zipf float64
	// Drift is the share of the topics that become the most popular one for a time and cool down after it: 0 keeps
	// popularity as it is, with 1 each topic has its day.
	Drift float64
	// Bursts is the mean length of runs of requests (or of sessions, if they have several turns) on one topic; 0
	// and 1 make none.
	Bursts int
	// Tenants have pools of their own and never share a block. Topics and pool are divided evenly among them; the
	// default is 1.
	Tenants int
	// Sessions is the number of conversations, Turns how long each of them is; one of the two follows from the
	// other and Contexts, which are divided evenly among sessions. The default is a session for each request. Up to 16
	// sessions run at a time.
	Sessions, Turns int
	// Overlap, from 0 to 1, is the mean share of a request's blocks that the request before it on the same topic,
	// or in its session, had too. With 0 no two requests share any block. nil leaves it to chance, and lets later turns
	// of a session retrieve [TurnOverlap] of their blocks again.
	Overlap *float64
	// Growing lets blocks come into being as time goes on, as memories do: a topic begins with as many as a request
	// may need, and the rest of them appear evenly over the trace. Topics then have no blocks in common.
	Growing bool
	// BlockTokens is the mean length of a block's text, 100 by default. Lengths vary unless EqualBlocks is set.
	BlockTokens int
	EqualBlocks bool

	rule rule // who draws the requests
}

// TurnOverlap is the share of a later turn's blocks that its session retrieved before, unless Options say otherwise:
// what the ContextPilot paper (Section 3.1) reports of multi-turn retrieval.
const TurnOverlap = 0.4

// Limits keep sizes within what 32-bit numbers and a machine's memory hold.
const (
	maxCount = 1 << 27
	maxZipf  = 8
)

// OptionError says which option cannot be met. Option is its name as on the command line, without dashes.
type OptionError struct {
	Option string
	Value  any
	Reason string
}

// Error returns option, value and reason.
func (e *OptionError) Error() string { return fmt.Sprintf("%s %v: %s", e.Option, e.Value, e.Reason) }

func bad(option string, value any, reason string, args ...any) error {
	return &OptionError{option, value, fmt.Sprintf(reason, args...)}
}

// kMax is the largest number of blocks of a request.
func (o *Options) kMax() int { return o.K + o.KSpread }

// shares reports whether any block may be retrieved twice.
func (o *Options) shares() bool { return o.rule != ruleTopics || o.Overlap == nil || *o.Overlap > 0 }

// complete checks the options and fills in defaults.
func (o *Options) complete() error {
	for _, x := range []struct {
		name  string
		value int
	}{
		{"contexts", o.Contexts},
		{"k", o.K},
		{"k-spread", o.KSpread},
		{"pool", o.Pool},
		{"topics", o.Topics},
		{"bursts", o.Bursts},
		{"tenants", o.Tenants},
		{"sessions", o.Sessions},
		{"turns", o.Turns},
		{"block-tokens", o.BlockTokens},
	} {
		if x.value < 0 || x.value > maxCount {
			return bad(x.name, x.value, "want a number from 0 to %d", maxCount)
		}
	}
	for _, x := range []struct {
		name         string
		value, limit float64
	}{
		{"zipf", o.Zipf, maxZipf},
		{"drift", o.Drift, 1},
		{"overlap", orZero(o.Overlap), 1},
	} {
		if math.IsNaN(x.value) || x.value < 0 || x.value > x.limit {
			return bad(x.name, x.value, "want a number from 0 to %v", x.limit)
		}
	}
	o.K = cmp.Or(o.K, 15)
	if o.KSpread >= o.K {
		return bad("k-spread", o.KSpread, "must be less than k %d", o.K)
	}
	o.Tenants = cmp.Or(o.Tenants, 1)
	o.BlockTokens = cmp.Or(o.BlockTokens, 100)
	if err := o.completeSessions(); err != nil {
		return err
	}
	if err := o.completePool(); err != nil {
		return err
	}
	return o.rule.check(o)
}

func (o *Options) completeSessions() error {
	if o.Contexts == 0 && o.Sessions > 0 && o.Turns > 0 {
		if o.Sessions > maxCount/o.Turns {
			return bad("sessions", o.Sessions, "with turns %d more than %d requests", o.Turns, maxCount)
		}
		o.Contexts = o.Sessions * o.Turns
	}
	o.Contexts = cmp.Or(o.Contexts, max(1000, o.Sessions))
	if o.Sessions == 0 {
		o.Turns = cmp.Or(o.Turns, 1)
		o.Sessions = (o.Contexts + o.Turns - 1) / o.Turns
	}
	if o.Sessions > o.Contexts {
		return bad("sessions", o.Sessions, "more than contexts %d", o.Contexts)
	}
	turns := (o.Contexts + o.Sessions - 1) / o.Sessions
	if o.Turns > 0 && o.Turns != turns && o.Sessions != (o.Contexts+o.Turns-1)/o.Turns {
		return bad("sessions", o.Sessions, "with contexts %d they have %d turns each, not turns %d", o.Contexts, turns, o.Turns)
	}
	o.Turns = turns
	return nil
}

func (o *Options) completePool() error {
	need := int64(o.kMax())
	if !o.shares() {
		// Sessions do not change tenants, and each tenant may keep back what is not enough for one more session.
		session := int64(o.Turns) * int64(o.kMax())
		if session > maxCount {
			return bad("overlap", *o.Overlap, "with turns %d of up to %d blocks a session needs more than %d", o.Turns, o.kMax(), maxCount)
		}
		need = session*int64(o.Sessions) + (session-1)*int64(o.Tenants-1)
	}
	if o.Pool == 0 {
		o.Pool = max(20*o.kMax()*o.Tenants, o.Contexts/3)
		if !o.shares() {
			o.Pool = int(min(need, maxCount+1))
		}
		o.Pool = max(o.Pool, o.Topics)
	}
	switch {
	case o.Pool > maxCount:
		return bad("pool", o.Pool, "want at most %d", maxCount)
	case o.Pool < o.kMax():
		return bad("pool", o.Pool, "fewer blocks than the k %d of one request", o.kMax())
	case int64(o.Pool) < need:
		return bad("pool", o.Pool, "overlap 0 with contexts %d of up to %d blocks needs %d", o.Contexts, o.kMax(), need)
	}
	share := 2
	if o.Growing {
		share = 4
	}
	o.Topics = cmp.Or(o.Topics, max(o.Tenants, o.Pool/(share*o.kMax())))
	switch {
	case o.Topics > o.Pool:
		return bad("topics", o.Topics, "more than the pool %d has blocks", o.Pool)
	case o.Tenants > o.Topics:
		return bad("tenants", o.Tenants, "more than topics %d", o.Topics)
	case o.Growing && !o.shares():
		return bad("overlap", *o.Overlap, "not together with growing: blocks that are never retrieved again need no topic that grows")
	case o.Growing && o.Pool/o.Topics <= o.kMax():
		return bad("pool", o.Pool, "growing topics need more blocks than the k %d of one request, topics %d have %d each", o.kMax(), o.Topics,
			o.Pool/o.Topics)
	}
	for a := range o.Tenants {
		if lo, hi := o.tenantBlocks(a); o.shares() && hi-lo < o.kMax() {
			return bad("pool", o.Pool, "tenants %d leave %d blocks for one of them, fewer than the k %d of one request", o.Tenants, hi-lo, o.kMax())
		}
	}
	return nil
}

// tenantTopics returns the first topic of a tenant and the first one after it.
func (o *Options) tenantTopics(tenant int) (from, to int) {
	return part(o.Topics, tenant, o.Tenants), part(o.Topics, tenant+1, o.Tenants)
}

// topicBlocks returns the first block of a topic and the first one after it. All blocks are some topic's own.
func (o *Options) topicBlocks(topic int) (from, to int) {
	return part(o.Pool, topic, o.Topics), part(o.Pool, topic+1, o.Topics)
}

func (o *Options) tenantBlocks(tenant int) (from, to int) {
	first, end := o.tenantTopics(tenant)
	from, _ = o.topicBlocks(first)
	_, to = o.topicBlocks(end - 1)
	return from, to
}

// part returns where part i begins when n things are divided evenly.
func part(n, i, parts int) int { return int(int64(n) * int64(i) / int64(parts)) }

func orZero(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
