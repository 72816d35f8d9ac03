package compute

import "github.com/ragpilot/ragpilot/internal/nn/quant"

// One row of the input meets each weight once, so that unpacking a group to memory first would cost more than the
// product. The functions here unpack into registers, and add up in the same order as [tileVectors]. They take four rows, or eight, at a
// time, since a row alone would wait for its own last addition. But the processor fetches memory before it is needed only where it is
// read in the order of its addresses, which several rows at a time are not. So the functions also fetch later rows, in order.

// quad is 32 columns of the input. A row has one at least.
type quad = [4 * lanes]float32

// gemvVectors computes the products of one row of the input with a group that is still packed, or with two. It reports false
// for formats that it does not know.
func gemvVectors(t quant.Type, k int, a []float32, rows, next []byte, out *gemvSums) bool {
	x, size, ok := gemvInput(k, a, rows, next, groupRows)
	if !ok {
		return false
	}
	sums := (*[groupRows]float32)(out[:groupRows])
	switch t {
	case quant.F32:
		rowsF32(k/32, x, &rows[0], size, &next[0], sums)
	case quant.F16:
		rowsF16(k/32, x, &rows[0], size, &next[0], sums)
	case quant.Q8_0:
		rowsQ8(k/32, x, &rows[0], size, &next[0], sums)
	case quant.Q4_0:
		rowsQ40(k/32, x, &rows[0], size, &next[0], sums)
	case quant.Q4_1:
		rowsQ41(k/32, x, &rows[0], size, &next[0], sums)
	case quant.Q5_0:
		rowsQ50(k/32, x, &rows[0], size, &next[0], sums)
	case quant.Q5_1:
		rowsQ51(k/32, x, &rows[0], size, &next[0], sums)
	default:
		return false
	}
	return true
}

// gemvWide does it with AVX-512, for two groups: half of the rows would be too few to keep the processor busy. Without packed
// weights memory is all that it waits for.
func gemvWide(t quant.Type, k int, a []float32, rows, next []byte, out *gemvSums) bool {
	x, size, ok := gemvInput(k, a, rows, next, 2*groupRows)
	if !ok {
		return false
	}
	var s [2 * groupRows]vec
	switch t {
	case quant.Q8_0:
		pairsQ8(k/32, x, &rows[0], size, &next[0], &s)
	case quant.Q4_0:
		pairsQ40(k/32, x, &rows[0], size, &next[0], &s)
	case quant.Q4_1:
		pairsQ41(k/32, x, &rows[0], size, &next[0], &s)
	case quant.Q5_0:
		pairsQ50(k/32, x, &rows[0], size, &next[0], &s)
	case quant.Q5_1:
		pairsQ51(k/32, x, &rows[0], size, &next[0], &s)
	case quant.F16:
		rowsF16(k/32, x, &rows[0], size, &next[0], (*[groupRows]float32)(out[:groupRows]))
		rowsF16(k/32, x, &rows[groupRows*size], size, &next[groupRows*size], (*[groupRows]float32)(out[groupRows:]))
		return true
	case quant.F32:
		rowsF32(k/32, x, &rows[0], size, &next[0], (*[groupRows]float32)(out[:groupRows]))
		rowsF32(k/32, x, &rows[groupRows*size], size, &next[groupRows*size], (*[groupRows]float32)(out[groupRows:]))
		return true
	default:
		return false
	}
	addLanes(2, &s[0], &out[0], groupRows)
	return true
}

// gemvInput checks the lengths, and returns the input and the size of a row of count rows of weights.
func gemvInput(k int, a []float32, rows, next []byte, count int) (x *quad, size int, ok bool) {
	if k%len(x) != 0 || k <= 0 {
		return nil, 0, false
	}
	_, _ = a[k-1], next[len(rows)-1]
	return (*quad)(a), len(rows) / count, true
}

// These compute the products with a group's rows, of size bytes each. next is the first byte of later rows, which are fetched.

//go:noescape
func rowsF32(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsF16(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsQ8(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsQ40(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsQ41(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsQ50(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

//go:noescape
func rowsQ51(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)

// These compute the lanes of the sums with AVX-512, for two groups.

//go:noescape
func pairsQ8(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)

//go:noescape
func pairsQ40(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)

//go:noescape
func pairsQ41(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)

//go:noescape
func pairsQ50(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)

//go:noescape
func pairsQ51(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
