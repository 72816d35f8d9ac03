package contextpilot

import "fmt"

// EventKind says what happened to a request, or to everything, in the engine's cache.
type EventKind uint8

const (
	// Served: the engine has answered the request. Tokens is the number of prompt tokens it took from its
	// cache (as reported in its usage), Output the number of tokens it generated; both may be 0 if unknown. With
	// CachedKnown, a number clearly below what the index was sure of corrects the index, see [Pilot.Observe].
	Served EventKind = iota + 1
	// Shrunk: of the request's prompt, and the answer behind it, only the first Tokens tokens are still resident.
	Shrunk
	// Gone: nothing of the request's own prompt is resident any more. For a request that was never Served it
	// means that the request did not reach the engine: it is taken back as if it had never been planned.
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

	// CachedKnown, of Served, tells that the engine reported Tokens for a prompt that it looked up in its cache: 0 then
	// means that nothing was there. Without it, 0 Tokens say nothing.
	CachedKnown bool
	// Prompt, of Served, Shrunk and Moved, is the length of the whole prompt as the engine counted it, in tokens; 0: unknown.
	// Of Served, as far as it is not what was planned, Tokens may be off by as much, or by an eighth if that is more, and
	// correct the index only beyond that. Of Shrunk and Moved, Tokens are taken as that part of what was planned, the
	// request's head included ([Request.HeadTokens]), and what exceeds it as tokens of the answer, which are not converted;
	// without it they must be tokens of the pilot's own Tokenizer.
	Prompt int
}
