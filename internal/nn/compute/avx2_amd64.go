package compute

// avx2 is the implementation with vectors of 8 lanes and fused multiply-add. A sum over columns is 8 sums, one for each column modulo
// 8, which are added at the end in the order of [addLanes].
//
// The loops are assembler, which checks nothing. Every function here checks its slices' lengths before.
func avx2() *kernels {
	return &kernels{
		name: "avx2", unpack: unpackVectors, tile: tileVectors, wide: threeRows, wideRows: 3, wideGroups: 1,
		gemv: gemvVectors, gemvGroups: 1, dot: dotVectors, scores: scoresVectors,
		softmax: softmaxVectors, mix: mixVectors, gate: gateVectors, scale: scaleVectors,
	}
}

// vec is the memory of a vector.
type vec = [lanes]float32

// whole checks that a number of floats is a positive multiple of lanes.
func whole(n int) {
	if n <= 0 || n%lanes != 0 {
		panic("compute: no whole vectors")
	}
}

// addLanes adds the lanes of n times four vectors, each as ((0+1)+(2+3)) + ((4+5)+(6+7)): four sums at a time go to out, step floats
// further on each time.
//
//go:noescape
func addLanes(n int, sums *vec, out *float32, step int)

// addLane does it with one vector.
//
//go:noescape
func addLane(v *vec) float32

// dot256 is a sum of n products, a positive multiple of lanes.
//
//go:noescape
func dot256(n int, a, b *float32) float32

func dotVectors(a, b []float32) float32 {
	if len(a) == 0 {
		return 0
	}
	whole(len(a))
	_ = b[len(a)-1]
	return dot256(len(a), &a[0], &b[0])
}

// sums256 computes the sums of 3 rows of the input, of k columns each, a positive multiple of lanes, with a group. The rows lie behind each
// other.
//
//go:noescape
func sums256(k int, input, group *float32, sums *[3][groupRows]vec)

// threeRows keeps 12 sums, which is what 16 registers have room for: less is loaded for a product than with two rows.
func threeRows(k int, input, group []float32, out *wideSums) {
	whole(k)
	_, _ = input[3*k-1], group[groupRows*k-1]
	var sums [3][groupRows]vec
	sums256(k, &input[0], &group[0], &sums)
	addLanes(len(sums), &sums[0][0], &out[0][0], len(out[0]))
}

// tile1 and tile2 compute the products of one or two rows of the input, of k columns each, a positive multiple of lanes, with a group.

//go:noescape
func tile1(k int, a, group *float32, out *[groupRows]float32)

//go:noescape
func tile2(k int, a, b, group *float32, outA, outB *[groupRows]float32)

func tileVectors(k int, a, b, group []float32, outA, outB *[groupRows]float32) {
	whole(k)
	_, _ = a[k-1], group[groupRows*k-1]
	if b == nil {
		tile1(k, &a[0], &group[0], outA)
		return
	}
	_ = b[k-1]
	tile2(k, &a[0], &b[0], &group[0], outA, outB)
}

// scores256 computes the products of maxQueries prepared queries with a page's keys, and fetches another's.
//
//go:noescape
func scores256(dim int, queries, keys, out *float32, stride int, ahead *float32)

func scoresVectors(dim int, queries, keys, next, ahead, beyond []float32, _ int, out []float32, stride int) {
	_, _ = queries[dim*maxQueries-1], keys[dim*PageTokens-1]
	_ = ahead[dim*PageTokens:] // checks the length and reads nothing: what is only fetched may be written meanwhile
	_ = out[(maxQueries-1)*stride+2*PageTokens-1]
	scores256(dim, &queries[0], &keys[0], &out[0], stride, &ahead[0])
	if next != nil {
		_, _ = next[dim*PageTokens-1], beyond[dim*PageTokens:]
		scores256(dim, &queries[0], &next[0], &out[PageTokens], stride, &beyond[0])
	}
}

// mix256 adds the weighted values of tokens to the results of four queries, which may be the same, and fetches as many values at ahead. dim
// is a positive multiple of 16, and mix512's is one of 64.
//
//go:noescape
func mix256(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead *float32)

// mixRow does it for one query, and a dim that is a positive multiple of lanes.
//
//go:noescape
func mixRow(dim, tokens int, out, weights, values *float32)

func mixVectors(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead []float32) {
	whole(dim)
	_, _ = values[tokens*dim-1], ahead[tokens*dim:]
	if dim%(2*lanes) == 0 {
		mix256(dim, tokens, out, weights, &values[0], &ahead[0])
		return
	}
	for q, o := range out {
		if q > 0 && o == out[q-1] {
			break // the same once more
		}
		mixRow(dim, tokens, o, weights[q], &values[0])
	}
}

// largest is the largest of n numbers, a positive multiple of lanes.
//
//go:noescape
func largest(x *float32, n int) float32

// exps256 replaces the n numbers of x, a positive multiple of 8, by e to their differences from the largest, and adds them up in 8 lanes.
//
//go:noescape
func exps256(x *float32, n int, largest float32, sums *vec)

func softmaxVectors(x []float32) float32 {
	whole(len(x))
	var sums vec
	exps256(&x[0], len(x), largest(&x[0], len(x)), &sums)
	return addLane(&sums)
}

// gate256 computes silu(x)·u into x, for n numbers, a positive multiple of lanes.
//
//go:noescape
func gate256(n int, x, u *float32)

func gateVectors(g, u []float32) {
	if len(g) == 0 {
		return
	}
	whole(len(g))
	_ = u[len(g)-1]
	gate256(len(g), &g[0], &u[0])
}

// scale256 computes x·factor·w into out, for n numbers, a positive multiple of lanes.
//
//go:noescape
func scale256(n int, out, x, w *float32, factor float32)

func scaleVectors(out, x, w []float32, factor float32) {
	if len(x) == 0 {
		return
	}
	whole(len(x))
	_, _ = out[len(x)-1], w[len(x)-1]
	scale256(len(x), &out[0], &x[0], &w[0], factor)
}
