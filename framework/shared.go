package framework

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
)

// shared is what the wrappers of one pilot have in common: several models that go on with the same conversations do not
// remember them several times, and the engine's bound holds for all of them.
type shared struct {
	engine *conversation.Engine
	seed   uint64 // of messages' sums: two messages with one sum cannot be made without it
	offers Offers
}

// inUse finds what wrappers share by their pilot, as long as one of them is in use. The pilot itself is below the engine and cannot
// hold it.
var inUse struct {
	mu sync.Mutex
	by map[weak.Pointer[contextpilot.Pilot]]weak.Pointer[shared]
}

func sharedOf(pilot *contextpilot.Pilot) *shared {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	key := weak.Make(pilot)
	if s := inUse.by[key].Value(); s != nil {
		return s
	}
	engine, err := conversation.New(pilot, conversation.Options{})
	if err != nil {
		panic("framework: " + err.Error()) // without options it takes any pilot
	}
	s := &shared{engine: engine, seed: rand.Uint64(), offers: Offers{pilot: pilot, now: time.Now}}
	if inUse.by == nil {
		inUse.by = map[weak.Pointer[contextpilot.Pilot]]weak.Pointer[shared]{}
	}
	inUse.by[key] = weak.Make(s)
	runtime.AddCleanup(s, forgetShared, key)
	return s
}

// forgetShared takes away what nothing uses any more, unless it is in use anew.
func forgetShared(key weak.Pointer[contextpilot.Pilot]) {
	inUse.mu.Lock()
	defer inUse.mu.Unlock()
	if inUse.by[key].Value() == nil {
		delete(inUse.by, key)
	}
}
