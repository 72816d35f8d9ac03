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
	f, _ := t.format()
	step := f.weights
	if step == 1 { // as many at a time as there are
		step, f.bytes = max(len(dst), 1), size
	}
	for ; len(dst) > 0; dst, src = dst[step:], src[f.bytes:] {
		f.decode(dst[:step], src[:f.bytes])
	}
}

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i : 4*i+4]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
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

// fifth returns the fifth bits of weights i and i+16, of 32 that lie in 4 bytes, each in its place above the other four.
func fifth(high uint32, i int) (low, up byte) {
	return byte(high >> i & 1 << 4), byte(high >> (i + 16) & 1 << 4)
}

// decodeQ5x0: scale, 4 bytes of fifth bits, 16 bytes as in Q4_0.
func decodeQ5x0(dst []float32, src []byte) {
	d, high := half(src), binary.LittleEndian.Uint32(src[2:])
	for i, q := range src[6:22] {
		low, up := fifth(high, i)
		dst[i] = d * float32(int(q&15|low)-16)
		dst[i+16] = d * float32(int(q>>4|up)-16)
	}
}

// decodeQ5x1: scale, minimum, 4 bytes of fifth bits, 16 bytes as in Q4_0.
func decodeQ5x1(dst []float32, src []byte) {
	d, m, high := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:])
	for i, q := range src[8:24] {
		low, up := fifth(high, i)
		dst[i] = float32(d*float32(q&15|low)) + m
		dst[i+16] = float32(d*float32(q>>4|up)) + m
	}
}

// IQ4Values are the weights of IQ4_NL before they are scaled: kvalues_iq4nl in ggml-common.h. Read-only.
var IQ4Values = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// decodeIQ4xNL: scale, 16 bytes as in Q4_0, of numbers that stand for values of a table.
func decodeIQ4xNL(dst []float32, src []byte) {
	d := half(src)
	for i, q := range src[2:18] {
		dst[i] = d * float32(IQ4Values[q&15])
		dst[i+16] = d * float32(IQ4Values[q>>4])
	}
}

// decodeQ3xK: 32 bytes of third bits, where each 32 weights have the next bit of all bytes; 64 bytes of low quarters, as the high
// ones of Q6_K; 16 scales of 6 bits in 12 bytes; scale of the scales.
func decodeQ3xK(dst []float32, src []byte) {
	third, low, scales, d := src[:32], src[32:96], src[96:108], half(src[108:])
	for i := range dst[:256] {
		part, l := i/128, i%32
		group := i % 128 / 32
		q := low[part*32+l] >> (2 * group) & 3
		q |= third[l] >> (4*part + group) & 1 << 2
		dst[i] = float32(d*float32(ScaleQ3K((*[12]byte)(scales), i/16))) * float32(int(q)-4)
	}
}

// ScaleQ3K unpacks the scale of the j-th 16 weights of a block of Q3_K, of 16: the low 4 bits lie in the halves of bytes 0…7, the high
// 2 in the quarters of bytes 8…11.
func ScaleQ3K(b *[12]byte, j int) int {
	return int(b[j%8]>>(j/8*4)&15|b[8+j%4]>>(j/4*2)&3<<4) - 32
}

// decodeQ4xK: scale of the scales, scale of the minima, 8 scales and 8 minima of 6 bits in 12 bytes, 128 bytes of
// halves: of each 32 bytes the low halves are 32 weights and the high halves the next 32.
func decodeQ4xK(dst []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	for j := range 8 {
		s, m := ScaleQ4K((*[12]byte)(src[4:]), j)
		scale, least := d*float32(s), dmin*float32(m)
		shift := 4 * (j % 2)
		for i, q := range src[16+j/2*32:][:32] {
			dst[j*32+i] = float32(scale*float32(q>>shift&15)) - least
		}
	}
}

// ScaleQ4K unpacks the scale and the minimum of the j-th 32 weights of a block of Q4_K or Q5_K, of 8: those of the first four lie in
// the low 6 bits of bytes 0…3 and 4…7; of the others the low 4 bits lie in bytes 8…11 and the high 2 above the first four.
func ScaleQ4K(b *[12]byte, j int) (scale, least int) {
	if j < 4 {
		return int(b[j] & 63), int(b[j+4] & 63)
	}
	return int(b[j+4]&15 | b[j-4]>>6<<4), int(b[j+4]>>4 | b[j]>>6<<4)
}

// decodeQ5xK: as Q4_K, with 32 bytes of fifth bits before the halves: each 32 weights have the next bit of all bytes.
func decodeQ5xK(dst []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	for j := range 8 {
		s, m := ScaleQ4K((*[12]byte)(src[4:]), j)
		scale, least := d*float32(s), dmin*float32(m)
		shift := 4 * (j % 2)
		for i, q := range src[48+j/2*32:][:32] {
			q = q>>shift&15 | src[16+i]>>j&1<<4
			dst[j*32+i] = float32(scale*float32(q)) - least
		}
	}
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
