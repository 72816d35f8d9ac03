package kvevents

import "time"

// Counters count what one publisher's stream went through.
type Counters struct {
	Messages uint64 // received live
	Batches  uint64 // applied, from the live stream and from replay
	Events   uint64 // in these
	Replayed uint64 // batches that came by replay and were new

	Connects uint64
	Replays  uint64 // times the engine was asked for past batches
	Failed   uint64 // of these, without an end

	Gaps       uint64 // times that live messages were missing
	Missing    uint64 // messages that were missing then
	Holes      uint64 // batches that never came, by replay either
	Overflows  uint64 // messages dropped because the queue was full
	Overlaps   uint64 // live messages that replay had brought before
	Duplicates uint64 // messages that came again
	Late       uint64 // messages that came after their hole was given up
	Restarts   uint64 // times that the engine was another process
	Clears     uint64 // times that the picture was cleared, for whatever cause but the engine's own
	Resyncs    uint64 // times that all was asked for once more

	BadFrames     uint64 // messages that are no batch: frames or sequence number
	DecodeErrors  uint64 // payloads that could not be read
	UnknownEvents uint64 // of types that are not known: ignored
	Malformed     uint64 // events of a known type that could not be read
	WrongRank     uint64 // batches of another rank: ignored
	WrongNumbers  uint64 // messages whose number the engine itself, asked for past batches, does not know: ignored
	WrongTopic    uint64 // messages under a topic of another publisher: ignored
	Clashes       uint64 // messages of an engine whose topic another one has taken: ignored
	Found         uint64 // batches that a probe found missing, which is so if the live stream brings nothing
}

// Window is a time in which the picture of a cache was not complete.
type Window struct {
	From, Until time.Time // Until is zero while it lasts
	Cause       Cause     // the first
	Missing     uint64    // batches that are missing for good since it began
}

// Length returns how long the window lasted, up to now if it still does.
func (w Window) Length(now time.Time) time.Duration {
	if w.Until.IsZero() {
		return now.Sub(w.From)
	}
	return w.Until.Sub(w.From)
}

// maxWindows bounds the windows that are remembered.
const maxWindows = 64

// Status is what is known of one publisher's stream.
type Status struct {
	Publisher
	Connected bool
	// Complete: the sink was given everything that the engine published and that still matters.
	Complete bool
	// LastSeq is the number of the last batch; Any reports whether there was one.
	LastSeq uint64
	Any     bool
	// PublishedTopic is the topic of the last message.
	PublishedTopic string
	// LastTime is the engine's time of the last batch, in seconds since 1970.
	LastTime float64
	Counters
	// Windows are the latest times of incompleteness, oldest first.
	Windows []Window
	// Err is why the last attempt to connect, or to replay, failed; nil if it did not.
	Err error
	// Hint says in words what is wrong with the engine's configuration, if that is known.
	Hint string
}
