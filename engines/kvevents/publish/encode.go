package publish

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// Encoding is a form of events.
type Encoding uint8

const (
	// Map is what vLLM sends from 0.24 on: each event is a map with names. The default.
	Map Encoding = iota
	// Array is what it sent before: each event is an array, by position. It has no place for [kvevents.Event].Session and Spec.
	Array
)

// ErrHash is wrapped by errors about hashes that are no numbers.
var ErrHash = errors.New("hash is not a number")

// Append appends the payload of a batch. Unknown and Malformed of the batch have no meaning here. Where an event of the beginning of a
// prompt has a Salt and no Extra, the salt becomes the extra key of its first block, which is where vLLM has it. Errors wrap [ErrHash].
func Append(b []byte, form Encoding, batch *kvevents.Batch) ([]byte, error) {
	w := writer{b: msgp.AppendArrayHeader(b, 3)}
	w.b = msgp.AppendFloat64(w.b, batch.Time)
	w.b = msgp.AppendArrayHeader(w.b, uint32(len(batch.Events)))
	for i := range batch.Events {
		w.event(form, &batch.Events[i])
	}
	if batch.Rank == kvevents.NoRank {
		w.b = msgp.AppendNil(w.b)
	} else {
		w.b = msgp.AppendInt(w.b, batch.Rank)
	}
	return w.b, w.err
}

// writer appends MessagePack and keeps the first error.
type writer struct {
	b   []byte
	err error
}

// field is one element of an event: its name in a map, whether it must be there, and what appends its value.
type field struct {
	name  string
	there bool
	value func()
}

func (w *writer) event(form Encoding, e *kvevents.Event) {
	fields, byPosition := w.fields(e)
	if form == Array {
		w.b = msgp.AppendArrayHeader(w.b, uint32(byPosition))
		for _, f := range fields[:byPosition] {
			f.value()
		}
		return
	}
	n := 0
	for _, f := range fields {
		if f.there {
			n++
		}
	}
	w.b = msgp.AppendMapHeader(w.b, uint32(n))
	for _, f := range fields {
		if f.there {
			w.b = msgp.AppendString(w.b, f.name)
			f.value()
		}
	}
}

// fields are those of an event in the order of the array form, which has only the first of them.
func (w *writer) fields(e *kvevents.Event) (all []field, byPosition int) {
	text := func(s string) func() { return func() { w.text(s) } }
	number := func(n int) func() { return func() { w.b = msgp.AppendInt(w.b, n) } }
	switch e.Kind {
	case kvevents.Stored:
		extra := extraKeys(e)
		return []field{
			{"type", true, text("BlockStored")},
			{"block_hashes", true, func() { w.hashes(e.Hashes) }},
			{"parent_block_hash", true, func() { w.hash(e.Parent) }},
			{"token_ids", true, func() { w.tokens(e) }},
			{"block_size", true, number(e.BlockSize)},
			{"lora_id", true, text("")},
			{"medium", true, text(e.Medium)},
			{"lora_name", true, text(e.LoRA)},
			{"extra_keys", extra != nil, func() { w.extra(extra) }},
			{"group_idx", e.Group != 0, number(e.Group)},
			{"kv_cache_spec_kind", e.Spec != "", text(e.Spec)},
			{"session_id", len(e.Session) > 0, text(string(e.Session))},
			{"locality", e.Locality != "", text(e.Locality)},
		}, 10
	case kvevents.Removed:
		return []field{
			{"type", true, text("BlockRemoved")},
			{"block_hashes", true, func() { w.hashes(e.Hashes) }},
			{"medium", true, text(e.Medium)},
			{"group_idx", e.Group != 0, number(e.Group)},
			{"locality", e.Locality != "", text(e.Locality)},
		}, 4
	}
	return []field{{"type", true, text("AllBlocksCleared")}}, 1
}

// extraKeys are what the blocks' hashes depend on beside tokens.
func extraKeys(e *kvevents.Event) [][]byte {
	if e.Extra != nil || len(e.Salt) == 0 || !e.Parent.IsZero() || len(e.Hashes) == 0 {
		return e.Extra
	}
	extra := make([][]byte, len(e.Hashes))
	extra[0] = msgp.AppendStringFromBytes(msgp.AppendArrayHeader(nil, 1), e.Salt)
	return extra
}

func (w *writer) extra(keys [][]byte) {
	if keys == nil {
		w.b = msgp.AppendNil(w.b)
		return
	}
	w.b = msgp.AppendArrayHeader(w.b, uint32(len(keys)))
	for _, x := range keys {
		if x == nil {
			w.b = msgp.AppendNil(w.b)
		} else {
			w.b = append(w.b, x...)
		}
	}
}

// tokens of pairs go out as pairs, as SGLang sends them.
func (w *writer) tokens(e *kvevents.Event) {
	if !e.Bigram {
		w.b = msgp.AppendArrayHeader(w.b, uint32(len(e.Tokens)))
		for _, t := range e.Tokens {
			w.b = msgp.AppendInt(w.b, t)
		}
		return
	}
	n := max(len(e.Tokens)-1, 0)
	w.b = msgp.AppendArrayHeader(w.b, uint32(n))
	for i := range n {
		w.b = msgp.AppendArrayHeader(w.b, 2)
		w.b = msgp.AppendInt(msgp.AppendInt(w.b, e.Tokens[i]), e.Tokens[i+1])
	}
}

func (w *writer) hashes(hashes []kvevents.Hash) {
	w.b = msgp.AppendArrayHeader(w.b, uint32(len(hashes)))
	for _, h := range hashes {
		w.hash(h)
	}
}

func (w *writer) hash(h kvevents.Hash) {
	if h.IsZero() {
		w.b = msgp.AppendNil(w.b)
		return
	}
	s := h.String()
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		w.b = msgp.AppendUint64(w.b, v)
		return
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrHash, s)
	}
	w.b = msgp.AppendInt64(w.b, v)
}

// text appends a string, nil for none.
func (w *writer) text(s string) {
	if s == "" {
		w.b = msgp.AppendNil(w.b)
		return
	}
	w.b = msgp.AppendString(w.b, s)
}
