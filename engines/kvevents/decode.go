package kvevents

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// ErrDecode is wrapped by all errors of [Decoder.Decode].
var ErrDecode = errors.New("kv event batch cannot be read")

// MaxEvents bounds the events of one batch. Engines send what one scheduler step changed, some hundreds at most.
const MaxEvents = 1 << 16

// Decoder reads the payloads of event messages. It keeps its buffers: once they have grown, a batch is read without
// allocation. The zero Decoder is ready; it must not be used by two goroutines at a time.
type Decoder struct {
	batch  Batch
	hashes []Hash
	tokens []int
	extra  [][]byte
	names  map[string]string
}

// Decode reads one payload: MessagePack, an array of time, events and rank, in which every event is an array or a
// map (vLLM 0.9 to 0.33, SGLang 0.4.9 to 0.5.23). Trailing array elements and unknown keys are passed over.
//
// The batch, its slices and byte slices of the payload in it are valid until the next call. Lengths that the payload
// declares allocate nothing: memory is bounded by a small multiple of the payload's own length.
func (d *Decoder) Decode(payload []byte) (*Batch, error) {
	d.batch = Batch{Rank: NoRank, Events: d.batch.Events[:0]}
	d.hashes, d.tokens, d.extra = d.hashes[:0], d.tokens[:0], d.extra[:0]
	n, b, err := msgp.ReadArrayHeaderBytes(payload)
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrDecode, err)
	}
	if n < 2 {
		return nil, fmt.Errorf("%w: %d elements, want at least 2", ErrDecode, n)
	}
	if d.batch.Time, b, err = readTime(b); err != nil {
		return nil, fmt.Errorf("%w: time: %w", ErrDecode, err)
	}
	if b, err = d.events(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	if n > 2 {
		if d.batch.Rank, b, err = readRank(b); err != nil {
			return nil, fmt.Errorf("%w: rank: %w", ErrDecode, err)
		}
	}
	for ; n > 3; n-- {
		if b, err = skip(b); err != nil {
			return nil, fmt.Errorf("%w: element behind the rank: %w", ErrDecode, err)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the batch", ErrDecode, len(b))
	}
	return &d.batch, nil
}

func readTime(b []byte) (float64, []byte, error) {
	switch msgp.NextType(b) {
	case msgp.IntType, msgp.UintType:
		v, o, err := msgp.ReadInt64Bytes(b)
		return float64(v), o, err
	case msgp.NilType:
		o, err := msgp.ReadNilBytes(b)
		return 0, o, err
	}
	return msgp.ReadFloat64Bytes(b)
}

func readRank(b []byte) (int, []byte, error) {
	if msgp.IsNil(b) {
		return NoRank, b[1:], nil
	}
	v, o, err := msgp.ReadInt64Bytes(b)
	if err == nil && (v < 0 || v > 1<<20) {
		err = fmt.Errorf("%d is none", v)
	}
	return int(v), o, err
}

func (d *Decoder) events(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, fmt.Errorf("events: %w", err)
	}
	for i := range n {
		if i == MaxEvents {
			return b, fmt.Errorf("events: %d, want at most %d", n, MaxEvents)
		}
		start := b
		if b, err = d.event(b); err == nil {
			continue
		}
		// An event that is no MessagePack spoils the batch, one of another shape only itself.
		var broken error
		if b, broken = skip(start); broken != nil {
			return b, fmt.Errorf("event %d: %w", i, err)
		}
		d.batch.Malformed++
	}
	return b, nil
}

// skip passes over one object of any depth without recursion.
func skip(b []byte) ([]byte, error) {
	for left := uint64(1); left > 0; left-- {
		var n uint32
		var err error
		switch msgp.NextType(b) {
		case msgp.ArrayType:
			n, b, err = msgp.ReadArrayHeaderBytes(b)
			left += uint64(n)
		case msgp.MapType:
			n, b, err = msgp.ReadMapHeaderBytes(b)
			left += 2 * uint64(n)
		default:
			b, err = msgp.Skip(b)
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}
