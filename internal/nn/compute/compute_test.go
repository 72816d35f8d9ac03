package compute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

func randomFloats(n int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 7))
	s := make([]float32, n)
	for i := range s {
		s[i] = random.Float32() - 0.5
	}
	return s
}

// randomMatrix has weights of about ±0.25.
func randomMatrix(t testing.TB, format quant.Type, rows, cols int) Matrix {
	t.Helper()
	w, err := NewMatrix(format, rows, cols, quanttest.Random(format, rows*cols, .25, 3))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// halvesOf are where a block has numbers of 16 bits.
var halvesOf = map[quant.Type][]int{
	quant.F16: {0}, quant.Q8_0: {0}, quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2}, quant.Q3_K: {108},
	quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2}, quant.Q6_K: {208}, quant.IQ4_NL: {0},
}

func randomPages(h Heads, tokens int) []Page {
	pages := make([]Page, (tokens+PageTokens-1)/PageTokens)
	size := h.KV * h.Dim
	for i := range pages {
		pages[i] = Page{Keys: make([]float32, size*PageTokens), Values: make([]float32, size*PageTokens)}
	}
	keys, values := randomFloats(tokens*size, 5), randomFloats(tokens*size, 6)
	for i := range tokens {
		pages[i/PageTokens].Put(h, i%PageTokens, keys[i*size:][:size], values[i*size:][:size])
	}
	return pages
}

// Every kernel that this machine has.
func eachKernel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) {
			use(t, k)
			f(t)
		})
	}
}

// use makes a kernel the active one until the test ends.
func use(t *testing.T, k *kernels) {
	before := active
	active = k
	t.Cleanup(func() { active = before })
}

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// A product is that of the unpacked weights, in every format and shape.
func TestMatMul(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, format := range quant.Types() {
			for _, shape := range [][3]int{
				{1, 1, 256},
				{1, 3, 256},
				{1, 5, 256},
				{1, 23, 512},
				{1, 64, 768},
				{5, 17, 256},
				{33, 23, 512},
				{2, 64, 768},
			} {
				m, n, k := shape[0], shape[1], shape[2]
				w, a := randomMatrix(t, format, n, k), randomFloats(m*k, 9)
				out := make([]float32, m*n)
				NewCrew(2).MatMul(out, a, m, &w)
				row := make([]float32, k)
				for j := range n {
					w.Row(row, j)
					for i := range m {
						want, size := 0.0, 0.0
						for p := range k {
							x := float64(a[i*k+p]) * float64(row[p])
							want, size = want+x, size+math.Abs(x)
						}
						if got := float64(out[i*n+j]); math.Abs(got-want) > 1e-6*size {
							t.Fatalf("%v, %v: element %d, %d is %g, want %g", format, shape, i, j, got, want)
						}
					}
				}
			}
		}
	})
}

// The product with a unit vector is a column of the unpacked weights, exactly: every kernel gives a weight the value of its formula.
func TestWeightsAreExact(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, format := range quant.Types() {
			const n, k = 5, 512
			w, row := randomMatrix(t, format, n, k), make([]float32, k)
			for _, rows := range []int{1, k} { // packed weights, and unpacked ones
				a, out := make([]float32, rows*k), make([]float32, rows*n)
				for i := range rows {
					a[i*k+k-rows+i] = 1
				}
				NewCrew(1).MatMul(out, a, rows, &w)
				for j := range n {
					w.Row(row, j)
					for i := range rows {
						if got, want := out[i*n+j], row[k-rows+i]; got != want {
							t.Fatalf("%v: weight %d, %d is %g, want %g", format, j, k-rows+i, got, want)
						}
					}
				}
			}
		}
	})
}

// Columns need not be a multiple of 16.
func TestMatMulOddColumns(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		const m, n, k = 7, 13, 24
		w, a := randomMatrix(t, quant.F32, n, k), randomFloats(m*k, 9)
		out, row := make([]float32, m*n), make([]float32, k)
		NewCrew(1).MatMul(out, a, m, &w)
		for i := range m {
			for j := range n {
				w.Row(row, j)
				want := 0.0
				for p := range row {
					want += float64(a[i*k+p]) * float64(row[p])
				}
				if math.Abs(float64(out[i*n+j])-want) > 1e-5 {
					t.Errorf("element %d, %d is %g, want %g", i, j, out[i*n+j], want)
				}
			}
		}
	})
}

// A row's products are the same bits whatever other rows there are and however many threads.
func TestMatMulIsExact(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		const m, n, k = 70, 100, 512
		for _, format := range quant.Types() {
			w, a := randomMatrix(t, format, n, k), randomFloats(m*k, 9)
			whole := make([]float32, m*n)
			NewCrew(1).MatMul(whole, a, m, &w)
			for _, piece := range []int{1, 2, 7, 33, m} {
				got := make([]float32, m*n)
				for at := 0; at < m; at += piece {
					end := min(at+piece, m)
					NewCrew(3).MatMul(got[at*n:end*n], a[at*k:end*k], end-at, &w)
				}
				if !same(got, whole) {
					t.Errorf("%v: pieces of %d rows give other bits", format, piece)
				}
			}
		}
	})
}

