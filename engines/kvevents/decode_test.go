package kvevents_test

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/kvfake"
)

func upTo(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = i
	}
	return tokens
}

// golden holds messages that the engines' own definitions encode to.
var golden = []struct {
	name, hex string
	want      []kvevents.Event
}{
	{
		"vLLM 0.9.2", "93cb408f4000000000009296ab426c6f636b53746f72656492cf800000000000000000c0dc0020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f10c092ac426c6f636b52656d6f766564910000",
		vllmEvents("", ""),
	},
	{
		"vLLM 0.23.0", "93cb408f400000000000929cab426c6f636b53746f72656492cf800000000000000000c0dc0020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f10c0a3475055c0c0c0c0c094ac426c6f636b52656d6f7665649100a3475055c000",
		vllmEvents("GPU", ""),
	},
	{
		"vLLM 0.24.0", "93cb408f4000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf800000000000000000b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473dc0020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1faa626c6f636b5f73697a6510a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739100a66d656469756da347505500",
		vllmEvents("GPU", ""),
	},
	{
		"vLLM 0.33.0", "93cb408f40000000000092de0009a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf800000000000000000b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473dc0020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1faa626c6f636b5f73697a6510a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa73657373696f6e5f6964a57265712d3083a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739100a66d656469756da347505500",
		vllmEvents("GPU", "req-0"),
	},
	{"SGLang 0.5.9, array", "93cb408f4000000000009397ab426c6f636b53746f72656491fbc092010202c0a347505593ac426c6f636b52656d6f76656491fba347505591b0416c6c426c6f636b73436c656172656400", sglangEvents()},
	{"SGLang 0.5.20, map", "93cb408f4000000000009387a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391fbb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da347505583a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391fba66d656469756da347505581a474797065b0416c6c426c6f636b73436c656172656400", sglangEvents()},
}

func vllmEvents(medium, session string) []kvevents.Event {
	stored := kvevents.Event{
		Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1 << 63), kvevents.Uint(0)}, Tokens: upTo(32),
		BlockSize: 16, Medium: medium,
	}
	if session != "" {
		stored.Session = []byte(session)
	}
	return []kvevents.Event{stored, {Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(0)}, Medium: medium}}
}

