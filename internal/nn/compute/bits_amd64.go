//go:build goexperiment.simd

package compute

import (
	"unsafe"

	"simd/archsimd"
)

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
