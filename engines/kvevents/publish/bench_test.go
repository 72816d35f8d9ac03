package publish_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// A step that stores one block, without and with a subscriber.
func BenchmarkPublish(b *testing.B) {
	tokens := make([]int, 16)
	for i := range tokens {
		tokens[i] = 1000 + i
	}
	events := []kvevents.Event{{
		Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1 << 60)}, Parent: kvevents.Uint(1 << 61),
		Tokens: tokens, BlockSize: 16,
	}}
	for _, followed := range []bool{false, true} {
		b.Run(map[bool]string{false: "alone", true: "followed"}[followed], func(b *testing.B) {
			p := listen(b, nil)
			if followed {
				follow(b, p)
				await(b, "a subscriber", func() bool { return p.Stats().Subscribers == 1 })
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Publish(events); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
