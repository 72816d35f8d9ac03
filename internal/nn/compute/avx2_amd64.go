//go:build goexperiment.simd

package compute

import (
	"unsafe"

	"simd/archsimd"
)

// avx2 is the implementation with vectors of 8 lanes and fused multiply-add. A sum over columns is 8 sums, one for each column modulo
// 8, which are added at the end in the order of [sum4].
//
// The loops go over pointers to arrays of known length, because slices cost as many instructions for bounds as there are for
// arithmetic. Every function checks its slices' lengths before, and no pointer leaves its slice, not even behind the last step.
func avx2() *kernels {
	return &kernels{
		name: "avx2", unpack: unpackVectors, tile: tileVectors, wide: threeRows, wideRows: 3, wideGroups: 1,
		gemv: gemvVectors, gemvGroups: 1, dot: dotVectors, scores: scoresVectors,
		softmax: softmaxVectors, mix: mixVectors, gate: gateVectors, scale: scaleVectors,
	}
}

type vector = archsimd.Float32x8

// vec is the memory of a vector.
type vec = [lanes]float32

// column is the same 8 columns of all rows of a group, and step is two of them.
type (
	column = [groupRows * lanes]float32
	step   = [2 * groupRows * lanes]float32
)

// pair is 16 columns of a row.
type pair = [2 * lanes]float32

func load(p *vec) vector { return archsimd.LoadFloat32x8(p) }

