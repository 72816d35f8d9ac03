package kvfake

import (
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// Form is an encoding of events.
type Form = publish.Encoding

// The two encodings that engines use.
const (
	Map   = publish.Map
	Array = publish.Array
)

// Payload encodes a batch as engines do. Hashes must have been made of numbers.
func Payload(form Form, time float64, rank int, events ...kvevents.Event) []byte {
	b, err := publish.Append(nil, form, &kvevents.Batch{Time: time, Rank: rank, Events: events})
	if err != nil {
		panic("kvfake: " + err.Error())
	}
	return b
}
