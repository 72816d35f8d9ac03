package llamacpp

import (
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// book is the engine's model of the server: its slots, who runs on them, and whose tokens lie there. It does no I/O and has
// no lock; events pile up in it until they are taken.
type book struct {
	similarity float32
	pins       bool // requests are sent to the slot that is granted; otherwise the server chooses
	habits     habits
	host       bool // the configuration says that the server saves what it overwrites
	hostCache  bool // it does
	clears     bool // the server saves and empties idle slots whenever a request starts
	asked      bool // whether it does so is known

	slots   []slot // nil: the server has not been asked
	running []*lease
	process string // what /props reported of the process, see identity
	turn    uint64 // rises with each restart of the server
	clock   uint64
	tracker tracker
	events  []contextpilot.Event
}

// lease is one request's right to a slot, from its admission to its end.
type lease struct {
	slot   int // -1: the slots are not known
	turn   uint64
	id     string
	prompt []token // nil: not known
	reuse  bool    // false: the request forbids the server to use what is cached
	// private: the request has a cache salt; what it leaves in its slot is in no file, and files are not for it.
	private  bool
	restored bool // its slot was filled from a file
	begun    bool
}

// restart forgets everything and notes what the server is now. Others may have used it before this engine looks.
func (b *book) restart(process string, slots int) {
	if b.slots != nil {
		b.events = append(b.events, contextpilot.Event{Kind: contextpilot.Cleared})
	}
	b.turn++
	b.process = process
	b.slots = make([]slot, slots)
	b.clears, b.asked, b.hostCache = false, false, b.host
	b.tracker.reset()
	b.distrust(nil)
}

// adrift reports whether a request other than l runs on a slot that is not known: it was sent before the server's restart
// was noticed, or without a look at the server.
func (b *book) adrift(l *lease) bool {
	return slices.ContainsFunc(b.running, func(x *lease) bool { return x != l && !b.current(x) })
}

// preview returns the slot that a prompt would be given: a free one, or if there is none the one it would get if all were
// free. -1: the slots are not known.
func (b *book) preview(prompt []token) int {
	if at := b.choose(b.slots, prompt); at >= 0 {
		return at
	}
	idle := slices.Clone(b.slots)
	for i := range idle {
		idle[i].lease = nil
	}
	return b.choose(idle, prompt)
}

// choose returns the slot for a prompt among those that are free, -1 if none is.
func (b *book) choose(slots []slot, prompt []token) int {
	if !b.pins || b.clears || prompt == nil {
		return choose(slots, prompt, b.similarity)
	}
	return b.habits.place(slots, prompt)
}

// predict says what a lease will find.
func (b *book) predict(l *lease) Prediction {
	p := Prediction{Request: l.id, Prompt: len(l.prompt), Slot: l.slot}
	switch {
	case l.slot < 0 || l.prompt == nil:
	case !l.reuse:
		p.Exact = true
	default:
		p.Cached, p.Exact = b.find(l.slot, l.prompt)
		if b.clears && b.starting(l) || b.adrift(l) {
			p.Cached, p.Exact = 0, false // that request may take the slot before this one arrives
		}
	}
	return p
}

// starting reports whether a request other than l has been sent and has not begun.
func (b *book) starting(l *lease) bool {
	return slices.ContainsFunc(b.slots, func(s slot) bool { return s.lease != nil && s.lease != l && !s.lease.begun })
}

// find returns how many tokens of a prompt are cached in a slot. At least one is always computed.
func (b *book) find(at int, prompt []token) (cached int, exact bool) {
	s := &b.slots[at]
	share := s.share(prompt)
	return max(0, min(share, len(prompt)-1)), s.exact(prompt, share)
}

// grant gives a free slot to a request: want, or the one that the server would choose if that is -1. It reports false if the
// request must wait.
func (b *book) grant(l *lease, want int) bool {
	at := -1
	switch {
	case b.slots == nil: // the server may have any number
	case want >= 0:
		at = want % len(b.slots) // as the server does
		if b.slots[at].lease != nil {
			return false
		}
	default:
		if at = b.choose(b.slots, l.prompt); at < 0 {
			return false
		}
		b.habits.learn(b.slots, l.prompt)
	}
	l.turn, l.slot = b.turn, at
	b.running = append(b.running, l)
	if at >= 0 {
		b.slots[at].lease = l
	}
	if b.clears {
		b.clearIdle()
	}
	return true
}

// current reports whether the lease's slot is one of the present server process.
func (b *book) current(l *lease) bool { return l.turn == b.turn && l.slot >= 0 }

// begin notes that the server has read the lease's prompt on a slot, which is the leased one unless the server chose
// otherwise.
func (b *book) begin(l *lease, at int) {
	if l.begun || !b.current(l) {
		return
	}
	l.begun = true
	s := &b.slots[at]
	keep := s.share(l.prompt)
	b.events = append(b.events, b.tracker.cut(b.slots, at, keep, b.saves(s, l.prompt, keep))...)
	s.set(l.prompt, -1)
	s.private = l.private
}

// refill notes that a slot was filled with something else than it had, from outside a request.
func (b *book) refill(at int, tokens []token, length int) {
	s := &b.slots[at]
	b.events = append(b.events, b.tracker.cut(b.slots, at, common(s.tokens, tokens), false)...)
	s.set(tokens, length)
	s.private = false
}

// saves reports whether the server saves a slot before a prompt overwrites all but its first keep tokens: it does if
// less than half is kept, and also if the slot was not chosen for what it holds.
func (b *book) saves(s *slot, prompt []token, keep int) bool {
	return b.hostCache && (2*keep < len(s.tokens) || float32(keep) <= b.similarity*float32(len(prompt)))
}

// clearIdle empties all slots on which nothing runs.
func (b *book) clearIdle() {
	for i := range b.slots {
		if b.slots[i].lease == nil {
			b.events = append(b.events, b.tracker.cut(b.slots, i, 0, true)...)
			b.slots[i].set(nil, 0)
		}
	}
}

// served notes a complete answer: the slot holds tokens now, and length in all.
func (b *book) served(l *lease, at int, tokens []token, length int, event contextpilot.Event) {
	b.events = append(b.events, event)
	if !b.current(l) {
		if l.slot >= 0 { // the server was restarted, perhaps after it had answered
			b.events = append(b.events, contextpilot.Event{Kind: contextpilot.Gone, Request: event.Request})
		}
		b.stray(l, at)
		return
	}
	b.begin(l, at)
	b.slots[at].set(tokens, length)
	if len(tokens) == 0 {
		return
	}
	if id := b.tracker.enter(b.slots, event.Request, at, len(tokens), len(l.prompt)); id != "" {
		b.events = append(b.events, contextpilot.Event{Kind: contextpilot.Gone, Request: id})
	}
}

// failed notes that a request ended without an answer, or in the middle of it; tokens are those certainly there.
func (b *book) failed(l *lease, at int, tokens []token) {
	if !b.current(l) {
		return
	}
	s := &b.slots[at]
	if l.begun {
		s.set(tokens, -1)
		return
	}
	s.private = s.private || l.private
	if s.other != nil { // the second failure in a row
		s.set(s.tokens[:common(s.tokens, s.other)], -1)
	}
	s.other = slices.Clip(l.prompt)
	if l.prompt == nil {
		s.other = []token{}
	}
}

// refused notes that the server answered that a request is wrong. It finds that before it computes anything; only one that saves
// what it overwrites may have changed the slot by then.
func (b *book) refused(l *lease) {
	if b.current(l) && !l.begun {
		b.slots[l.slot].check = true
	}
}

// release ends a lease.
func (b *book) release(l *lease) {
	b.running = slices.DeleteFunc(b.running, func(x *lease) bool { return x == l })
	if b.current(l) && b.slots[l.slot].lease == l {
		b.clock++
		b.slots[l.slot].lease, b.slots[l.slot].used = nil, b.clock
	}
}

// doubtful reports whether looking at the server's slots would show something about one that is free.
func (b *book) doubtful() bool {
	for i := range b.slots {
		if b.slots[i].lease == nil && (b.slots[i].doubtful() || !b.asked && b.rests(i)) {
			return true
		}
	}
	return false
}

// rests reports whether a free slot holds something although another one was used after it. Such slots show whether
// the server clears idle ones.
func (b *book) rests(at int) bool {
	s := &b.slots[at]
	later := func(x slot) bool { return x.lease != nil || x.used > s.used }
	return s.lease == nil && s.length > 0 && slices.ContainsFunc(b.slots, later)
}

// stray notes that the request of a lease ran on a slot that was not known to be its own.
func (b *book) stray(l *lease, at int) {
	if at < 0 || at >= len(b.slots) {
		b.distrust(l)
		return
	}
	b.events = append(b.events, b.tracker.cut(b.slots, at, 0, false)...)
	b.slots[at].set(nil, -1)
	b.clock++
	b.slots[at].used = b.clock
}

// distrust makes all free slots doubtful, and that of a lease which is about to end.
func (b *book) distrust(l *lease) {
	for i := range b.slots {
		if b.slots[i].lease == nil || b.slots[i].lease == l {
			b.slots[i].check = true
		}
	}
}

// emptied reports whether all slots were empty when that was asked, although nothing ran and one of them had something: the
// server was restarted, or has had its model out of memory. A server that clears idle slots leaves the last one used.
func (b *book) emptied(before []slot, now []slotJSON) bool {
	had := false
	for i := range b.slots {
		if b.slots[i].lease != nil || before[i].lease != nil || before[i].used != b.slots[i].used {
			return false
		}
		had = had || b.slots[i].length > 0
	}
	busy := func(s slotJSON) bool { return s.Busy || s.Tokens > 0 }
	return had && len(now) == len(b.slots) && !slices.ContainsFunc(now, busy)
}

// settle takes over the true length of a slot on which nothing has run since that was asked.
func (b *book) settle(at, length int) {
	s := &b.slots[at]
	b.asked = b.asked || b.rests(at)
	tokens, ok := s.settled(length)
	if !ok && length == 0 && s.length > 0 {
		// Idle slots are emptied by servers whose slots share one memory.
		b.clears, b.hostCache = true, true
	}
	saved := !ok && b.clears
	b.events = append(b.events, b.tracker.cut(b.slots, at, common(tokens, s.tokens), saved)...)
	s.set(tokens, length)
}

// take returns the events so far, in order.
func (b *book) take() []contextpilot.Event {
	events := b.events
	b.events = nil
	return events
}
