//go:build unix

package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Products touch no memory but their own and are the same bits in all kernels of one name, together or row by row.
func TestMatMulBounds(t *testing.T) {
	before := active
	defer func() { active = before }()
	types, count := quant.Types(), 0
	iterations(t, 150, func(random *rand.Rand, i int) {
		count++
		format := types[i%len(types)]
		weights, _ := format.Block()
		n, m := 1+random.IntN(45), 1+random.IntN(9)
		if random.IntN(4) == 0 {
			m = 1 + random.IntN(70)
		}
		if random.IntN(2) == 0 {
			m = 1
		}
		k := max(weights, lanes) * (1 + random.IntN(6))
		if weights == 1 && random.IntN(2) == 0 {
			k = 32 * (1 + random.IntN(4))
		}
		f := newFence(t, random)
		defer f.free()
		data := f.packed(format, n*k)
		w, err := NewMatrix(format, n, k, data)
		if err != nil {
			t.Fatal(err)
		}
		a := f.copied(randomFloats(m*k, random.Uint64()))
		name := fmt.Sprintf("%v, %d rows of %d columns, %d rows of the input", format, n, k, m)
		row, want, size := make([]float32, k), make([]float64, m*n), make([]float64, m*n)
		for j := range n {
			w.Row(row, j)
			for i := range m {
				for p := range k {
					x := float64(a[i*k+p]) * float64(row[p])
					want[i*n+j] += x
					size[i*n+j] += math.Abs(x)
				}
			}
		}
		first := map[string][]float32{}
		for _, kernel := range available() {
			active = kernel
			whole, single := f.floats(m*n), f.floats(m*n)
			spoilPools()
			NewCrew(1+random.IntN(3)).MatMul(whole, a, m, &w)
			for i := range m {
				NewCrew(1).MatMul(single[i*n:][:n], a[i*k:][:k], 1, &w)
			}
			if !same(whole, single) {
				t.Errorf("%s: %s: other bits row by row", kernel.name, name)
			}
			if other := first[kernel.name]; other != nil && !same(whole, other) {
				t.Errorf("%s: %s: other bits in another kernel of this name", kernel.name, name)
			}
			first[kernel.name] = whole
			for i, x := range whole {
				if !(math.Abs(float64(x)-want[i]) <= 1e-6*size[i]) {
					t.Errorf("%s: %s: element %d is %g, want %g", kernel.name, name, i, x, want[i])
					break
				}
			}
		}
	})
	t.Logf("%d cases", count)
}

