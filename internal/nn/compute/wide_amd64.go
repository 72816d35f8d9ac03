package compute

// avx512 is [avx2] with vectors of 16 lanes where they pay, each for the 8 lanes of two sums: the same bits.
func avx512() *kernels {
	k := avx2()
	k.gemv, k.gemvGroups = gemvWide, 2
	k.wide, k.wideRows, k.wideGroups = wideProducts, 4, 2
	k.scores, k.softmax, k.mix = scoresWide, softmaxWide, mixWide
	return k
}

// sums512 computes the sums of 4 rows of the input, of k columns each, a positive multiple of lanes, with the rows of 2 groups.
// The rows lie behind each other, and so do the groups. The processor must have AVX-512.
//
//go:noescape
func sums512(k int, input, groups *float32, sums *[4][2 * groupRows]vec)

// wideProducts adds in each lane the same products in the same order as [tileVectors]: two rows of weights share a vector of 16 lanes.
func wideProducts(k int, input, groups []float32, out *wideSums) {
	_, _ = input[4*k-1], groups[2*groupRows*k-1]
	var sums [4][2 * groupRows]vec
	sums512(k, &input[0], &groups[0], &sums)
	addLanes(2*len(sums), &sums[0][0], &out[0][0], groupRows)
}

// scores512 computes the products of maxQueries prepared queries with the keys of two pages, and fetches those of two others.
//
//go:noescape
func scores512(dim int, queries, keys, next, out *float32, stride int, ahead, beyond *float32)

func scoresWide(dim int, queries, keys, next, ahead, beyond []float32, _ int, out []float32, stride int) {
	if next == nil {
		next = keys // computed and not used
	}
	_, _, _ = queries[dim*maxQueries-1], keys[dim*PageTokens-1], next[dim*PageTokens-1]
	_, _, _ = ahead[dim*PageTokens:], beyond[dim*PageTokens:], out[(maxQueries-1)*stride+2*PageTokens-1]
	scores512(dim, &queries[0], &keys[0], &next[0], &out[0], stride, &ahead[0], &beyond[0])
}

//go:noescape
func mix512(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead *float32)

func mixWide(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead []float32) {
	if dim%(8*lanes) != 0 {
		mixVectors(dim, tokens, out, weights, values, ahead)
		return
	}
	_, _ = values[tokens*dim-1], ahead[tokens*dim:]
	mix512(dim, tokens, out, weights, &values[0], &ahead[0])
}

// softmaxWide adds the lanes of both halves in the order of [softmaxVectors]. The length is a multiple of PageTokens.
func softmaxWide(x []float32) float32 {
	if len(x) == 0 || len(x)%(2*lanes) != 0 {
		return softmaxVectors(x)
	}
	var sums vec
	exps512(&x[0], len(x), largest(&x[0], len(x)), &sums)
	return addLane(&sums)
}

// exps512 is exps256 for a multiple of 16, the lower 8 of each 16 numbers first.
//
//go:noescape
func exps512(x *float32, n int, largest float32, sums *vec)
