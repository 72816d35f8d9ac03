package kvevents

import (
	"encoding/binary"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

func (d *Decoder) readHashes(b []byte) ([]Hash, []byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, b, err
	}
	start := len(d.hashes)
	for range n {
		var h Hash
		if h, b, err = readHash(b); err != nil {
			return nil, b, err
		}
		d.hashes = append(d.hashes, h)
	}
	return d.hashes[start:len(d.hashes):len(d.hashes)], b, nil
}

func readHash(b []byte) (Hash, []byte, error) {
	if len(b) >= 9 && b[0] == 0xcf { // uint64, nearly always
		return Uint(binary.BigEndian.Uint64(b[1:])), b[9:], nil
	}
	switch t := msgp.NextType(b); t {
	case msgp.UintType:
		v, o, err := msgp.ReadUint64Bytes(b)
		return Uint(v), o, err
	case msgp.IntType:
		v, o, err := msgp.ReadInt64Bytes(b)
		return Int(v), o, err
	case msgp.BinType:
		v, o, err := msgp.ReadBytesZC(b)
		if err != nil {
			return Hash{}, b, err
		}
		return Digest(v), o, nil
	default:
		if len(b) == 0 {
			return Hash{}, b, msgp.ErrShortBytes
		}
		return Hash{}, b, fmt.Errorf("block hash of type %v", t)
	}
}

// readTokens reads numbers, or pairs of which each begins with the number that the one before ended with.
func (d *Decoder) readTokens(b []byte) (tokens []int, bigram bool, rest []byte, err error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, false, b, err
	}
	start := len(d.tokens)
	if n > 0 && msgp.NextType(b) == msgp.ArrayType {
		if b, err = d.readPairs(n, b); err != nil {
			return nil, true, b, err
		}
		return d.tokens[start:len(d.tokens):len(d.tokens)], true, b, nil
	}
	for range n {
		var v int
		if v, b, err = readToken(b); err != nil {
			return nil, false, b, err
		}
		d.tokens = append(d.tokens, v)
	}
	return d.tokens[start:len(d.tokens):len(d.tokens)], false, b, nil
}

// readToken has the three usual encodings in place: a batch has hundreds of tokens.
func readToken(b []byte) (int, []byte, error) {
	switch {
	case len(b) >= 3 && b[0] == 0xcd:
		return int(binary.BigEndian.Uint16(b[1:])), b[3:], nil
	case len(b) >= 5 && b[0] == 0xce:
		return int(binary.BigEndian.Uint32(b[1:])), b[5:], nil
	case len(b) >= 1 && b[0] < 0x80:
		return int(b[0]), b[1:], nil
	}
	v, o, err := msgp.ReadInt64Bytes(b)
	return int(v), o, err
}

func (d *Decoder) readPairs(n uint32, b []byte) ([]byte, error) {
	second := 0
	for i := range n {
		two, o, err := msgp.ReadArrayHeaderBytes(b)
		if err != nil {
			return b, err
		}
		if two != 2 {
			return b, fmt.Errorf("token_ids[%d] has %d numbers, want 2", i, two)
		}
		first := 0
		if first, o, err = readToken(o); err != nil {
			return b, err
		}
		if i > 0 && first != second {
			return b, fmt.Errorf("token_ids[%d] begins with %d, want %d", i, first, second)
		}
		if second, o, err = readToken(o); err != nil {
			return b, err
		}
		d.tokens = append(d.tokens, first)
		b = o
	}
	d.tokens = append(d.tokens, second)
	return b, nil
}

func (d *Decoder) readExtra(b []byte) ([][]byte, []byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, b, err
	}
	start := len(d.extra)
	for range n {
		if msgp.IsNil(b) {
			d.extra = append(d.extra, nil)
			b = b[1:]
			continue
		}
		rest, err := skip(b)
		if err != nil {
			return nil, b, err
		}
		d.extra = append(d.extra, b[:len(b)-len(rest)])
		b = rest
	}
	return d.extra[start:len(d.extra):len(d.extra)], b, nil
}
