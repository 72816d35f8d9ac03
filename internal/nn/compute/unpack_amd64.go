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
		case quant.Q8_0:
			unpackQ8(to, row)
		case quant.Q4_0:
			unpackQ40(to, row)
		case quant.Q4_1:
			unpackQ41(to, row)
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

// block is where 32 weights of a row go.
type block = [3*stride + lanes]float32

func unpackQ8(to []float32, row []byte) {
	small := archsimd.BroadcastFloat32x8(smallHalf)
	for ; len(row) >= 34; row = row[34:] {
		b, p := (*[34]byte)(row), (*block)(to)
		d := half((*[2]byte)(b[0:]), small)
		left, last := archsimd.LoadUint8x16((*[16]uint8)(b[2:])), archsimd.LoadUint8x16((*[16]uint8)(b[18:]))
		left.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d).Store((*vec)(p[0:]))
		left.ConcatShiftBytesRight(8, left).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d).Store((*vec)(p[stride:]))
		last.AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d).Store((*vec)(p[2*stride:]))
		last.ConcatShiftBytesRight(8, last).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d).Store((*vec)(p[3*stride:]))
		to = to[min(4*stride, len(to)):]
	}
}

func unpackQ40(to []float32, row []byte) {
	small, nibble, eight := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(8)
	for ; len(row) >= 18; row = row[18:] {
		b, p := (*[18]byte)(row), (*block)(to)
		d := half((*[2]byte)(b[0:]), small)
		left, right := bytesOf((*[16]uint8)(b[2:]))
		left.And(nibble).Sub(eight).ConvertToFloat32().Mul(d).Store((*vec)(p[0:]))
		right.And(nibble).Sub(eight).ConvertToFloat32().Mul(d).Store((*vec)(p[stride:]))
		left.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d).Store((*vec)(p[2*stride:]))
		right.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d).Store((*vec)(p[3*stride:]))
		to = to[min(4*stride, len(to)):]
	}
}

func unpackQ41(to []float32, row []byte) {
	small, nibble := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(15)
	for ; len(row) >= 20; row = row[20:] {
		b, p := (*[20]byte)(row), (*block)(to)
		d, m := half((*[2]byte)(b[0:]), small), half((*[2]byte)(b[2:]), small)
		left, right := bytesOf((*[16]uint8)(b[4:]))
		left.And(nibble).ConvertToFloat32().Mul(d).Add(m).Store((*vec)(p[0:]))
		right.And(nibble).ConvertToFloat32().Mul(d).Add(m).Store((*vec)(p[stride:]))
		left.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m).Store((*vec)(p[2*stride:]))
		right.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m).Store((*vec)(p[3*stride:]))
		to = to[min(4*stride, len(to)):]
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