// The functions of a kernel touch no memory but what they are given.
func TestKernelBounds(t *testing.T) {
	count := 0
	iterations(t, 150, func(random *rand.Rand, i int) {
		count++
		f := newFence(t, random)
		defer f.free()
		type result struct {
			name string
			bits []float32
		}
		first := map[string][]result{}
		k := lanes * (1 + random.IntN(12))
		if random.IntN(2) == 0 {
			k = 32 * (1 + random.IntN(3))
		}
		dims := []int{8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 128, 256}
		dim, tokens := dims[i%len(dims)], 1+random.IntN(PageTokens)
		stride := 2 * PageTokens * (1 + random.IntN(3))
		queries, keys, next := f.copied(
			randomFloats(dim*maxQueries, random.Uint64()),
		), f.copied(
			randomFloats(dim*PageTokens, random.Uint64()),
		), f.copied(
			randomFloats(dim*PageTokens, random.Uint64()),
		)
		if random.IntN(3) == 0 {
			next = nil
		}
		values, ahead := f.copied(randomFloats(dim*tokens, random.Uint64())), f.copied(randomFloats(dim*tokens, random.Uint64()))
		keysAhead, keysBeyond := f.copied(randomFloats(dim*PageTokens, random.Uint64())), f.copied(randomFloats(dim*PageTokens, random.Uint64()))
		input := f.copied(randomFloats(4*k, random.Uint64()))
		floats := randomFloats(8*k, random.Uint64())
		different := 1 + random.IntN(maxQueries)
		base := randomFloats(dim*maxQueries, random.Uint64())
		weightsOf := randomFloats(PageTokens*maxQueries, random.Uint64())
		soft := randomFloats(PageTokens*(1+random.IntN(5)), random.Uint64())
		for i := range soft {
			soft[i] *= 200
			if random.IntN(5) == 0 {
				soft[i] = float32(math.Inf(-1))
			}
		}
		soft[random.IntN(len(soft))] = 3
		types := quant.Types()
		format := types[i%len(types)]
		block, _ := format.Block()
		kq := max(block, lanes) * (1 + random.IntN(3))
		if block == 1 && random.IntN(2) == 0 {
			kq = 32 * (1 + random.IntN(3))
		}
		seed := random.Uint64()
		size, err := format.Bytes(kq)
		if err != nil {
			t.Fatal(err)
		}
		packed, later := f.packed(format, 2*groupRows*kq), f.bytes(2*groupRows*size)
		inputQ := f.copied(randomFloats(kq, seed))
		for _, kernel := range available() {
			var all []result
			add := func(name string, bits ...float32) { all = append(all, result{name, append([]float32(nil), bits...)}) }

			// Unpacking, and packed products beside unpacked ones.
			var unpacked [2][]float32
			var tiles [2][groupRows]float32
			for g := range unpacked {
				var rows [groupRows][]byte
				for j := range rows {
					rows[j] = f.bytes(size)
					copy(rows[j], packed[(g*groupRows+j)*size:][:size])
				}
				unpacked[g] = f.floats(groupRows * kq)
				kernel.unpack(format, unpacked[g], &rows)
				kernel.tile(kq, inputQ, nil, unpacked[g], &tiles[g], nil)
				add("unpack "+format.String(), unpacked[g]...)
			}
			if kernel.gemv != nil {
				var out gemvSums
				n := kernel.gemvGroups * groupRows
				cut, cutLater := f.bytes(n*size), f.bytes(n*size)
				copy(cut, packed)
				copy(cutLater, later)
				if kernel.gemv(format, kq, inputQ, cut, cutLater, &out) {
					for g := range kernel.gemvGroups {
						if !same(out[g*groupRows:][:groupRows], tiles[g][:]) {
							t.Errorf("%s, %v, %d columns: group %d is %v, want %v", kernel.name, format, kq, g, out[g*groupRows:][:groupRows], tiles[g])
						}
					}
				}
			}

			// Tiles.
			group := f.copied(floats[:4*k])
			var x, y, alone [groupRows]float32
			kernel.tile(k, f.copied(input[:k]), f.copied(input[k:2*k]), group, &x, &y)
			kernel.tile(k, f.copied(input[:k]), nil, group, &alone, nil)
			if x != alone {
				t.Errorf("%s, %d columns: tile of one row", kernel.name, k)
			}
			add("tile", append(x[:], y[:]...)...)
			if kernel.wide != nil {
				var out wideSums
				kernel.wide(k, f.copied(input[:kernel.wideRows*k]), f.copied(floats[:kernel.wideGroups*groupRows*k]), &out)
				for r := range kernel.wideRows {
					for g := range kernel.wideGroups {
						var want [groupRows]float32
						kernel.tile(k, input[r*k:][:k], nil, f.copied(floats[g*groupRows*k:][:groupRows*k]), &want, nil)
						if !same(want[:], out[r][g*groupRows:][:groupRows]) {
							t.Errorf("%s, %d columns: row %d, group %d is %v, want %v", kernel.name, k, r, g, out[r], want)
						}
					}
				}
			}

			// Attention.
			out := f.floats((maxQueries-1)*stride + 2*PageTokens)
			kernel.scores(dim, queries, keys, next, keysAhead, keysBeyond, different, out, stride)
			for q := range different {
				add("scores", out[q*stride:][:PageTokens]...)
				if next != nil {
					add("scores", out[q*stride:][PageTokens:2*PageTokens]...)
				}
				for i := 2 * PageTokens; i < stride && q < different-1; i++ {
					if v := out[q*stride+i]; v == v {
						t.Errorf("%s: score %d of query %d was written", kernel.name, i, q)
					}
				}
				for p, page := range [][]float32{keys, next} {
					for slot := 0; page != nil && slot < PageTokens; slot++ {
						want := 0.0
						for d := range dim {
							want += float64(queries[d*maxQueries+q]) * float64(page[d*PageTokens+slot])
						}
						if got := float64(out[q*stride+p*PageTokens+slot]); !(math.Abs(got-want) < 1e-5) {
							t.Errorf("%s: score %g, want %g", kernel.name, got, want)
						}
					}
				}
			}
			var to, in [maxQueries]*float32
			results := make([][]float32, different)
			for q := range maxQueries {
				if q < different {
					results[q] = f.copied(base[q*dim:][:dim])
					to[q], in[q] = &results[q][0], &f.copied(weightsOf[q*PageTokens:][:tokens])[0]
				} else {
					to[q], in[q] = to[q-1], in[q-1]
				}
			}
			kernel.mix(dim, tokens, &to, &in, values, ahead)
			for q, got := range results {
				add("mix", got...)
				for d := range dim {
					want := float64(base[q*dim+d])
					for s := range tokens {
						want += float64(weightsOf[q*PageTokens+s]) * float64(values[s*dim+d])
					}
					if !(math.Abs(float64(got[d])-want) < 1e-5) {
						t.Errorf("%s, %d dimensions, %d tokens, %d queries: %g in place of %g", kernel.name, dim, tokens, different, got[d], want)
					}
				}
			}
			e := f.copied(soft)
			add("softmax", kernel.softmax(e))
			add("softmax", e...)
			add("dot", kernel.dot(f.copied(input[:k]), f.copied(floats[:k])))
			g, o := f.copied(input[:k]), f.floats(k)
			kernel.gate(g, f.copied(floats[:k]))
			add("gate", g...)
			kernel.scale(o, f.copied(input[:k]), f.copied(floats[:k]), .3)
			add("scale", o...)

			if before := first[kernel.name]; before != nil {
				for i, r := range all {
					if !same(r.bits, before[i].bits) {
						t.Errorf("%s: other bits of %s: dim %d, k %d, %d tokens", kernel.name, r.name, dim, k, tokens)
					}
				}
			}
			first[kernel.name] = all
		}
	})
	t.Logf("%d cases", count)
}

