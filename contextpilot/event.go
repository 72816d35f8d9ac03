package contextpilot

import "fmt"

// EventKind says what happened to a request, or to everything, in the engine's cache.
type EventKind uint8

const (
	// Served: the engine has answered the request. Tokens is the number of prompt tokens it took from its
	// cache (as reported in its usage), Output the number of tokens it generated; both may be 0 if unknown.
	Served EventKind = iota + 1
	// Shrunk: of the request's prompt, and the answer behind it, only the first Tokens tokens are still resident.
	Shrunk
	// Gone: nothing of the request's own prompt is resident any more. For a request that was never Served it
	// means that the request did not reach the engine: it is taken back as if it had never been planned, and
	// the conversation continues from the turn before.
	Gone
	// Cleared: the engine dropped its whole cache. Request is ignored.
	Cleared
	// Moved: what the request's prompt holds behind its first Tokens tokens lies in Tier now, from where the engine
	// loads it when it is sent again.
	Moved
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	switch k {
	case Served:
		return "served"
	case Shrunk:
		return "shrunk"
	case Gone:
		return "gone"
	case Cleared:
		return "cleared"
	case Moved:
		return "moved"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is one report about an engine's cache; engines make them, [Pilot.Observe] takes them.
type Event struct {
	Kind    EventKind
	Scope   Scope
	Request string // request ID as in [Plan.RequestID]
	Tokens  int    // Served: prompt tokens read from cache; Shrunk: tokens of prompt and answer still resident; Moved: those that stay
	Output  int    // Served: tokens generated, which the engine caches behind the prompt
	Tier    string // Moved: name of the tier, see Config.LoadCost; "" is the engine's own memory
}
