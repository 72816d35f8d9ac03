package kvevents_test

import (
	"encoding/hex"
	"fmt"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// A message of SGLang 0.5.20: a block is stored and removed, and then the cache is cleared.
func Example() {
	payload, _ := hex.DecodeString("93cb408f4000000000009387a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391fb" +
		"b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756d" +
		"a347505583a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391fba66d656469756da347505581a474797065b0416c6c42" +
		"6c6f636b73436c656172656400")
	var d kvevents.Decoder // keep it: its buffers are used again
	batch, err := d.Decode(payload)
	if err != nil {
		panic(err)
	}
	for _, ev := range batch.Events {
		fmt.Println(ev.Kind, ev.Hashes, ev.Tokens)
	}
	// Output:
	// stored [-5] [1 2]
	// removed [-5] []
	// cleared [] []
}

// Four ranks of one engine.
func ExampleRanks() {
	sources, err := kvevents.Ranks(kvevents.Source{Name: "r0", Endpoint: "tcp://10.0.0.5:5557", Replay: "tcp://10.0.0.5:5657"}, 4)
	if err != nil {
		panic(err)
	}
	for _, s := range sources {
		fmt.Println(s.Name, s.Endpoint, s.Replay)
	}
	// Output:
	// r0/dp0 tcp://10.0.0.5:5557 tcp://10.0.0.5:5657
	// r0/dp1 tcp://10.0.0.5:5558 tcp://10.0.0.5:5658
	// r0/dp2 tcp://10.0.0.5:5559 tcp://10.0.0.5:5659
	// r0/dp3 tcp://10.0.0.5:5560 tcp://10.0.0.5:5660
}
