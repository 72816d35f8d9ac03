package publish_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// golden is what vLLM 0.24.0's own structures give for a batch of two events.
const golden = "93cb408f4000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf800000000000000000b1706172656e745f626c6f636b5f68617368c0" +
	"a9746f6b656e5f696473dc0020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1faa626c6f636b5f73697a6510a76c6f72615f6964c0a66d656469756da3475055" +
	"a96c6f72615f6e616d65c083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739100a66d656469756da347505500"

func count(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = i
	}
	return tokens
}

// Byte for byte what vLLM sends.
func TestGolden(t *testing.T) {
	got, err := publish.Append(nil, publish.Map, &kvevents.Batch{Time: 1000, Events: []kvevents.Event{
		{
			Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1 << 63), kvevents.Uint(0)}, Tokens: count(32), BlockSize: 16,
			Medium: "GPU",
		},
		{Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(0)}, Medium: "GPU"},
	}})
	if err != nil || hex.EncodeToString(got) != golden {
		t.Errorf("%x, %v\nwant %s", got, err, golden)
	}
}

// The salt is where vLLM has it: an extra key of a prompt's first block.
func TestSalt(t *testing.T) {
	salted := msgp.AppendString(msgp.AppendArrayHeader(nil, 1), "blue")
	first := kvevents.Event{
		Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1), kvevents.Uint(2)}, Tokens: count(4),
		BlockSize: 2, Salt: []byte("blue"),
	}
	later := first
	later.Parent = kvevents.Uint(9)
	payload, err := publish.Append(nil, publish.Map, &kvevents.Batch{Events: []kvevents.Event{first, later}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := new(kvevents.Decoder).Decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{salted, nil}, got.Events[0].Extra); diff != "" {
		t.Error(diff)
	}
	if got.Events[1].Extra != nil {
		t.Errorf("a later block has extra keys %x", got.Events[1].Extra)
	}
}

func TestDigest(t *testing.T) {
	_, err := publish.Append(nil, publish.Map, &kvevents.Batch{Events: []kvevents.Event{{
		Kind:   kvevents.Removed,
		Hashes: []kvevents.Hash{kvevents.Digest([]byte("x"))},
	}}})
	if !errors.Is(err, publish.ErrHash) {
		t.Errorf("%v", err)
	}
}

var sameHash = cmp.Comparer(func(a, b kvevents.Hash) bool { return a == b })

// Whatever is sent in either form is read again.
func TestRead(t *testing.T) {
	hash := rapid.Custom(func(t *rapid.T) kvevents.Hash {
		if rapid.Bool().Draw(t, "signed") {
			return kvevents.Int(rapid.Int64().Draw(t, "hash"))
		}
		return kvevents.Uint(rapid.Uint64().Draw(t, "hash"))
	})
	name := rapid.StringN(0, 8, 64)
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom([]publish.Encoding{publish.Map, publish.Array}).Draw(t, "form")
		batch := &kvevents.Batch{Time: rapid.Float64().Draw(t, "time"), Rank: rapid.IntRange(kvevents.NoRank, 9).Draw(t, "rank")}
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			e := kvevents.Event{Kind: rapid.SampledFrom([]kvevents.Kind{kvevents.Stored, kvevents.Removed, kvevents.Cleared}).Draw(t, "kind")}
			if e.Kind != kvevents.Cleared {
				e.Hashes = rapid.SliceOfN(hash, 1, 4).Draw(t, "hashes")
				e.Medium, e.Group = name.Draw(t, "medium"), rapid.IntRange(0, 3).Draw(t, "group")
			}
			if e.Kind == kvevents.Stored {
				e.BlockSize = rapid.IntRange(1, 4).Draw(t, "size")
				e.Tokens = rapid.SliceOfN(rapid.IntRange(0, 1<<40), e.BlockSize*len(e.Hashes), e.BlockSize*len(e.Hashes)).Draw(t, "tokens")
				e.LoRA = name.Draw(t, "adapter")
				if rapid.Bool().Draw(t, "follows") {
					e.Parent = hash.Draw(t, "parent")
				}
				if form == publish.Map {
					e.Spec, e.Locality = name.Draw(t, "spec"), name.Draw(t, "locality")
					if s := name.Draw(t, "session"); s != "" {
						e.Session = []byte(s)
					}
				}
			}
			batch.Events = append(batch.Events, e)
		}
		payload, err := publish.Append(nil, form, batch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(kvevents.Decoder).Decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(batch, got, sameHash); diff != "" {
			t.Error(diff)
		}
	})
}
