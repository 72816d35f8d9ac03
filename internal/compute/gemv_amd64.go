//go:build goexperiment.simd

package compute

import (
	"unsafe"

	"simd/archsimd"

	"github.com/ragpilot/ragpilot/internal/quant"
)

// One row of the input meets each weight once, so that unpacking a group to memory first would cost more than the
// product. The functions here unpack into registers, and add up in the same order as [tileVectors]. They take two rows
// of packed weights at a time, since a row alone would wait for its own last addition. But the processor fetches memory
// before it is needed only where it is read in the order of its addresses, which two rows at a time are not. So the
// functions also read a byte here and there of the next group, in order.

// quad is 32 columns of the input, or of a row that is not packed. A row has one at least.
type quad = [4 * lanes]float32

// gemvVectors computes the products of one row of the input with a group that is still packed. It reports false for formats that it
// does not know.
func gemvVectors(t quant.Type, k int, a []float32, rows, next []byte, out *[groupRows]float32) (read int, ok bool) {
	return gemvPacked(false, t, k, a, rows, next, out)
}

// gemvWide does it with AVX-512.
func gemvWide(t quant.Type, k int, a []float32, rows, next []byte, out *[groupRows]float32) (read int, ok bool) {
	return gemvPacked(true, t, k, a, rows, next, out)
}

func gemvPacked(wide bool, t quant.Type, k int, a []float32, rows, next []byte, out *[groupRows]float32) (read int, ok bool) {
	size, err := t.Bytes(k)
	if err != nil || k%32 != 0 {
		return 0, false
	}
	_, _, _ = a[k-1], rows[groupRows*size-1], next[groupRows*size-1]
	var sums [groupRows]vec
	for i := 0; i < groupRows; i += 2 {
		v, w, n := unsafe.Pointer(&rows[i*size]), unsafe.Pointer(&rows[(i+1)*size]), unsafe.Pointer(&next[i*size])
		x, s := (*quad)(a), (*[2]vec)(sums[i:])
		switch t {
		case quant.F32:
			rowF32(k/32, x, (*quad)(v), &s[0])
			rowF32(k/32, x, (*quad)(w), &s[1])
		case quant.F16:
			read += rowsF16(k/32, x, (*[64]byte)(v), (*[64]byte)(w), (*[128]byte)(n), s)
		case quant.Q8_0:
			rowsQ8(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
		case quant.Q4_0:
			if wide {
				pairQ40(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
			} else {
				rowsQ40(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
			}
		case quant.Q4_1:
			if wide {
				pairQ41(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
			} else {
				rowsQ41(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
			}
		case quant.Q5_0:
			rowsQ50(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
		case quant.Q5_1:
			rowsQ51(k/32, x, (*byte)(v), (*byte)(w), (*byte)(n), s)
		default:
			return 0, false
		}
	}
	sum4(load(&sums[0]), load(&sums[1]), load(&sums[2]), load(&sums[3])).Store(out)
	archsimd.ClearAVXUpperBits()
	return read, true
}

// rowF32 takes one row: without unpacking, memory is all that it waits for.
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

func rowsF16(blocks int, a *quad, v, w *[64]byte, next *[128]byte, out *[2]vec) (read int) {
	small, digits := archsimd.BroadcastFloat32x8(smallHalf), archsimd.BroadcastInt32x8(halfDigits)
	var s, t vector
	for {
		x := load((*vec)(a[0:]))
		s = halves((*[16]uint8)(v[0:]), digits, small).MulAdd(x, s)
		t = halves((*[16]uint8)(w[0:]), digits, small).MulAdd(x, t)
		x = load((*vec)(a[8:]))
		s = halves((*[16]uint8)(v[16:]), digits, small).MulAdd(x, s)
		t = halves((*[16]uint8)(w[16:]), digits, small).MulAdd(x, t)
		x = load((*vec)(a[16:]))
		s = halves((*[16]uint8)(v[32:]), digits, small).MulAdd(x, s)
		t = halves((*[16]uint8)(w[32:]), digits, small).MulAdd(x, t)
		x = load((*vec)(a[24:]))
		s = halves((*[16]uint8)(v[48:]), digits, small).MulAdd(x, s)
		t = halves((*[16]uint8)(w[48:]), digits, small).MulAdd(x, t)
		read += int(next[0]) + int(next[64])
		if blocks--; blocks == 0 {
			break
		}
		a, v, w, next = after(a), after(v), after(w), after(next)
	}
	s.Store(&out[0])
	t.Store(&out[1])
	return read
}

// These take formats with blocks of 32 weights: v and w are rows of the group, next is where the one behind it begins
// to be read. The pairs need AVX-512.
//
//go:noescape
func rowsQ8(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func rowsQ40(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func rowsQ41(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func rowsQ50(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func rowsQ51(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func pairQ40(blocks int, a *quad, v, w, next *byte, out *[2]vec)

//go:noescape
func pairQ41(blocks int, a *quad, v, w, next *byte, out *[2]vec)
