//go:build goexperiment.simd

package compute

import (
	"unsafe"

	"simd/archsimd"

	"github.com/ragpilot/ragpilot/internal/quant"
)

// One row of the input meets each weight once, so that unpacking a group to memory first would cost more than the product. The
// functions here unpack into registers, and add up in the same order as [tileVectors]. They take one row of weights after the other,
// as they come from memory: several at a time keep more of the processor busy, but wait longer for the memory.

// quad is 32 columns of the input, or of a row that is not packed. A row has one at least.
type quad = [4 * lanes]float32

// gemvVectors computes the products of one row of the input with a group that is still packed. It reports false for formats that it
// does not know.
func gemvVectors(t quant.Type, k int, a []float32, rows *[groupRows][]byte, out *[groupRows]float32) bool {
	size, err := t.Bytes(k)
	if err != nil || k%32 != 0 {
		return false
	}
	_ = a[k-1]
	var sums [groupRows]vec
	for i, row := range rows {
		row, x, sum := unsafe.Pointer(unsafe.SliceData(row[:size])), (*quad)(a), &sums[i]
		switch t {
		case quant.F32:
			rowF32(k/32, x, (*quad)(row), sum)
		case quant.F16:
			rowF16(k/32, x, (*[64]byte)(row), sum)
		case quant.Q8_0:
			rowQ8(k/32, x, (*[34]byte)(row), sum)
		case quant.Q4_0:
			rowQ40(k/32, x, (*[18]byte)(row), sum)
		case quant.Q4_1:
			rowQ41(k/32, x, (*[20]byte)(row), sum)
		default:
			return false
		}
	}
	sum4(load(&sums[0]), load(&sums[1]), load(&sums[2]), load(&sums[3])).Store(out)
	archsimd.ClearAVXUpperBits()
	return true
}

func rowF32(blocks int, a, w *quad, out *vec) {
	var sum vector
	for {
		sum = load((*vec)(w[0:])).MulAdd(load((*vec)(a[0:])), sum)
		sum = load((*vec)(w[8:])).MulAdd(load((*vec)(a[8:])), sum)
		sum = load((*vec)(w[16:])).MulAdd(load((*vec)(a[16:])), sum)
		sum = load((*vec)(w[24:])).MulAdd(load((*vec)(a[24:])), sum)
		if blocks--; blocks == 0 {
			break
		}
		a, w = after(a), after(w)
	}
	sum.Store(out)
}

func rowF16(blocks int, a *quad, w *[64]byte, out *vec) {
	small, digits := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(halfDigits)
	var sum vector
	for {
		sum = halves((*[16]uint8)(w[0:]), digits, small).MulAdd(load((*vec)(a[0:])), sum)
		sum = halves((*[16]uint8)(w[16:]), digits, small).MulAdd(load((*vec)(a[8:])), sum)
		sum = halves((*[16]uint8)(w[32:]), digits, small).MulAdd(load((*vec)(a[16:])), sum)
		sum = halves((*[16]uint8)(w[48:]), digits, small).MulAdd(load((*vec)(a[24:])), sum)
		if blocks--; blocks == 0 {
			break
		}
		a, w = after(a), after(w)
	}
	sum.Store(out)
}

func rowQ8(blocks int, a *quad, w *[34]byte, out *vec) {
	small := archsimd.BroadcastFloat32x8(smallHalf)
	var sum vector
	for {
		d := half((*[2]byte)(w[0:]), small)
		v := archsimd.LoadUint8x16((*[16]uint8)(w[2:])).AsInt8x16().ExtendLo8ToInt32()
		sum = v.ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[0:])), sum)
		v = archsimd.LoadUint8x16((*[16]uint8)(w[10:])).AsInt8x16().ExtendLo8ToInt32()
		sum = v.ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[8:])), sum)
		last := archsimd.LoadUint8x16((*[16]uint8)(w[18:]))
		v = last.AsInt8x16().ExtendLo8ToInt32()
		sum = v.ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[16:])), sum)
		v = last.ConcatShiftBytesRight(8, last).AsInt8x16().ExtendLo8ToInt32()
		sum = v.ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[24:])), sum)
		if blocks--; blocks == 0 {
			break
		}
		a, w = after(a), after(w)
	}
	sum.Store(out)
}

func rowQ40(blocks int, a *quad, w *[18]byte, out *vec) {
	small, nibble, eight := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(15), archsimd.BroadcastInt32x8(8)
	var sum vector
	for {
		d := half((*[2]byte)(w[0:]), small)
		left, right := bytesOf((*[16]uint8)(w[2:]))
		sum = left.And(nibble).Sub(eight).ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[0:])), sum)
		sum = right.And(nibble).Sub(eight).ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[8:])), sum)
		sum = left.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[16:])), sum)
		sum = right.ShiftAllRight(4).Sub(eight).ConvertToFloat32().Mul(d).MulAdd(load((*vec)(a[24:])), sum)
		if blocks--; blocks == 0 {
			break
		}
		a, w = after(a), after(w)
	}
	sum.Store(out)
}

func rowQ41(blocks int, a *quad, w *[20]byte, out *vec) {
	small, nibble := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(15)
	var sum vector
	for {
		d, m := half((*[2]byte)(w[0:]), small), half((*[2]byte)(w[2:]), small)
		left, right := bytesOf((*[16]uint8)(w[4:]))
		sum = left.And(nibble).ConvertToFloat32().Mul(d).Add(m).MulAdd(load((*vec)(a[0:])), sum)
		sum = right.And(nibble).ConvertToFloat32().Mul(d).Add(m).MulAdd(load((*vec)(a[8:])), sum)
		sum = left.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m).MulAdd(load((*vec)(a[16:])), sum)
		sum = right.ShiftAllRight(4).ConvertToFloat32().Mul(d).Add(m).MulAdd(load((*vec)(a[24:])), sum)
		if blocks--; blocks == 0 {
			break
		}
		a, w = after(a), after(w)
	}
	sum.Store(out)
}