// Attention touches no memory but its own, is the same bits in all kernels of one name, together or row by row, and nothing that an earlier
// call or another sequence left comes into it.
func TestAttendBounds(t *testing.T) {
	if testing.Short() { // one goroutine is at work for most of the time
		testkit.NotUnderRace(t)
	}
	before := active
	defer func() { active = before }()
	count := 0
	dims := []int{8, 16, 24, 32, 64, 72, 80, 96, 128}
	iterations(t, 100, func(random *rand.Rand, i int) {
		count++
		f := newFence(t, random)
		defer f.free()
		kv := 1 + random.IntN(2)
		h := Heads{Query: kv * (1 + random.IntN(16)), KV: kv, Dim: dims[i%len(dims)]}
		width, total := h.Query*h.Dim, 0
		var runs []Run
		for range 1 + random.IntN(4) {
			r := Run{Rows: 1, Position: random.IntN(100)}
			switch random.IntN(8) {
			case 0, 1, 2:
				r.Rows = 1 + random.IntN(40)
			case 3:
				r.Position = 480 + random.IntN(100) // two blocks of pages
			case 4:
				r.Rows = 0
			}
			tokens := r.Position + r.Rows
			if tokens > 0 {
				r.Pages = spoil(h, randomPages(h, tokens), tokens)
			}
			for p := range r.Pages {
				r.Pages[p].Keys, r.Pages[p].Values = f.copied(r.Pages[p].Keys), f.copied(r.Pages[p].Values)
			}
			if more := random.IntN(4); more < 2 && r.Rows > 0 { // pages for later tokens
				nan := f.floats(h.KV * h.Dim * PageTokens)
				for range more {
					r.Pages = append(r.Pages, Page{nan, nan})
				}
			}
			runs = append(runs, r)
			total += r.Rows
		}
		q := f.copied(randomFloats(total*width, random.Uint64()))
		for i := range q {
			q[i] *= 5
		}
		first := map[string][]float32{}
		for _, kernel := range available() {
			active = kernel
			whole, single := f.floats(len(q)), f.floats(len(q))
			spoilPools()
			NewCrew(1+random.IntN(4)).Attend(whole, q, h, runs)
			at := 0
			for _, r := range runs {
				for i := range r.Rows {
					spoilPools()
					one := Run{Rows: 1, Position: r.Position + i, Pages: r.Pages[:pagesOf(r.Position+i+1)]}
					if random.IntN(4) == 0 {
						NewCrew(1).Attend(single[at*width:][:width], q[at*width:][:width], h, []Run{one})
						if !same(single[at*width:][:width], whole[at*width:][:width]) {
							t.Errorf("%s, %+v: other bits row by row", kernel.name, h)
						}
					}
					head := random.IntN(h.Query)
					o := at*width + head*h.Dim
					want := attention(q[o:][:h.Dim], r.Pages, head*h.KV/h.Query, r.Position+i+1, h.Dim)
					for d := range want {
						if !(math.Abs(want[d]-float64(whole[o+d])) <= 3e-6) {
							t.Errorf("%s, %+v: row %d, head %d, dimension %d is %g, want %g", kernel.name, h, at, head, d, whole[o+d], want[d])
							break
						}
					}
					at++
				}
			}
			if other := first[kernel.name]; other != nil && !same(whole, other) {
				t.Errorf("%s, %+v: other bits in another kernel of this name", kernel.name, h)
			}
			first[kernel.name] = whole
			for _, pool := range []*workspace{workspaces.Get().(*workspace)} {
				for i := range pool.query {
					if pool.query[i] != nil || pool.result[i] != nil {
						t.Error("the pool keeps what is the caller's")
					}
				}
				for q := range pool.out {
					if pool.out[q] != nil {
						t.Error("the pool keeps a result")
					}
				}
				workspaces.Put(pool)
			}
		}
	})
	t.Logf("%d cases", count)
}
