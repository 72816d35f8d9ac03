package kvevents_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

// large is an event of 32 blocks and 512 tokens.
func large(form kvfake.Form) []byte {
	ev := kvevents.Event{Kind: kvevents.Stored, Tokens: make([]int, 512), BlockSize: 16, Medium: "GPU", Extra: make([][]byte, 32)}
	for i := range 32 {
		ev.Hashes = append(ev.Hashes, kvevents.Uint(1<<63+uint64(i)))
	}
	for i := range ev.Tokens {
		ev.Tokens[i] = 1000 + i*61
	}
	return kvfake.Payload(form, 1, 0, ev)
}

func BenchmarkDecode(b *testing.B) {
	for name, form := range map[string]kvfake.Form{"map": kvfake.Map, "array": kvfake.Array} {
		b.Run(name+"/32 hashes, 512 tokens", func(b *testing.B) {
			payload := large(form)
			var d kvevents.Decoder
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				if _, err := d.Decode(payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("one removed", func(b *testing.B) {
		payload := kvfake.Payload(kvfake.Map, 1, 0, kvevents.Event{
			Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(1 << 63)},
			Medium: "GPU",
		})
		var d kvevents.Decoder
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.Decode(payload); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestDecodeAllocations: a decoder that has grown its buffers allocates nothing.
func TestDecodeAllocations(t *testing.T) {
	for name, form := range map[string]kvfake.Form{"map": kvfake.Map, "array": kvfake.Array} {
		payload := large(form)
		var d kvevents.Decoder
		if n := testing.AllocsPerRun(100, func() {
			if _, err := d.Decode(payload); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
