package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize turns len(dst) weights of src into float32. It panics if the format is unknown, len(dst) is no whole
// number of blocks, or src is shorter than they are. A weight's value is that of the formula in the package's table,
// from left to right, each operation rounded to float32, none fused. Calls on different dst may run at the same time.
func Dequantize(t Type, dst []float32, src []byte) {
	size, err := t.Bytes(len(dst))
	if err != nil {
		panic(err)
	}
	if len(src) < size {
		panic(fmt.Sprintf("quant: %d bytes for %d weights in %v: want %d", len(src), len(dst), t, size))
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = half(src[2*i:])
		}
	case BF16:
		for i := range dst {
			dst[i] = FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		block := t.decoder()
		weights, bytes := t.Block()
		for len(dst) > 0 {
			block(dst[:weights], src[:bytes])
			dst, src = dst[weights:], src[bytes:]
		}
	}
}

// decoder returns what decodes one block.
func (t Type) decoder() func(dst []float32, src []byte) {
	switch t {
	case Q8_0:
		return decodeQ8x0
	case Q4_0:
		return decodeQ4x0
	case Q4_1:
		return decodeQ4x1
	case Q4_K:
		return decodeQ4xK
	default:
		return decodeQ6xK
	}
}

func half(b []byte) float32 { return FromF16(binary.LittleEndian.Uint16(b)) }

// decodeQ8x0: scale, 32 signed bytes.
func decodeQ8x0(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:34] {
		dst[i] = d * float32(int8(q))
	}
}

// decodeQ4x0: scale, 16 bytes; the low halves are the first 16 weights.
func decodeQ4x0(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:18] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

// decodeQ4x1: scale, minimum, 16 bytes as in Q4_0.
func decodeQ4x1(dst []float32, src []byte) {
	d, m := half(src), half(src[2:])
	for i, q := range src[4:20] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

// decodeQ4xK: scale of the scales, scale of the minima, 8 scales and 8 minima of 6 bits in 12 bytes, 128 bytes of
// halves: of each 32 bytes the low halves are 32 weights and the high halves the next 32.
func decodeQ4xK(dst []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	for j := range 8 {
		s, m := scaleQ4xK(src[4:16], j)
		scale, least := d*float32(s), dmin*float32(m)
		shift := 4 * (j % 2)
		for i, q := range src[16+j/2*32:][:32] {
			dst[j*32+i] = float32(scale*float32(q>>shift&15)) - least
		}
	}
}

// scaleQ4xK unpacks the scale and the minimum of the j-th 32 weights: those of the first four lie in the low 6 bits
// of bytes 0…3 and 4…7; of the others the low 4 bits lie in bytes 8…11 and the high 2 above the first four.
func scaleQ4xK(b []byte, j int) (scale, least byte) {
	if j < 4 {
		return b[j] & 63, b[j+4] & 63
	}
	return b[j+4]&15 | b[j-4]>>6<<4, b[j+4]>>4 | b[j]>>6<<4
}

// decodeQ6xK: 128 bytes of low halves, 64 bytes of high quarters, 16 signed scales, scale of the scales.
func decodeQ6xK(dst []float32, src []byte) {
	low, high, scales, d := src[:128], src[128:192], src[192:208], half(src[208:])
	for i := range dst[:256] {
		part, l := i/128, i%32 // each 128 weights: four groups of 32 that share high bytes
		group := i % 128 / 32
		q := low[part*64+group%2*32+l] >> (group / 2 * 4) & 15
		q |= high[part*32+l] >> (2 * group) & 3 << 4
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(q)-32)
	}
}
