package publish_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// printer is a sink that shows what it gets.
type printer struct{ done context.CancelFunc }

func (p printer) Apply(b *kvevents.Batch) {
	for _, e := range b.Events {
		fmt.Println(e.Kind, e.Hashes, "of", len(e.Tokens), "tokens")
	}
	p.done()
}
func (printer) Clear(kvevents.Cause) {}
func (printer) Complete(bool)        {}

// A subscriber that comes late learns what was published before it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	publisher, err := publish.Listen(ctx, publish.Config{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.Close()
	err = publisher.Publish([]kvevents.Event{{
		Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(7)}, Tokens: []int{1, 2, 3, 4},
		BlockSize: 4,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := publisher.Config()
	sub, err := kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "r0", Endpoint: at.Endpoint, Replay: at.Replay}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return printer{cancel} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := sub.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stored [7] of 4 tokens
}
