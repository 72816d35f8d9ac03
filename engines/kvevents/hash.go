package kvevents

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Hash is an engine's name for a cache block. It is a handle and nothing more: two blocks of one publisher are the
// same exactly if their Hashes are equal, and Hashes of different publishers must not be compared. The zero Hash
// stands for "none".
//
// Integers are kept exactly. Digests, which vLLM sends if it is configured not to shorten them, are kept as 127 bits of
// their XXH3 hash, so that a Hash is a small map key whatever the engine sends.
type Hash struct{ kind, value uint64 }

const (
	unsigned = 1       // value is the number
	negative = 2       // value is the number's two's complement
	digest   = 1 << 63 // value and the other 63 bits of kind are a hash of the bytes
)

// Uint is the Hash of an unsigned number, as vLLM sends them.
func Uint(v uint64) Hash { return Hash{unsigned, v} }

// Int is the Hash of a signed number, as SGLang sends them. Int(v) equals Uint(v) if v is not negative: the
// encoding on the wire is the same for both.
func Int(v int64) Hash {
	if v < 0 {
		return Hash{negative, uint64(v)}
	}
	return Uint(uint64(v))
}

// Digest is the Hash of a digest in bytes.
func Digest(b []byte) Hash {
	h := xxh3.Hash128(b)
	return Hash{h.Hi | digest, h.Lo}
}

// IsZero reports whether h names no block.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns the number in decimal, or for a digest "bin:" and hexadecimal digits of what is kept of it.
func (h Hash) String() string {
	switch {
	case h.IsZero():
		return "none"
	case h.kind == unsigned:
		return fmt.Sprint(h.value)
	case h.kind == negative:
		return fmt.Sprint(int64(h.value))
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], h.kind)
	binary.BigEndian.PutUint64(b[8:], h.value)
	return fmt.Sprintf("bin:%x", b)
}
