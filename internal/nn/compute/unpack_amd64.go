//go:build goexperiment.simd

package compute

import (
	"unsafe"

	"simd/archsimd"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// A group of weights in the layout of tileVectors: for each 8 columns, those of its first row, its second, and so on.

// stride is how far the next 8 columns of a row are.
const stride = groupRows * lanes

// unpackVectors unpacks a group. Weights are finite in any file that is not broken; a scale that is not gives others than
// [quant.Dequantize].
func unpackVectors(t quant.Type, dst []float32, rows *[groupRows][]byte) {
	k := len(dst) / groupRows
	size, err := t.Bytes(k)
	if err != nil {
		panic(err)
	}
	for i, row := range rows {
		to, row := dst[i*lanes:], row[:size]
		switch t {
		case quant.F32:
			unpackF32(to, row)
		case quant.F16:
			unpackF16(to, row)
		case quant.BF16:
			unpackBF16(to, row)
		default:
			unpackBlocks(t, to, row)
		}
	}
	archsimd.ClearAVXUpperBits()
}

func unpackF32(to []float32, row []byte) {
	for ; len(row) >= 4*lanes; row = row[4*lanes:] {
		v := load((*vec)(unsafe.Pointer((*[4 * lanes]byte)(row))))
		v.Store((*vec)(to))
		to = next(to)
	}
}

func unpackF16(to []float32, row []byte) {
	small, digits := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(halfDigits)
	for ; len(row) >= 2*lanes; row = row[2*lanes:] {
		halves((*[16]uint8)(row), digits, small).Store((*vec)(to))
		to = next(to)
	}
}

func unpackBF16(to []float32, row []byte) {
	for ; len(row) >= 2*lanes; row = row[2*lanes:] {
		h := archsimd.LoadUint8x16((*[16]uint8)(row)).AsUint16x8().ExtendToUint32()
		h.ShiftAllLeft(16).AsFloat32x8().Store((*vec)(to))
		to = next(to)
	}
}

// next returns where the next 8 columns of the row go; nothing is left after the last.
func next(to []float32) []float32 { return to[min(stride, len(to)):] }

// A 16-bit float's exponent and digits are a float32's if they are shifted to its place, but for the offsets of the exponents, which
// differ by 112. That also holds for numbers near zero; it does not for infinities.
const (
	smallHalf  = 0x1p112
	halfDigits = -0x70002000 // the sign, and what is shifted
)

// half is a 16-bit float's value in every lane; small is smallHalf in every lane. The instructions are those of vectors throughout:
// one of the older instructions in between would cost more than all of a block's arithmetic.
func half(p *[2]byte, small vector) vector {
	bits := int32(*(*int16)(unsafe.Pointer(p))) << 13 & halfDigits
	return archsimd.BroadcastInt32x8(bits).AsFloat32x8().Mul(small)
}

// halves are the values of 8 16-bit floats; digits is halfDigits in every lane.
func halves(p *[16]uint8, digits archsimd.Int32x8, small vector) vector {
	bits := archsimd.LoadUint8x16(p).AsInt16x8().ExtendToInt32().ShiftAllLeft(13)
	return bits.And(digits).AsFloat32x8().Mul(small)
}

// bytesOf are 16 bytes as numbers.
func bytesOf(p *[16]uint8) (first, second archsimd.Int32x8) {
	b := archsimd.LoadUint8x16(p)
	return b.ExtendLo8ToUint32().AsInt32x8(), b.ConcatShiftBytesRight(8, b).ExtendLo8ToUint32().AsInt32x8()
}