// Kernels of one name give the same bits, for any number of rows and columns.
func TestKernelsAgree(t *testing.T) {
	byName := map[string]*kernels{}
	for _, k := range available() {
		before := byName[k.name]
		byName[k.name] = k
		if before == nil {
			continue
		}
		for _, format := range quant.Types() {
			weights, _ := format.Block()
			for _, shape := range [][3]int{{1, 37, 1}, {11, 37, 1}, {32, 64, 3}, {4, 8, 5}, {1, 4, 193}} {
				m, n, cols := shape[0], shape[1], max(weights, lanes)*shape[2]
				w, a := randomMatrix(t, format, n, cols), randomFloats(m*cols, 9)
				got, want := make([]float32, m*n), make([]float32, m*n)
				use(t, k)
				NewCrew(1).MatMul(got, a, m, &w)
				use(t, before)
				NewCrew(1).MatMul(want, a, m, &w)
				if !same(got, want) {
					t.Errorf("%v, %v: other bits", format, shape)
				}
			}
		}
	}
}

// Sums are the same bits wherever their numbers lie in memory.
func TestDotAnywhere(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		const n = 72
		a, b := randomFloats(n, 1), randomFloats(n, 2)
		want := active.dot(a, b)
		for i := range 8 {
			for j := range 8 {
				x, y := append(make([]float32, i, n+8), a...)[i:], append(make([]float32, j, n+8), b...)[j:]
				if got := active.dot(x, y); math.Float32bits(got) != math.Float32bits(want) {
					t.Errorf("%d and %d floats further on, %g, want %g", i, j, got, want)
				}
			}
		}
	})
}

func TestExp(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for x := float32(-90); x <= 0; x += 0.0137 {
			row := []float32{x, 0, 0, 0, 0, 0, 0, 0}
			active.softmax(row)
			want := math.Exp(float64(x))
			if x < expMin {
				want = 0
			}
			if got := float64(row[0]); math.Abs(got-want) > want*0x1p-21 {
				t.Fatalf("exp(%g) is %g, want %g", x, got, want)
			}
		}
		row := []float32{float32(math.Inf(-1)), 5, 5, 5, 5, 5, 5, 5}
		if sum := active.softmax(row); row[0] != 0 || row[1] != 1 || sum != 7 {
			t.Errorf("weights %v, sum %g", row, sum)
		}
	})
}

func TestGate(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		g, u := randomFloats(800, 1), randomFloats(800, 2)
		for i := range g {
			g[i] *= 400 // to beyond both ends of the exponential function
		}
		got := slices.Clone(g)
		NewCrew(2).Gate(got, u)
		for i := range g {
			want := float64(g[i]) / (1 + math.Exp(-float64(g[i]))) * float64(u[i])
			if math.Abs(float64(got[i])-want) > 1e-6*math.Abs(want)+1e-30 {
				t.Fatalf("gate(%g, %g) is %g, want %g", g[i], u[i], got[i], want)
			}
		}
	})
}

func TestNorm(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		const n = 72
		x, w := randomFloats(3*n, 1), randomFloats(n, 2)
		out := make([]float32, len(x))
		NewCrew(1).Norm(out, x, w, 1e-5)
		for row := range 3 {
			sum := 0.0
			for _, v := range x[row*n:][:n] {
				sum += float64(v) * float64(v)
			}
			for i := range n {
				want := float64(x[row*n+i]) / math.Sqrt(sum/n+1e-5) * float64(w[i])
				if math.Abs(float64(out[row*n+i])-want) > 1e-6 {
					t.Fatalf("row %d, element %d is %g, want %g", row, i, out[row*n+i], want)
				}
			}
		}
	})
}

// Rotations add up, keep lengths, and products of rotated vectors depend on the distance alone.
func TestRope(t *testing.T) {
	for _, interleaved := range []bool{false, true} {
		r := NewRope(64, 1e5, nil, interleaved)
		a, b := randomFloats(64, 1), randomFloats(64, 2)
		product := func(p, q int) float64 {
			x, y := slices.Clone(a), slices.Clone(b)
			r.Rotate(x, r.Angles(nil, p))
			r.Rotate(y, r.Angles(nil, q))
			sum := 0.0
			for i := range x {
				sum += float64(x[i]) * float64(y[i])
			}
			return sum
		}
		if near, far := product(3, 10), product(100_003, 100_010); math.Abs(near-far) > 1e-5 {
			t.Errorf("interleaved %v: products %g and %g at the same distance", interleaved, near, far)
		}
		if product(0, 0) == product(0, 5) {
			t.Error("nothing is rotated")
		}
		back := slices.Clone(a)
		r.Rotate(back, r.Angles(nil, 77))
		r.Rotate(back, r.Angles(nil, -77))
		for i := range a {
			if math.Abs(float64(a[i]-back[i])) > 1e-6 {
				t.Fatalf("element %d is %g after a turn and back, was %g", i, back[i], a[i])
			}
		}
	}
	// By hand: pair 0 turns by the position, in radians.
	x := []float32{1, 0, 0, 0}
	NewRope(4, 100, nil, true).Rotate(x, NewRope(4, 100, nil, true).Angles(nil, 1))
	if math.Abs(float64(x[0])-math.Cos(1)) > 1e-7 || math.Abs(float64(x[1])-math.Sin(1)) > 1e-7 {
		t.Errorf("rotated to %v", x)
	}
	scaled := NewRope(4, 100, []float32{2, 1}, true).Angles(nil, 4)
	if math.Abs(float64(scaled[0])-math.Cos(2)) > 1e-7 {
		t.Errorf("angles with factors %v", scaled)
	}
}

func TestNewMatrix(t *testing.T) {
	for name, c := range map[string]struct {
		rows, cols, bytes int
		format            quant.Type
	}{
		"no rows": {0, 32, 0, quant.F32}, "columns": {1, 12, 48, quant.F32}, "short": {2, 32, 255, quant.F32},
		"long": {2, 32, 260, quant.F32}, "part of a block": {1, 40, 45, quant.Q8_0},
	} {
		if _, err := NewMatrix(c.format, c.rows, c.cols, make([]byte, c.bytes)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
