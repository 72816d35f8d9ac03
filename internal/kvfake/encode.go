package kvfake

import (
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Form is an encoding of events.
type Form uint8

// The two encodings that engines use.
const (
	Map Form = iota
	Array
)

// Payload encodes a batch as engines do. Hashes must have been made of numbers.
func Payload(form Form, time float64, rank int, events ...kvevents.Event) []byte {
	b := msgp.AppendArrayHeader(nil, 3)
	b = msgp.AppendFloat64(b, time)
	b = msgp.AppendArrayHeader(b, uint32(len(events)))
	for i := range events {
		if form == Array {
			b = appendArray(b, &events[i])
		} else {
			b = appendMap(b, &events[i])
		}
	}
	if rank == kvevents.NoRank {
		return msgp.AppendNil(b)
	}
	return msgp.AppendInt(b, rank)
}

func appendArray(b []byte, e *kvevents.Event) []byte {
	switch e.Kind {
	case kvevents.Stored:
		b = msgp.AppendArrayHeader(b, 10)
		b = appendStored(msgp.AppendString(b, "BlockStored"), e, func(b []byte, _ string) []byte { return b })
		return b
	case kvevents.Removed:
		b = msgp.AppendArrayHeader(b, 4)
		b = appendHashes(msgp.AppendString(b, "BlockRemoved"), e.Hashes)
		return msgp.AppendInt(appendText(b, e.Medium), e.Group)
	}
	return msgp.AppendString(msgp.AppendArrayHeader(b, 1), "AllBlocksCleared")
}

func appendMap(b []byte, e *kvevents.Event) []byte {
	switch e.Kind {
	case kvevents.Stored:
		b = msgp.AppendMapHeader(b, 12)
		b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockStored")
		b = appendStored(b, e, msgp.AppendString)
		b = appendText(msgp.AppendString(b, "cache_salt"), string(e.Salt))
		return appendText(msgp.AppendString(b, "kv_cache_spec_kind"), e.Spec)
	case kvevents.Removed:
		b = msgp.AppendMapHeader(b, 4)
		b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockRemoved")
		b = appendHashes(msgp.AppendString(b, "block_hashes"), e.Hashes)
		b = appendText(msgp.AppendString(b, "medium"), e.Medium)
		return msgp.AppendInt(msgp.AppendString(b, "group_idx"), e.Group)
	}
	return msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(b, 1), "type"), "AllBlocksCleared")
}

// appendStored appends nine fields; key puts the name before each, or nothing.
func appendStored(b []byte, e *kvevents.Event, key func([]byte, string) []byte) []byte {
	b = appendHashes(key(b, "block_hashes"), e.Hashes)
	b = appendHash(key(b, "parent_block_hash"), e.Parent)
	b = appendTokens(key(b, "token_ids"), e)
	b = msgp.AppendInt(key(b, "block_size"), e.BlockSize)
	b = msgp.AppendNil(key(b, "lora_id"))
	b = appendText(key(b, "medium"), e.Medium)
	b = appendText(key(b, "lora_name"), e.LoRA)
	b = msgp.AppendArrayHeader(key(b, "extra_keys"), uint32(len(e.Extra)))
	for _, x := range e.Extra {
		if x == nil {
			b = msgp.AppendNil(b)
		} else {
			b = append(b, x...)
		}
	}
	return msgp.AppendInt(key(b, "group_idx"), e.Group)
}

func appendTokens(b []byte, e *kvevents.Event) []byte {
	if !e.Bigram {
		b = msgp.AppendArrayHeader(b, uint32(len(e.Tokens)))
		for _, t := range e.Tokens {
			b = msgp.AppendInt(b, t)
		}
		return b
	}
	b = msgp.AppendArrayHeader(b, uint32(len(e.Tokens)-1))
	for i := range len(e.Tokens) - 1 {
		b = msgp.AppendInt(msgp.AppendInt(msgp.AppendArrayHeader(b, 2), e.Tokens[i]), e.Tokens[i+1])
	}
	return b
}

func appendHashes(b []byte, hashes []kvevents.Hash) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(hashes)))
	for _, h := range hashes {
		b = appendHash(b, h)
	}
	return b
}

func appendHash(b []byte, h kvevents.Hash) []byte {
	s := h.String()
	if h.IsZero() {
		return msgp.AppendNil(b)
	}
	if strings.HasPrefix(s, "-") {
		v, _ := strconv.ParseInt(s, 10, 64)
		return msgp.AppendInt64(b, v)
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic("kvfake: hash " + s + " is not a number")
	}
	return msgp.AppendUint64(b, v)
}

func appendText(b []byte, s string) []byte {
	if s == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, s)
}
