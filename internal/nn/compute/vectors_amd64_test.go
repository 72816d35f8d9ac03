package compute

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// vectorKernels are the kernels of this machine that are in assembler.
func vectorKernels(t *testing.T) []*kernels {
	t.Helper()
	all := available()[1:]
	if len(all) == 0 {
		t.Skip("needs AVX2")
	}
	return all
}

// fused is x·y + z, rounded once.
func fused(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z) // the product is exact
	sum := p + c
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return float32(sum)
	}
	// What was lost decides between two float32 where the sum lies just between them: if anything was, the last bit is set.
	v := sum - p
	if lost := (p - (sum - v)) + (c - v); lost != 0 && math.Float64bits(sum)&1 == 0 {
		sum = math.Nextafter(sum, math.Copysign(math.Inf(1), lost))
	}
	return float32(sum)
}

func TestFused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x, y := math.Float32frombits(r.Uint32()&0x87ffffff|0x38000000), math.Float32frombits(r.Uint32()&0x87ffffff|0x38000000)
		z := float32(x * y)
		switch r.IntN(3) {
		case 0:
			z = -z
		case 1:
			z = math.Float32frombits(math.Float32bits(z) + r.Uint32N(60)<<23)
		}
		product := new(big.Float).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
		want, _ := new(big.Float).SetPrec(2000).Add(product, big.NewFloat(float64(z))).Float32()
		if got := fused(x, y, z); got != want {
			t.Fatalf("%g·%g + %g is %g, want %g", x, y, z, got, want)
		}
	}
}

// laneSums are sums of products lane by lane, in the order of the columns, and fused.
func laneSums(a, b []float32) (sums vec) {
	for i := range a {
		sums[i%lanes] = fused(a[i], b[i], sums[i%lanes])
	}
	return sums
}

func added(v vec) float32 { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])) }