func start(s []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// sum4 adds the lanes of four vectors: each as ((0+1)+(2+3)) + ((4+5)+(6+7)).
func sum4(a, b, c, d vector) archsimd.Float32x4 {
	all := a.AddPairsGrouped(b).AddPairsGrouped(c.AddPairsGrouped(d))
	return all.GetLo().Add(all.GetHi())
}

func dotVectors(a, b []float32) float32 {
	b = b[:len(a)]
	var sum, zero vector
	for len(a) >= lanes {
		sum = load((*vec)(a)).MulAdd(load((*vec)(b)), sum)
		a, b = a[lanes:], b[lanes:]
	}
	all := sum4(sum, zero, zero, zero).GetElem(0)
	archsimd.ClearAVXUpperBits()
	return all
}

// sums256 computes the sums of 3 rows of the input, of k columns each, a positive multiple of lanes, with a group. The rows lie behind each
// other.
//
//go:noescape
func sums256(k int, input, group *float32, sums *[3][groupRows]vec)

// threeRows keeps 12 sums, which is what 16 registers have room for: less is loaded for a product than with two rows.
func threeRows(k int, input, group []float32, out *wideSums) {
	_, _ = input[3*k-1], group[groupRows*k-1]
	var sums [3][groupRows]vec
	sums256(k, &input[0], &group[0], &sums)
	for i := range sums {
		addLanes(&sums[i], (*[groupRows]float32)(out[i][:groupRows]))
	}
}

func tileVectors(k int, a, b, group []float32, outA, outB *[groupRows]float32) {
	_, _ = a[k-1], group[groupRows*k-1]
	if b == nil {
		tile1(k, a, group, outA)
		return
	}
	_ = b[k-1]
	tile2(k, a, b, group, outA, outB)
}

// tile2 takes 16 columns at a time, and 8 at the end.
func tile2(k int, rowA, rowB, group []float32, outA, outB *[groupRows]float32) {
	var a0, a1, a2, a3, b0, b1, b2, b3 vector
	a, b, w := start(rowA), start(rowB), start(group)
	for left := k / (2 * lanes); left > 0; {
		p, q, r := (*pair)(a), (*pair)(b), (*step)(w)
		x, y := load((*vec)(p[0:])), load((*vec)(q[0:]))
		w0, w1 := load((*vec)(r[0:])), load((*vec)(r[8:]))
		a0, b0 = w0.MulAdd(x, a0), w0.MulAdd(y, b0)
		a1, b1 = w1.MulAdd(x, a1), w1.MulAdd(y, b1)
		w2, w3 := load((*vec)(r[16:])), load((*vec)(r[24:]))
		a2, b2 = w2.MulAdd(x, a2), w2.MulAdd(y, b2)
		a3, b3 = w3.MulAdd(x, a3), w3.MulAdd(y, b3)

		x, y = load((*vec)(p[8:])), load((*vec)(q[8:]))
		w0, w1 = load((*vec)(r[32:])), load((*vec)(r[40:]))
		a0, b0 = w0.MulAdd(x, a0), w0.MulAdd(y, b0)
		a1, b1 = w1.MulAdd(x, a1), w1.MulAdd(y, b1)
		w2, w3 = load((*vec)(r[48:])), load((*vec)(r[56:]))
		a2, b2 = w2.MulAdd(x, a2), w2.MulAdd(y, b2)
		a3, b3 = w3.MulAdd(x, a3), w3.MulAdd(y, b3)
		if left--; left > 0 {
			a, b, w = unsafe.Add(a, unsafe.Sizeof(*p)), unsafe.Add(b, unsafe.Sizeof(*q)), unsafe.Add(w, unsafe.Sizeof(*r))
		}
	}
	if k%(2*lanes) != 0 {
		x, y, r := load((*vec)(rowA[k-lanes:])), load((*vec)(rowB[k-lanes:])), (*column)(group[groupRows*(k-lanes):])
		w0, w1, w2, w3 := load((*vec)(r[0:])), load((*vec)(r[8:])), load((*vec)(r[16:])), load((*vec)(r[24:]))
		a0, b0 = w0.MulAdd(x, a0), w0.MulAdd(y, b0)
		a1, b1 = w1.MulAdd(x, a1), w1.MulAdd(y, b1)
		a2, b2 = w2.MulAdd(x, a2), w2.MulAdd(y, b2)
		a3, b3 = w3.MulAdd(x, a3), w3.MulAdd(y, b3)
	}
	sum4(a0, a1, a2, a3).Store(outA)
	sum4(b0, b1, b2, b3).Store(outB)
	archsimd.ClearAVXUpperBits()
}

func tile1(k int, rowA, group []float32, out *[groupRows]float32) {
	var a0, a1, a2, a3 vector
	a, w := start(rowA), start(group)
	for left := k / (2 * lanes); left > 0; {
		p, r := (*pair)(a), (*step)(w)
		x := load((*vec)(p[0:]))
		a0, a1 = load((*vec)(r[0:])).MulAdd(x, a0), load((*vec)(r[8:])).MulAdd(x, a1)
		a2, a3 = load((*vec)(r[16:])).MulAdd(x, a2), load((*vec)(r[24:])).MulAdd(x, a3)
		x = load((*vec)(p[8:]))
		a0, a1 = load((*vec)(r[32:])).MulAdd(x, a0), load((*vec)(r[40:])).MulAdd(x, a1)
		a2, a3 = load((*vec)(r[48:])).MulAdd(x, a2), load((*vec)(r[56:])).MulAdd(x, a3)
		if left--; left > 0 {
			a, w = unsafe.Add(a, unsafe.Sizeof(*p)), unsafe.Add(w, unsafe.Sizeof(*r))
		}
	}
	if k%(2*lanes) != 0 {
		x, r := load((*vec)(rowA[k-lanes:])), (*column)(group[groupRows*(k-lanes):])
		a0, a1 = load((*vec)(r[0:])).MulAdd(x, a0), load((*vec)(r[8:])).MulAdd(x, a1)
		a2, a3 = load((*vec)(r[16:])).MulAdd(x, a2), load((*vec)(r[24:])).MulAdd(x, a3)
	}
	sum4(a0, a1, a2, a3).Store(out)
	archsimd.ClearAVXUpperBits()
}

// scores256 computes the products of maxQueries prepared queries with a page's keys, and fetches another's.
//
//go:noescape
func scores256(dim int, queries, keys, out *float32, stride int, ahead *float32)

func scoresVectors(dim int, queries, keys, next, ahead, beyond []float32, _ int, out []float32, stride int) {
	_, _, _ = queries[dim*maxQueries-1], keys[dim*PageTokens-1], ahead[dim*PageTokens-1]
	_ = out[(maxQueries-1)*stride+2*PageTokens-1]
	scores256(dim, &queries[0], &keys[0], &out[0], stride, &ahead[0])
	if next != nil {
		_, _ = next[dim*PageTokens-1], beyond[dim*PageTokens-1]
		scores256(dim, &queries[0], &next[0], &out[PageTokens], stride, &beyond[0])
	}
}

// mix256 adds the weighted values of tokens to the results of four queries, which may be the same, and fetches as many values at ahead. dim
// is a positive multiple of 16, and mix512's is one of 64.
//
//go:noescape
func mix256(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead *float32)

func mixVectors(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead []float32) {
	_, _ = values[tokens*dim-1], ahead[tokens*dim-1]
	if dim%(2*lanes) == 0 {
		mix256(dim, tokens, out, weights, &values[0], &ahead[0])
		return
	}
	for q, o := range out {
		if q > 0 && o == out[q-1] {
			break // the same once more
		}
		mixRow(unsafe.Slice(o, dim), unsafe.Slice(weights[q], tokens), values)
	}
	archsimd.ClearAVXUpperBits()
}

// mixRow is for dimensions that others do not take.
func mixRow(out, weights, values []float32) {
	for d := 0; d < len(out); d += lanes {
		sum := load((*vec)(out[d:]))
		for t, w := range weights {
			sum = archsimd.BroadcastFloat32x8(w).MulAdd(load((*vec)(values[t*len(out)+d:])), sum)
		}
		sum.Store((*vec)(out[d:]))
	}
}

// expVector is [exp] in every lane.
func expVector(x vector) vector {
	spread := archsimd.BroadcastFloat32x8
	some := x.GreaterEqual(spread(expMin))
	x = x.Min(spread(expMax)).Max(spread(expMin))
	n := x.Mul(spread(log2e)).RoundToEven()
	r := n.MulAdd(spread(-ln2High), x)
	r = n.MulAdd(spread(-ln2Low), r)
	p := spread(expC0)
	p = p.MulAdd(r, spread(expC1))
	p = p.MulAdd(r, spread(expC2))
	p = p.MulAdd(r, spread(expC3))
	p = p.MulAdd(r, spread(expC4))
	p = p.MulAdd(r, spread(expC5))
	p = p.MulAdd(r.Mul(r), r).Add(spread(1))
	power := n.ConvertToInt32().Add(archsimd.BroadcastInt32x8(127)).ShiftAllLeft(23).AsFloat32x8()
	return p.Mul(power).Masked(some)
}

func softmaxVectors(x []float32) float32 {
	most := load((*vec)(x))
	for i := lanes; i < len(x); i += lanes {
		most = most.Max(load((*vec)(x[i:])))
	}
	var sums vec
	exps256(&x[0], len(x), largest(most), &sums)
	return addVec(&sums)
}

// largest returns the largest lane.
func largest(v vector) float32 {
	v = v.Max(v.Select128FromPair(1, 0, v))
	v = v.Max(v.SelectFromPairGrouped(2, 3, 0, 1, v))
	v = v.Max(v.SelectFromPairGrouped(1, 0, 3, 2, v))
	return v.GetLo().GetElem(0)
}

// exps256 replaces the n numbers of x, a positive multiple of 8, by e to their differences from the largest, and adds them up in 8 lanes.
//
//go:noescape
func exps256(x *float32, n int, largest float32, sums *vec)

// addVec adds the lanes.
func addVec(v *vec) float32 {
	var zero vector
	all := sum4(load(v), zero, zero, zero).GetElem(0)
	archsimd.ClearAVXUpperBits()
	return all
}

func gateVectors(g, u []float32) {
	u = u[:len(g)]
	var zero vector
	one := archsimd.BroadcastFloat32x8(1)
	for i := 0; i < len(g); i += lanes {
		x := load((*vec)(g[i:]))
		x.Div(expVector(zero.Sub(x)).Add(one)).Mul(load((*vec)(u[i:]))).Store((*vec)(g[i:]))
	}
	archsimd.ClearAVXUpperBits()
}

func scaleVectors(out, x, w []float32, factor float32) {
	f := archsimd.BroadcastFloat32x8(factor)
	out, w = out[:len(x)], w[:len(x)]
	for i := 0; i < len(x); i += lanes {
		load((*vec)(x[i:])).Mul(f).Mul(load((*vec)(w[i:]))).Store((*vec)(out[i:]))
	}
	archsimd.ClearAVXUpperBits()
}
