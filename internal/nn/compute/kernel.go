package compute

import "github.com/ragpilot/ragpilot/internal/nn/quant"

// A panel is what a product unpacks at a time: panelRows rows of the weights, in groups of groupRows.
const (
	groupRows = 4
	panelRows = 8 * groupRows
)

// wideSums are the products of up to 4 rows of the input with up to 2 groups.
type wideSums = [4][2 * groupRows]float32

// gemvSums are the products of one row of the input with up to 2 groups.
type gemvSums = [2 * groupRows]float32

// lanes is the number of float32 in the vectors that the layouts of this package are made for. Columns of weights and dimensions of
// heads must be multiples.
const lanes = 8

// kernels is one implementation of what takes the time.
type kernels struct {
	name string

	// unpack writes one group of rows, given by the bytes of each, in the layout that tile reads.
	unpack func(t quant.Type, dst []float32, rows *[groupRows][]byte)
	// tile computes the products of one or two rows of the input, each of k columns, with a group. With one row, b is nil.
	tile func(k int, a, b, group []float32, outA, outB *[groupRows]float32)
	// wide computes what tile does for wideRows rows of the input and wideGroups groups, which lie behind each other; nil: tile is as
	// fast.
	wide                 func(k int, input, groups []float32, out *wideSums)
	wideRows, wideGroups int
	// gemv computes what tile does for one row of the input, from the packed rows of gemvGroups groups. next are as many later rows, which
	// it may fetch. It reports false, and does nothing, for formats for which that is not faster; nil: for all.
	gemv       func(t quant.Type, k int, a []float32, rows, next []byte, out *gemvSums) bool
	gemvGroups int

	// dot is a sum of products of two vectors of the same length, a multiple of lanes.
	dot func(a, b []float32) float32

	// scores computes the products of queries with the keys of one head in two pages, or in one (next is nil). queries holds maxQueries
	// queries: the first number of each, then the second of each, and so on. The product of query q and token t goes to out[q·stride+t].
	// Only those of the first count queries and of the pages are used; the rest of that room may be overwritten. ahead and beyond are keys
	// that will be needed soon, which may be fetched; they are never nil.
	scores func(dim int, queries, keys, next, ahead, beyond []float32, count int, out []float32, stride int)
	// softmax turns scores into exp(x − the largest), and returns their sum. The length is a multiple of lanes.
	softmax func(x []float32) float32
	// mix adds the first tokens values of a page's head, weighted, to the results of four queries, in the order of tokens. If there are
	// fewer queries, the last one is repeated, with the same weights. ahead are values that will be needed soon, which may be fetched.
	mix func(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead []float32)

	// gate computes silu(g)·u into g. The length is a multiple of lanes.
	gate func(g, u []float32)
	// scale computes x·factor·w into out. The length is a multiple of lanes.
	scale func(out, x, w []float32, factor float32)
}

// active is chosen once, when the program starts.
var active = func() *kernels {
	all := available()
	return all[len(all)-1]
}()

// Kernel names the implementation in use: "avx2" or "portable". Kernels of one name give the same bits on all processors.
func Kernel() string { return active.name }