// equal are equal bits, or two that are not a number.
func equal(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// numbers are of the usual size, or any.
func numbers(r *rand.Rand, n int) []float32 {
	s, kind := make([]float32, n), r.IntN(4)
	for i := range s {
		s[i] = float32(r.NormFloat64())
		switch kind {
		case 0: // near zero, most of them subnormal
			s[i] = math.Float32frombits(r.Uint32()&0x80ffffff | r.Uint32N(2)<<30)
		case 1:
			s[i] *= 50
		case 2:
			if x := math.Float32frombits(r.Uint32()); r.IntN(20) == 0 {
				s[i] = x
			} else if r.IntN(20) == 0 {
				s[i] = float32(math.Copysign(0, float64(x)))
			}
		}
	}
	return s
}

// unpacked is a group in the layout of the vector kernels.
func unpacked(rows *[groupRows][]float32) []float32 {
	var group []float32
	for at := 0; at < len(rows[0]); at += lanes {
		for _, row := range rows {
			group = append(group, row[at:at+lanes]...)
		}
	}
	return group
}

// Unpacked weights have the bits of [quant.Dequantize], for any bytes that are numbers.
func TestUnpackIsDequantize(t *testing.T) {
	for _, kernel := range vectorKernels(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, format := range quant.Types() {
			weights, block := format.Block()
			for range 50 {
				k := max(weights, lanes) * (1 + r.IntN(4))
				size, err := format.Bytes(k)
				if err != nil {
					t.Fatal(err)
				}
				var rows [groupRows][]byte
				var want [groupRows][]float32
				for i := range rows {
					rows[i], want[i] = make([]byte, size), make([]float32, k)
					for j := range rows[i] {
						rows[i][j] = byte(r.Uint32())
					}
					for at := 0; at < size; at += block {
						for _, half := range halvesOf[format] {
							edge := []uint16{0, 0x8000, 1, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00} // both ends, and infinite
							if n := r.IntN(4 * len(edge)); n < len(edge) {
								binary.LittleEndian.PutUint16(rows[i][at+half:], edge[n])
							}
						}
					}
					quant.Dequantize(format, want[i], rows[i])
				}
				got, all := make([]float32, groupRows*k), unpacked(&want)
				kernel.unpack(format, got, &rows)
				for i := range got {
					if !equal(got[i], all[i]) {
						t.Fatalf("%v, %d columns: weight %d is %g, want %g", format, k, i, got[i], all[i])
					}
				}
			}
		}
	}
}

// Every sum has the bits of its products in the fixed order: lane by lane, from the first column to the last, fused.
func TestVectorsAddInOrder(t *testing.T) {
	for _, kernel := range vectorKernels(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 300 {
			k := lanes * (1 + round%25)
			input, rows := numbers(r, 4*k), numbers(r, 8*k)
			check := func(what string, got, want []float32) {
				t.Helper()
				if !slices.EqualFunc(got, want, equal) {
					t.Fatalf("%s, %d columns: %v, want %v", what, k, got, want)
				}
			}
			var groups []float32
			for g := range 2 {
				var group [groupRows][]float32
				for i := range group {
					group[i] = rows[(g*groupRows+i)*k:][:k]
				}
				groups = append(groups, unpacked(&group)...)
			}
			products := func(row, from, count int) (want []float32) {
				for i := range count {
					want = append(want, added(laneSums(input[row*k:][:k], rows[(from+i)*k:][:k])))
				}
				return want
			}
			check("dot", []float32{kernel.dot(input[:k], rows[:k])}, products(0, 0, 1))
			var a, b [groupRows]float32
			kernel.tile(k, input[:k], input[k:2*k], groups[:groupRows*k], &a, &b)
			check("tile of two", append(a[:], b[:]...), append(products(0, 0, groupRows), products(1, 0, groupRows)...))
			kernel.tile(k, input[2*k:3*k], nil, groups[groupRows*k:], &a, nil)
			check("tile of one", a[:], products(2, groupRows, groupRows))
			var wide wideSums
			kernel.wide(k, input[:kernel.wideRows*k], groups[:kernel.wideGroups*groupRows*k], &wide)
			for i := range kernel.wideRows {
				n := kernel.wideGroups * groupRows
				check(fmt.Sprintf("row %d of several", i), wide[i][:n], products(i, 0, n))
			}
		}
	}
}

// Lanes are added in the order of [added], for as many sums as AVX-512's loops make, and nothing else is written.
func TestAddLanes(t *testing.T) {
	vectorKernels(t)
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 8; n++ {
		for _, step := range []int{groupRows, 2 * groupRows} {
			sums, out := make([]vec, n*groupRows), numbers(r, n*step)
			want := slices.Clone(out)
			for i := range sums {
				copy(sums[i][:], numbers(r, lanes))
				want[i/groupRows*step+i%groupRows] = added(sums[i])
			}
			addLanes(n, &sums[0], &out[0], step)
			if !slices.EqualFunc(out, want, equal) {
				t.Errorf("%d times four sums, %d floats apart: %v, want %v", n, step, out, want)
			}
		}
	}
}

// Products with packed rows, where there are such, have the bits of those with what [quant.Dequantize] gives.
func TestPackedRowsAddInOrder(t *testing.T) {
	for _, kernel := range vectorKernels(t) {
		for _, format := range quant.Types() {
			for _, k := range []int{32, 96, 256} {
				weights, _ := format.Block()
				k, count := max(k, weights), kernel.gemvGroups*groupRows
				w, x := randomMatrix(t, format, count, k), randomFloats(k, 4)
				var got gemvSums
				if !kernel.gemv(format, k, x, w.Data, w.Data, &got) {
					continue
				}
				row := make([]float32, k)
				for i := range count {
					w.Row(row, i)
					if want := added(laneSums(x, row)); !equal(got[i], want) {
						t.Errorf("%v, %d columns: row %d is %g, want %g", format, k, i, got[i], want)
					}
				}
			}
		}
	}
}

// What is not a sum of columns has the bits of its formula.
func TestVectorsOfOneNumberEach(t *testing.T) {
	for _, kernel := range vectorKernels(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 300 {
			n := lanes * (1 + round%25)
			x, y := numbers(r, n), numbers(r, n)
			want, got := make([]float32, n), slices.Clone(x)
			check := func(what string) {
				t.Helper()
				for i := range want {
					if !equal(got[i], want[i]) {
						t.Fatalf("%s: number %d of %d, from %g and %g, is %g, want %g", what, i, n, x[i], y[i], got[i], want[i])
					}
				}
			}
			factor := y[r.IntN(n)]
			for i := range x {
				want[i] = float32(x[i]*factor) * y[i]
			}
			kernel.scale(got, x, y, factor)
			check("scale")
			for i := range x {
				want[i] = float32(x[i]/(expFused(-x[i])+1)) * y[i]
			}
			got = slices.Clone(x)
			kernel.gate(got, y)
			check("gate")

			for i := range x {
				if x[i] != x[i] || math.IsInf(float64(x[i]), 1) {
					x[i] = float32(math.Inf(-1))
				}
			}
			x[r.IntN(n)] = 2
			var sums vec
			most := slices.Max(x)
			for i := range x {
				want[i] = expFused(x[i] - most)
				sums[i%lanes] += want[i]
			}
			got = slices.Clone(x)
			sum := kernel.softmax(got)
			check("softmax")
			if !equal(sum, added(sums)) {
				t.Fatalf("softmax of %d: sum %g, want %g", n, sum, added(sums))
			}
		}
	}
}

// Attention's sums are fused, in the order of dimensions and of tokens.
func TestVectorsOfAttentionAddInOrder(t *testing.T) {
	for _, kernel := range vectorKernels(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 100 {
			dim, tokens := lanes*(1+round%20), 1+r.IntN(PageTokens)
			queries, keys := numbers(r, dim*maxQueries), numbers(r, 2*dim*PageTokens)
			first, second := keys[:dim*PageTokens], keys[dim*PageTokens:]
			out := make([]float32, maxQueries*2*PageTokens)
			kernel.scores(dim, queries, first, second, first, second, maxQueries, out, 2*PageTokens)
			for i, got := range out {
				q, page, slot := i/(2*PageTokens), i/PageTokens%2, i%PageTokens
				want := float32(0)
				for d := range dim {
					want = fused(queries[d*maxQueries+q], keys[page*dim*PageTokens+d*PageTokens+slot], want)
				}
				if !equal(got, want) {
					t.Fatalf("query %d, page %d, slot %d: %g, want %g", q, page, slot, got, want)
				}
			}
			values, weights, results := numbers(r, dim*tokens), numbers(r, maxQueries*tokens), numbers(r, maxQueries*dim)
			want := slices.Clone(results)
			var to, in [maxQueries]*float32
			for q := range maxQueries {
				to[q], in[q] = &results[q*dim], &weights[q*tokens]
				for d := range dim {
					for s := range tokens {
						want[q*dim+d] = fused(weights[q*tokens+s], values[s*dim+d], want[q*dim+d])
					}
				}
			}
			kernel.mix(dim, tokens, &to, &in, values, values)
			if !slices.EqualFunc(results, want, equal) {
				t.Fatalf("%d dimensions, %d tokens: %v, want %v", dim, tokens, results, want)
			}
		}
	}
}
