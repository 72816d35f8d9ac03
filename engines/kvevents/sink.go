package kvevents

import "fmt"

// Cause says why the picture of a cache was cleared or is not complete.
type Cause uint8

// Causes. The first five clear, the others leave what is known in place.
const (
	// EngineCleared: the engine said that it dropped all blocks.
	EngineCleared Cause = iota + 1
	// Restarted: the engine's process is another one.
	Restarted
	// Reconnected: the connection was lost, and nothing shows that the engine is still the same process.
	Reconnected
	// Requested: the program asked for it.
	Requested
	// Resyncing: the engine is asked for all it has once more. What is resident now is most likely resident then: a
	// sink should wait for the next Complete before it says what is lost.
	Resyncing
	// Starting: the history was not asked for yet, or did not come.
	Starting
	// HistoryLost: the engine's replay buffer no longer reaches back to its start, or it has none.
	HistoryLost
	// Gap: messages were lost, and replay did not bring them back.
	Gap
	// Undecodable: a message could not be read, or only in part.
	Undecodable
	// Disconnected: there is no connection.
	Disconnected
	// Overflow: the sink is too slow, messages for it were dropped, and replay has not brought them back yet.
	Overflow
)

// String returns the cause in lower case.
func (c Cause) String() string {
	names := [...]string{
		"none", "engine cleared", "restarted", "reconnected", "requested", "resyncing", "starting", "history lost", "gap",
		"undecodable", "disconnected", "overflow",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// Sink takes what one publisher says about one cache. Its methods are called by one goroutine at a time, in the order
// of the engine's messages. They must not block for long: messages queue up meanwhile, and beyond a bound they are
// asked for again.
type Sink interface {
	// Apply takes the next batch, which is valid during the call only.
	Apply(*Batch)
	// Clear says that nothing of what was applied holds any more.
	Clear(Cause)
	// Complete says whether what was applied since the last Clear, or since the engine's start, is all there was. It is
	// called when that changes, and after Clear(Resyncing) when the engine's answer has been applied.
	Complete(bool)
}

// Checker is a [Sink] that checks whether batches fit each other. If it reports that they do not, though all are
// said to be there, the history is asked for once more.
type Checker interface {
	Sink
	Inconsistent() bool
}
