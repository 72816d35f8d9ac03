package kvfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// pageTokens is how many tokens a page has.
const pageTokens = 16

// Shape is what a page holds of 16 tokens: for each layer the keys (head, dimension, token), then the values (head, token, dimension).
type Shape struct{ Layers, KV, Dim int }

// Floats is how many numbers a page has.
func (s Shape) Floats() int { return 2 * s.Layers * s.KV * s.Dim * pageTokens }

// Format is what numbers are in files.
type Format uint8

// The formats. Reading gives the same bits each time; with F32 those that were written.
const (
	F32  Format = iota // 4 bytes
	F16                // 2 bytes
	Int8               // 1 byte; a dimension of 16 tokens' keys, and 32 dimensions of a token's values, share a scale of 2 bytes
)

var formatNames = [...]string{"f32", "f16", "int8"}

func (f Format) String() string { return formatNames[f] }

// FormatByName returns the format of a name: f32, f16 or int8.
func FormatByName(name string) (Format, error) {
	for i, n := range formatNames {
		if n == name {
			return Format(i), nil
		}
	}
	return 0, fmt.Errorf("format %q: want f32, f16 or int8", name)
}

// errRange: a number is infinite, no number, or too large for the format.
var errRange = errors.New("a number is out of the format's range")

const (
	keyGroup   = pageTokens
	valueGroup = 32
)

// Size is the length in bytes of a page's numbers.
func (f Format) Size(s Shape) int {
	switch f {
	case F16:
		return 2 * s.Floats()
	case Int8:
		groups := (s.Dim + valueGroup - 1) / valueGroup
		return s.Layers * s.KV * (s.Dim*(2+keyGroup) + pageTokens*(2*groups+s.Dim))
	}
	return 4 * s.Floats()
}

// Encode writes a page's numbers to dst, which is Size long. The error is that one of them is out of the format's range.
func (f Format) Encode(dst []byte, s Shape, page []float32) error {
	switch f {
	case F16:
		for i, v := range page {
			h := quant.ToF16(v)
			if h&0x7c00 == 0x7c00 {
				return errRange
			}
			binary.LittleEndian.PutUint16(dst[2*i:], h)
		}
		return nil
	case Int8:
		return s.groups(func(from, to int) (err error) {
			dst, err = putGroup(dst, page[from:to])
			return err
		})
	}
	for i, v := range page {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
	return nil
}

// Decode reads a page's numbers from src, which is Size long.
func (f Format) Decode(page []float32, s Shape, src []byte) {
	switch f {
	case F16:
		quant.Dequantize(quant.F16, page, src)
	case Int8:
		_ = s.groups(func(from, to int) error {
			scale := quant.FromF16(binary.LittleEndian.Uint16(src))
			for i := range page[from:to] {
				page[from+i] = scale * float32(int8(src[2+i]))
			}
			src = src[2+to-from:]
			return nil
		})
	default:
		quant.Dequantize(quant.F32, page, src)
	}
}

// groups calls do for each run of numbers that share a scale, until it fails.
func (s Shape) groups(do func(from, to int) error) error {
	at := 0
	for range s.Layers {
		for range s.KV * s.Dim {
			if err := do(at, at+keyGroup); err != nil {
				return err
			}
			at += keyGroup
		}
		for range s.KV * pageTokens {
			for left := s.Dim; left > 0; left -= valueGroup {
				n := min(left, valueGroup)
				if err := do(at, at+n); err != nil {
					return err
				}
				at += n
			}
		}
	}
	return nil
}

// putGroup writes a scale and a byte for each number, and returns the rest of dst.
func putGroup(dst []byte, group []float32) ([]byte, error) {
	largest := float32(0)
	for _, v := range group {
		if v != v {
			return nil, errRange
		}
		largest = max(largest, v, -v)
	}
	half := quant.ToF16(largest / 127)
	scale := quant.FromF16(half)
	if math.IsInf(float64(scale), 0) {
		return nil, errRange
	}
	binary.LittleEndian.PutUint16(dst, half)
	for i, v := range group {
		q := float32(0)
		if scale > 0 {
			q = min(max(v/scale, -127), 127)
		}
		dst[2+i] = byte(int8(math.RoundToEven(float64(q))))
	}
	return dst[2+len(group):], nil
}