func sglangEvents() []kvevents.Event {
	h := []kvevents.Hash{kvevents.Int(-5)}
	return []kvevents.Event{
		{Kind: kvevents.Stored, Hashes: h, Tokens: []int{1, 2}, BlockSize: 2, Medium: "GPU"},
		{Kind: kvevents.Removed, Hashes: h, Medium: "GPU"},
		{Kind: kvevents.Cleared},
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	return testkit.Must(hex.DecodeString(s))(t)
}

var byHash = cmp.Comparer(func(a, b kvevents.Hash) bool { return a == b })

func decoded(t *testing.T, payload []byte) *kvevents.Batch {
	t.Helper()
	return testkit.Must(new(kvevents.Decoder).Decode(payload))(t)
}

func TestGoldenMessages(t *testing.T) {
	var d kvevents.Decoder // one for all: buffers are reused
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			b, err := d.Decode(unhex(t, g.hex))
			if err != nil {
				t.Fatal(err)
			}
			want := &kvevents.Batch{Time: 1000, Rank: 0, Events: g.want}
			if diff := cmp.Diff(want, b, byHash); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEncodings: what is sent in either encoding is read the same.
func TestEncodings(t *testing.T) {
	salted := msgp.AppendString(msgp.AppendArrayHeader(nil, 1), "tenant-1")
	events := []kvevents.Event{
		{
			Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(7), kvevents.Int(-9)}, Parent: kvevents.Uint(5),
			Tokens: []int{0, 127, 128, 70000, 1 << 40, 3}, BlockSize: 3,
			Medium: "CPU_PINNED", LoRA: "sql", Extra: [][]byte{salted, nil}, Group: 1,
		},
		{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(7)}, Tokens: []int{4, 5, 6}, Bigram: true, BlockSize: 2, Extra: [][]byte{}},
		{Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(7)}, Medium: "DISK", Group: 2},
		{Kind: kvevents.Cleared},
	}
	for form, name := range map[kvfake.Form]string{kvfake.Map: "map", kvfake.Array: "array"} {
		t.Run(name, func(t *testing.T) {
			b := decoded(t, kvfake.Payload(form, 2.5, 3, events...))
			if diff := cmp.Diff(&kvevents.Batch{Time: 2.5, Rank: 3, Events: events}, b, byHash); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// object makes MessagePack of Go values, for messages that no engine of today sends.
func object(t *testing.T, v any) []byte {
	t.Helper()
	return testkit.Must(msgp.AppendIntf(nil, v))(t)
}

type list = []any

func TestShapes(t *testing.T) {
	removed := list{"BlockRemoved", list{1}}
	for _, c := range []struct {
		name                       string
		batch                      list
		events, unknown, malformed int
		rank                       int
	}{
		{"no rank", list{1.0, list{removed}}, 1, 0, 0, kvevents.NoRank},
		{"nil rank", list{1.0, list{removed}, nil}, 1, 0, 0, kvevents.NoRank},
		{"more than a rank", list{1.0, list{removed}, 4, "x", list{list{1}}}, 1, 0, 0, 4},
		{"time as a whole number", list{1, list{}}, 0, 0, 0, kvevents.NoRank},
		{
			"more fields than known",
			list{1.0, list{list{"BlockRemoved", list{1}, nil, nil, "x", map[string]any{"a": list{1}}}}},
			1, 0, 0,
			kvevents.NoRank,
		},
		{"fewer fields", list{1.0, list{list{"BlockStored", list{1}, nil, list{1, 2}, 2}}}, 1, 0, 0, kvevents.NoRank},
		{
			"unknown keys",
			list{1.0, list{map[string]any{"type": "BlockRemoved", "block_hashes": list{1}, "why": map[string]any{"x": list{1}}}}},
			1, 0, 0, kvevents.NoRank,
		},
		{"unknown type", list{1.0, list{
			list{"BlockMoved", list{1}, "GPU"},
			removed,
			map[string]any{"type": "BlockMoved", "block_hashes": list{1}},
		}}, 1, 2, 0, kvevents.NoRank},
		{"no type", list{1.0, list{map[string]any{"block_hashes": list{1}}, removed}}, 1, 1, 0, kvevents.NoRank},
		{"hashes of another type", list{1.0, list{list{"BlockRemoved", list{"a"}}, removed}}, 1, 0, 1, kvevents.NoRank},
		{"tokens without a size", list{1.0, list{list{"BlockStored", list{1}, nil, list{1, 2}}, removed}}, 1, 0, 1, kvevents.NoRank},
		{"a size of 0", list{1.0, list{list{"BlockStored", list{1}, nil, list{1, 2}, 0}, removed}}, 1, 0, 1, kvevents.NoRank},
		{
			"pairs that do not follow each other",
			list{1.0, list{list{"BlockStored", list{1}, nil, list{list{1, 2}, list{3, 4}}, 2}, removed}},
			1, 0, 1, kvevents.NoRank,
		},
		{"events that are numbers", list{1.0, list{3, removed}}, 1, 0, 1, kvevents.NoRank},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := decoded(t, object(t, c.batch))
			if len(b.Events) != c.events || b.Unknown != c.unknown || b.Malformed != c.malformed || b.Rank != c.rank {
				t.Errorf("%d events, %d unknown, %d malformed, rank %d: want %d, %d, %d, %d", len(b.Events), b.Unknown, b.Malformed, b.Rank,
					c.events, c.unknown, c.malformed, c.rank)
			}
		})
	}
}

func TestNotABatch(t *testing.T) {
	good := unhex(t, golden[3].hex)
	for name, payload := range map[string][]byte{
		"empty":            {},
		"a map":            {0x80},
		"one element":      {0x91, 0x01},
		"no events":        {0x92, 0x01, 0x01},
		"a rank of text":   {0x93, 0x01, 0x90, 0xa1, 'x'},
		"a rank below 0":   {0x93, 0x01, 0x90, 0xff},
		"bytes behind":     append(slices.Clip(good), 0),
		"4 G events":       {0x92, 0x01, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"4 G hashes":       {0x92, 0x01, 0x91, 0x92, 0xa1, 'x', 0xdd, 0xff, 0xff, 0xff, 0xff},
		"never a type tag": {0x92, 0x01, 0x91, 0xc1},
	} {
		if b, err := new(kvevents.Decoder).Decode(payload); !errors.Is(err, kvevents.ErrDecode) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	for i := range good {
		if _, err := new(kvevents.Decoder).Decode(good[:i]); !errors.Is(err, kvevents.ErrDecode) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	deep := append([]byte{0x93, 0x01, 0x91}, make([]byte, 1<<20)...)
	for i := range deep[3:] {
		deep[3+i] = 0x91
	}
	if _, err := new(kvevents.Decoder).Decode(deep); !errors.Is(err, kvevents.ErrDecode) {
		t.Errorf("a million arrays in each other: %v", err)
	}
}

// TestManyEvents: a payload cannot make the decoder hold more events than MaxEvents.
func TestManyEvents(t *testing.T) {
	b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1)
	b = msgp.AppendArrayHeader(b, kvevents.MaxEvents+1)
	for range kvevents.MaxEvents + 1 {
		b = msgp.AppendString(msgp.AppendArrayHeader(b, 1), "AllBlocksCleared")
	}
	if _, err := new(kvevents.Decoder).Decode(b); !errors.Is(err, kvevents.ErrDecode) {
		t.Error(err)
	}
}

func TestHashes(t *testing.T) {
	d1, d2 := make([]byte, 32), make([]byte, 32)
	d2[31] = 1
	for _, c := range []struct {
		name   string
		a, b   kvevents.Hash
		equal  bool
		string string // of a
	}{
		{"zero is no number", kvevents.Hash{}, kvevents.Uint(0), false, "none"},
		{"signed and unsigned", kvevents.Int(5), kvevents.Uint(5), true, "5"},
		{"negative", kvevents.Int(-5), kvevents.Uint(math.MaxUint64 - 4), false, "-5"},
		{"large", kvevents.Uint(math.MaxUint64), kvevents.Int(-1), false, "18446744073709551615"},
		{"digests", kvevents.Digest(d1), kvevents.Digest(d2), false, ""},
		{"the same digest", kvevents.Digest(d1), kvevents.Digest(make([]byte, 32)), true, ""},
	} {
		if (c.a == c.b) != c.equal || c.string != "" && c.a.String() != c.string {
			t.Errorf("%s: %v and %v", c.name, c.a, c.b)
		}
	}
	b := decoded(t, object(t, list{1.0, list{list{"BlockRemoved", list{d1, d2, uint64(3), int64(-3)}}}}))
	want := []kvevents.Hash{kvevents.Digest(d1), kvevents.Digest(d2), kvevents.Uint(3), kvevents.Int(-3)}
	if diff := cmp.Diff(want, b.Events[0].Hashes, byHash); diff != "" {
		t.Error(diff)
	}
}

func TestBlocksOfAnEvent(t *testing.T) {
	h := make([]kvevents.Hash, 2)
	plain := kvevents.Event{Hashes: h, Tokens: []int{1, 2, 3, 4}, BlockSize: 2}
	pairs := kvevents.Event{Hashes: h, Tokens: []int{1, 2, 3, 4, 5}, BlockSize: 2, Bigram: true}
	if !plain.Sliced() || !cmp.Equal(plain.Block(1), []int{3, 4}) {
		t.Errorf("%v", plain.Block(1))
	}
	if !pairs.Sliced() || !cmp.Equal(pairs.Block(1), []int{3, 4, 5}) {
		t.Errorf("%v", pairs.Block(1))
	}
	for _, e := range []kvevents.Event{
		{},
		{Hashes: h, BlockSize: 2},
		{Hashes: h, Tokens: []int{1, 2, 3}, BlockSize: 2},
		{Hashes: h, Tokens: upTo(5), BlockSize: 2},
		{Hashes: h, Tokens: upTo(4), BlockSize: 2, Bigram: true},
		{Hashes: h, Tokens: upTo(4)},
	} {
		if e.Sliced() {
			t.Errorf("%+v can be cut", e)
		}
	}
}

// FuzzDecode: no payload makes the decoder panic, hold more than a small multiple of its length, or read another
// batch than a fresh decoder does.
func FuzzDecode(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex))
	}
	f.Add([]byte{0x92, 0x01, 0x91, 0xdf, 0xff, 0xff, 0xff, 0xff})
	var used kvevents.Decoder
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := used.Decode(payload)
		fresh, err2 := new(kvevents.Decoder).Decode(payload)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v, fresh: %v", err, err2)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(fresh, b, byHash, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			t.Fatal(diff)
		}
		n := 0
		for i := range b.Events {
			ev := &b.Events[i]
			n += len(ev.Hashes) + len(ev.Tokens) + len(ev.Extra) + 1
			if ev.Sliced() {
				for j := range ev.Hashes {
					ev.Block(j)
				}
			}
		}
		if n > 2*len(payload) {
			t.Fatalf("%d values of %d bytes", n, len(payload))
		}
	})
}
