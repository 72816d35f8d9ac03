// Package blob writes vectors as bytes: float32, little endian, one after the other.
package blob

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Encode returns the bytes of a vector.
func Encode(v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return raw
}

// Decode reads a vector into dst, which it may replace by a longer one.
func Decode(dst []float32, raw []byte) ([]float32, error) {
	if len(raw)%4 != 0 {
		return dst, fmt.Errorf("a vector of %d bytes", len(raw))
	}
	dst = dst[:0]
	for i := 0; i < len(raw); i += 4 {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
	}
	return dst, nil
}
