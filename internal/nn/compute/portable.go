package compute

import (
	"math"
	"slices"
	"unsafe"

	"gonum.org/v1/gonum/blas/gonum"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// portable is the implementation for every machine. A group of weights is its rows, one after the other.
func portable() *kernels {
	return &kernels{
		name: "portable", unpack: unpackRows, tile: tileRows, dot: dot, scores: scoresRows,
		softmax: softmaxRow, mix: mixRows, gate: gateRow, scale: scaleRow,
	}
}

var library gonum.Implementation

// dot is the same bits wherever its arguments lie: gonum's order of summation on amd64 depends on the second one's place within 16
// bytes. What this package allocates lies at a multiple of them.
func dot(a, b []float32) float32 {
	if !aligned(b) {
		if a, b = b, a; !aligned(b) {
			b = slices.Clone(b)
		}
	}
	return library.Sdot(len(a), a, 1, b, 1)
}

func aligned(s []float32) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(s)))%16 == 0 }

func unpackRows(t quant.Type, dst []float32, rows *[groupRows][]byte) {
	k := len(dst) / groupRows
	for i, row := range rows {
		quant.Dequantize(t, dst[i*k:][:k], row)
	}
}

func tileRows(k int, a, b, group []float32, outA, outB *[groupRows]float32) {
	for i := range groupRows {
		w := group[i*k:][:k]
		outA[i] = dot(a, w)
		if b != nil {
			outB[i] = dot(b, w)
		}
	}
}

func scoresRows(dim int, queries, keys, next, _, _ []float32, count int, out []float32, stride int) {
	for q := range count {
		sums := out[q*stride:][:2*PageTokens]
		clear(sums)
		for d := range dim {
			x := queries[d*maxQueries+q]
			library.Saxpy(PageTokens, x, keys[d*PageTokens:], 1, sums, 1)
			if next != nil {
				library.Saxpy(PageTokens, x, next[d*PageTokens:], 1, sums[PageTokens:], 1)
			}
		}
	}
}

func softmaxRow(x []float32) float32 {
	most, sum := slices.Max(x), float32(0)
	for i, v := range x {
		x[i] = exp(v - most)
		sum += x[i]
	}
	return sum
}

func mixRows(dim, tokens int, out, weights *[maxQueries]*float32, values, _ []float32) {
	for q, o := range out {
		if q > 0 && o == out[q-1] {
			break // the same once more
		}
		for t, w := range unsafe.Slice(weights[q], tokens) {
			library.Saxpy(dim, w, values[t*dim:], 1, unsafe.Slice(o, dim), 1)
		}
	}
}

func gateRow(g, u []float32) {
	for i, v := range g {
		g[i] = v / (1 + exp(-v)) * u[i]
	}
}

func scaleRow(out, x, w []float32, factor float32) {
	for i, v := range x {
		out[i] = float32(v*factor) * w[i]
	}
}

// The exponential function: x = n·ln 2 + r with |r| ≤ ln 2 / 2, a polynomial for r (S. L. Moshier, Cephes library,
// expf), and n into the exponent. The relative error is below 2⁻²².
const (
	expMin, expMax = -87, 88
	log2e          = 1.44269504088896341
	ln2High        = 0.693359375
	ln2Low         = -2.12194440e-4
	expC0          = 1.9875691500e-4
	expC1          = 1.3981999507e-3
	expC2          = 8.3334519073e-3
	expC3          = 4.1665795894e-2
	expC4          = 1.6666665459e-1
	expC5          = 5.0000001201e-1
)

// exp is e to the x; 0 below expMin, and that of expMax above it.
func exp(x float32) float32 {
	if !(x >= expMin) {
		return 0
	}
	x = min(x, expMax)
	n := float32(math.RoundToEven(float64(x * log2e)))
	r := x - n*ln2High - n*ln2Low
	p := float32(expC0)
	p = p*r + expC1
	p = p*r + expC2
	p = p*r + expC3
	p = p*r + expC4
	p = p*r + expC5
	return (p*r*r + r + 1) * math.Float32frombits(uint32(int32(n)+127)<<23)
}
