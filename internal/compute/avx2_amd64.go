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
		name: "avx2", unpack: unpackVectors, tile: tileVectors, gemv: gemvVectors, dot: dotVectors, scores: scoresVectors,
		softmax: softmaxVectors, mix: mixVectors, mixPair: mixPairVectors, fetch: fetchVectors, gate: gateVectors, scale: scaleVectors,
	}
}

//go:noescape
func fetchLines(p *float32, bytes int)

func fetchVectors(x []float32) { fetchLines(unsafe.SliceData(x), 4*len(x)) }

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

// after is the next one. It must be there.
func after[T any](p *T) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) }

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
func scores256(dim int, queries, keys *float32, out *float32, ahead *float32)

func scoresVectors(dim int, queries, keys, next, ahead, beyond []float32, _ int, out *[maxQueries][2 * PageTokens]float32) {
	_, _, _ = queries[dim*maxQueries-1], keys[dim*PageTokens-1], ahead[dim*PageTokens-1]
	scores256(dim, &queries[0], &keys[0], &out[0][0], &ahead[0])
	if next != nil {
		_, _ = next[dim*PageTokens-1], beyond[dim*PageTokens-1]
		scores256(dim, &queries[0], &next[0], &out[0][PageTokens], &beyond[0])
	}
}

// mixVectors takes 64 dimensions at a time, then 8.
func mixVectors(out, weights, values []float32, count int) {
	weights, dim := weights[:count], len(out)
	_ = values[count*dim-1]
	for d := 0; d < dim; {
		if d+64 <= dim {
			mix64((*[64]float32)(out[d:]), weights, unsafe.Pointer(&values[d]), dim)
			d += 64
			continue
		}
		mixRest(out, weights, values, d)
		break
	}
	archsimd.ClearAVXUpperBits()
}

// mix64 adds at least one value.
func mix64(out *[64]float32, weights []float32, values unsafe.Pointer, stride int) {
	s0, s1, s2, s3 := load((*vec)(out[0:])), load((*vec)(out[8:])), load((*vec)(out[16:])), load((*vec)(out[24:]))
	s4, s5, s6, s7 := load((*vec)(out[32:])), load((*vec)(out[40:])), load((*vec)(out[48:])), load((*vec)(out[56:]))
	for {
		w, v := archsimd.BroadcastFloat32x8(weights[0]), (*[64]float32)(values)
		s0, s1 = load((*vec)(v[0:])).MulAdd(w, s0), load((*vec)(v[8:])).MulAdd(w, s1)
		s2, s3 = load((*vec)(v[16:])).MulAdd(w, s2), load((*vec)(v[24:])).MulAdd(w, s3)
		s4, s5 = load((*vec)(v[32:])).MulAdd(w, s4), load((*vec)(v[40:])).MulAdd(w, s5)
		s6, s7 = load((*vec)(v[48:])).MulAdd(w, s6), load((*vec)(v[56:])).MulAdd(w, s7)
		if weights = weights[1:]; len(weights) == 0 {
			break
		}
		values = unsafe.Add(values, 4*stride)
	}
	s0.Store((*vec)(out[0:]))
	s1.Store((*vec)(out[8:]))
	s2.Store((*vec)(out[16:]))
	s3.Store((*vec)(out[24:]))
	s4.Store((*vec)(out[32:]))
	s5.Store((*vec)(out[40:]))
	s6.Store((*vec)(out[48:]))
	s7.Store((*vec)(out[56:]))
}

// mixPairVectors takes 32 dimensions of both queries at a time, then those that are left of one and of the other.
func mixPairVectors(outA, outB, weightsA, weightsB, values []float32, count int) {
	weightsA, weightsB, dim := weightsA[:count], weightsB[:count], len(outA)
	_, _ = values[count*dim-1], outB[dim-1]
	d := 0
	for ; d+32 <= dim; d += 32 {
		mixPair32((*[32]float32)(outA[d:]), (*[32]float32)(outB[d:]), weightsA, weightsB, unsafe.Pointer(&values[d]), dim)
	}
	mixRest(outA, weightsA, values, d)
	mixRest(outB, weightsB, values, d)
	archsimd.ClearAVXUpperBits()
}

// mixRest adds the dimensions of a query from d on.
func mixRest(out, weights, values []float32, d int) {
	for ; d < len(out); d += lanes {
		sum := load((*vec)(out[d:]))
		for t, w := range weights {
			sum = archsimd.BroadcastFloat32x8(w).MulAdd(load((*vec)(values[t*len(out)+d:])), sum)
		}
		sum.Store((*vec)(out[d:]))
	}
}

// mixPair32 adds at least one value.
func mixPair32(outA, outB *[32]float32, weightsA, weightsB []float32, values unsafe.Pointer, stride int) {
	a0, a1, a2, a3 := load((*vec)(outA[0:])), load((*vec)(outA[8:])), load((*vec)(outA[16:])), load((*vec)(outA[24:]))
	b0, b1, b2, b3 := load((*vec)(outB[0:])), load((*vec)(outB[8:])), load((*vec)(outB[16:])), load((*vec)(outB[24:]))
	weightsB = weightsB[:len(weightsA)]
	for t, weight := range weightsA {
		v := (*[32]float32)(unsafe.Add(values, 4*t*stride))
		w, x := archsimd.BroadcastFloat32x8(weight), archsimd.BroadcastFloat32x8(weightsB[t])
		v0, v1, v2, v3 := load((*vec)(v[0:])), load((*vec)(v[8:])), load((*vec)(v[16:])), load((*vec)(v[24:]))
		a0, b0 = v0.MulAdd(w, a0), v0.MulAdd(x, b0)
		a1, b1 = v1.MulAdd(w, a1), v1.MulAdd(x, b1)
		a2, b2 = v2.MulAdd(w, a2), v2.MulAdd(x, b2)
		a3, b3 = v3.MulAdd(w, a3), v3.MulAdd(x, b3)
	}
	a0.Store((*vec)(outA[0:]))
	a1.Store((*vec)(outA[8:]))
	a2.Store((*vec)(outA[16:]))
	a3.Store((*vec)(outA[24:]))
	b0.Store((*vec)(outB[0:]))
	b1.Store((*vec)(outB[8:]))
	b2.Store((*vec)(outB[16:]))
	b3.Store((*vec)(outB[24:]))
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
	most = most.Max(most.Select128FromPair(1, 0, most))
	most = most.Max(most.SelectFromPairGrouped(2, 3, 0, 1, most))
	most = most.Max(most.SelectFromPairGrouped(1, 0, 3, 2, most))
	var sum, zero vector
	for i := 0; i < len(x); i += lanes {
		e := expVector(load((*vec)(x[i:])).Sub(most))
		e.Store((*vec)(x[i:]))
		sum = sum.Add(e)
	}
	all := sum4(sum, zero, zero, zero).GetElem(0)
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
