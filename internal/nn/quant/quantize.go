package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Quantize packs src into dst as ggml's reference code does, rounding to nearest. The formats are F32, F16, BF16, Q8_0,
// Q4_0, Q4_1, Q5_0 and Q5_1. It is an error if the format is another one, len(src) is no whole number of blocks, or dst is shorter
// than they are. Weights that are not finite spoil their block.
func Quantize(t Type, dst []byte, src []float32) error {
	size, err := t.Bytes(len(src))
	if err != nil {
		return err
	}
	if len(dst) < size {
		return fmt.Errorf("quant: %d bytes for %d weights in %v: want %d", len(dst), len(src), t, size)
	}
	block := t.encoder()
	if block == nil {
		return fmt.Errorf("quant: %v can be read only", t)
	}
	weights, bytes := t.Block()
	for len(src) > 0 {
		block(dst[:bytes], src[:weights])
		dst, src = dst[bytes:], src[weights:]
	}
	return nil
}

// encoder returns what encodes one block, or nil.
func (t Type) encoder() func(dst []byte, src []float32) {
	switch t {
	case F32:
		return func(dst []byte, src []float32) { binary.LittleEndian.PutUint32(dst, math.Float32bits(src[0])) }
	case F16:
		return func(dst []byte, src []float32) { binary.LittleEndian.PutUint16(dst, ToF16(src[0])) }
	case BF16:
		return func(dst []byte, src []float32) { binary.LittleEndian.PutUint16(dst, ToBF16(src[0])) }
	case Q8_0:
		return encodeQ8x0
	case Q4_0:
		return encodeQ4x0
	case Q4_1:
		return encodeQ4x1
	case Q5_0:
		return encodeQ5x0
	case Q5_1:
		return encodeQ5x1
	}
	return nil
}

func putHalf(dst []byte, f float32) { binary.LittleEndian.PutUint16(dst, ToF16(f)) }

// inverse is 1/d, or 0 for a block of zeros.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// encodeQ8x0: the largest magnitude becomes 127.
func encodeQ8x0(dst []byte, src []float32) {
	var most float32
	for _, x := range src {
		most = max(most, float32(math.Abs(float64(x))))
	}
	d := most / 127
	putHalf(dst, d)
	scale := inverse(d)
	for i, x := range src {
		dst[2+i] = byte(int8(math.Round(float64(x * scale))))
	}
}

// largest is the number of the largest magnitude, the first of them.
func largest(src []float32) float32 {
	var most float32
	for _, x := range src {
		if math.Abs(float64(x)) > math.Abs(float64(most)) {
			most = x
		}
	}
	return most
}

// encodeQ4x0: the number of the largest magnitude becomes -8.
func encodeQ4x0(dst []byte, src []float32) {
	d := largest(src) / -8
	putHalf(dst, d)
	scale := inverse(d)
	for i := range 16 {
		low := min(15, int8(float32(src[i]*scale)+8.5))
		high := min(15, int8(float32(src[i+16]*scale)+8.5))
		dst[2+i] = byte(low)&15 | byte(high)<<4
	}
}

// encodeQ4x1: the least becomes 0, the most 15.
func encodeQ4x1(dst []byte, src []float32) {
	least, most := slices.Min(src), slices.Max(src)
	d := (most - least) / 15
	putHalf(dst, d)
	putHalf(dst[2:], least)
	scale := inverse(d)
	for i := range 16 {
		low := min(15, int8(float32((src[i]-least)*scale)+0.5))
		high := min(15, int8(float32((src[i+16]-least)*scale)+0.5))
		dst[4+i] = byte(low)&15 | byte(high)<<4
	}
}

// pack5 writes 32 numbers of 5 bits: 4 bytes of fifth bits, 16 bytes of the others.
func pack5(dst []byte, q *[32]byte) {
	var high uint32
	for i, x := range q {
		high |= uint32(x>>4) << i
	}
	binary.LittleEndian.PutUint32(dst, high)
	for i := range 16 {
		dst[4+i] = q[i]&15 | q[i+16]<<4
	}
}

// encodeQ5x0: the number of the largest magnitude becomes -16.
func encodeQ5x0(dst []byte, src []float32) {
	d := largest(src) / -16
	putHalf(dst, d)
	scale := inverse(d)
	var q [32]byte
	for i, x := range src[:32] {
		q[i] = byte(min(31, int8(float32(x*scale)+16.5))) & 31
	}
	pack5(dst[2:], &q)
}

// encodeQ5x1: the least becomes 0, the most 31.
func encodeQ5x1(dst []byte, src []float32) {
	least, most := slices.Min(src), slices.Max(src)
	d := (most - least) / 31
	putHalf(dst, d)
	putHalf(dst[2:], least)
	scale := inverse(d)
	var q [32]byte
	for i, x := range src[:32] {
		q[i] = byte(min(31, int8(float32((x-least)*scale)+0.5))) & 31
	}
	pack5(dst[4:], &q)
}
