package quant_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// golden is what ggml's own Python package makes of numbers, for one format.
type golden struct {
	Type                      string
	Weights, Packed, Unpacked []byte
}

func goldens(t *testing.T) []golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/ggml.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []golden
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func floats(raw []byte) []float32 {
	out := make([]float32, len(raw)/4)
	quant.Dequantize(quant.F32, out, raw)
	return out
}

func TestAsGgmlDoes(t *testing.T) {
	left := quant.Types()[1:] // F32 is what the others are written in
	for _, g := range goldens(t) {
		left = slices.DeleteFunc(left, func(format quant.Type) bool { return format.String() == g.Type })
		t.Run(g.Type, func(t *testing.T) {
			format := quant.Types()[slices.IndexFunc(quant.Types(), func(format quant.Type) bool { return format.String() == g.Type })]
			want := floats(g.Unpacked)
			got := make([]float32, len(want))
			quant.Dequantize(format, got, g.Packed)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("weight %d is %v, want %v", i, got[i], want[i])
				}
			}
			if len(g.Weights) == 0 {
				return
			}
			packed := make([]byte, len(g.Packed))
			if quant.Quantize(format, packed, floats(g.Weights)) == nil && !bytes.Equal(packed, g.Packed) {
				t.Fatalf("packed is\n%x, want\n%x", packed, g.Packed)
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("no golden for %v", left)
	}
}

func TestEveryHalfKeepsItsValue(t *testing.T) {
	for h := range 1 << 16 {
		f := quant.FromF16(uint16(h))
		exponent, mantissa := h>>10&31, float64(h&1023)
		want := math.Ldexp(1024+mantissa, exponent-25)
		switch {
		case exponent == 31 && mantissa != 0:
			want = math.NaN()
		case exponent == 31:
			want = math.Inf(1)
		case exponent == 0:
			want = math.Ldexp(mantissa, -24)
		}
		if h>>15 == 1 {
			want = -want
		}
		if float64(f) != want && !(math.IsNaN(float64(f)) && math.IsNaN(want)) {
			t.Fatalf("FromF16(%#04x) = %v, want %v", h, f, want)
		}
		if back := quant.ToF16(f); !math.IsNaN(want) && back != uint16(h) {
			t.Fatalf("ToF16(%v) = %#04x, want %#04x", f, back, h)
		}
		if b := quant.FromBF16(uint16(h)); b == b && quant.ToBF16(b) != uint16(h) {
			t.Fatalf("ToBF16(%v) = %#04x, want %#04x", b, quant.ToBF16(b), h)
		}
	}
}

func TestHalfRoundsToNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if f != f {
			if b := quant.FromF16(quant.ToF16(f)); b == b {
				t.Fatalf("half of NaN is %v", b)
			}
			if b := quant.FromBF16(quant.ToBF16(f)); b == b {
				t.Fatalf("bfloat16 of NaN is %v", b)
			}
			return
		}
		nearest(t, "half", f, quant.ToF16(f), quant.FromF16)
		nearest(t, "bfloat16", f, quant.ToBF16(f), quant.FromBF16)
	})
}

// nearest fails if a neighbour of h is nearer to f than h is, or as near and even.
func nearest(t *rapid.T, name string, f float32, h uint16, value func(uint16) float32) {
	distance := math.Abs(float64(value(h)) - float64(f))
	if math.IsInf(float64(value(h)), 0) || math.IsInf(float64(f), 0) {
		return
	}
	for _, other := range []uint16{h - 1, h + 1} {
		v := float64(value(other))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if d := math.Abs(v - float64(f)); d < distance || d == distance && h&1 == 1 && d > 0 {
			t.Fatalf("%s of %v is %v, but %v is nearer", name, f, value(h), v)
		}
	}
}

func TestQuantizingLosesLittle(t *testing.T) {
	// At most this share of the block's largest magnitude, beside half precision's own rounding.
	lost := map[quant.Type]float64{quant.F32: 0, quant.F16: 1. / 2048, quant.BF16: 1. / 256, quant.Q8_0: .5 / 127}
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q8_0}).Draw(t, "format")
		in := rapid.SliceOfN(rapid.Float32Range(-100, 100), 32, 32).Draw(t, "weights")
		size, err := format.Bytes(32)
		if err != nil {
			t.Fatal(err)
		}
		packed, out := make([]byte, size), make([]float32, 32)
		if err := quant.Quantize(format, packed, in); err != nil {
			t.Fatal(err)
		}
		quant.Dequantize(format, out, packed)
		var most float64
		for _, x := range in {
			most = max(most, math.Abs(float64(x)))
		}
		for i := range in {
			if d := math.Abs(float64(in[i] - out[i])); d > 2*most*lost[format]+most/500*min(1, lost[format]*1e9)+1e-5 {
				t.Fatalf("weight %d: %v became %v in %v, largest magnitude %v", i, in[i], out[i], format, most)
			}
		}
	})
}

func TestSizes(t *testing.T) {
	for _, format := range quant.Types() {
		weights, size := format.Block()
		if got, err := format.Bytes(3 * weights); err != nil || got != 3*size {
			t.Errorf("%v.Bytes(%d) = %d, %v, want %d", format, 3*weights, got, err, 3*size)
		}
		if got, err := format.Bytes(0); err != nil || got != 0 {
			t.Errorf("%v.Bytes(0) = %d, %v", format, got, err)
		}
		bad := []int{-weights, math.MaxInt / weights * weights}
		if weights > 1 {
			bad = append(bad, weights-1, weights+1)
		}
		for _, n := range bad {
			if got, err := format.Bytes(n); err == nil && n > 0 && got/size*weights == n {
				continue // it did fit
			} else if err == nil {
				t.Errorf("%v.Bytes(%d) = %d, want an error", format, n, got)
			}
		}
	}
	if _, err := quant.Type(200).Bytes(1); err == nil {
		t.Error("an unknown format has a size")
	}
	if err := quant.Quantize(quant.Q4_K, make([]byte, 144), make([]float32, 256)); err == nil {
		t.Error("Q4_K was written")
	}
	if err := quant.Quantize(quant.Q8_0, make([]byte, 33), make([]float32, 32)); err == nil {
		t.Error("33 bytes were enough for a block of Q8_0")
	}
}

// Every value of a block is the formula's, whatever the bytes are.
func FuzzDequantize(f *testing.F) {
	for _, format := range quant.Types() {
		f.Add(uint8(format), bytes.Repeat([]byte{0x3c}, 300))
		f.Add(uint8(format), make([]byte, 420))
	}
	f.Fuzz(func(t *testing.T, format uint8, raw []byte) {
		typ := quant.Types()[int(format)%len(quant.Types())]
		weights, size := typ.Block()
		if len(raw) < size {
			return
		}
		dst := make([]float32, len(raw)/size*weights)
		quant.Dequantize(typ, dst, raw)
		want := slices.Clone(dst[:weights])
		half := func(at int) float32 { return quant.FromF16(binary.LittleEndian.Uint16(raw[at:])) }
		switch typ {
		case quant.Q4_1:
			for i := range want {
				want[i] = float32(half(0)*float32(raw[4+i%16]>>(i/16*4)&15)) + half(2)
			}
		case quant.Q5_1:
			for i := range want {
				q := raw[8+i%16]>>(i/16*4)&15 + raw[4+i/8]>>(i%8)&1*16
				want[i] = float32(half(0)*float32(q)) + half(2)
			}
		case quant.Q5_0:
			for i := range want {
				q := raw[6+i%16]>>(i/16*4)&15 + raw[2+i/8]>>(i%8)&1*16
				want[i] = half(0) * (float32(q) - 16)
			}
		case quant.Q5_K: // without fifth bits it is Q4_K
			plain := slices.Clone(raw[:size])
			clear(plain[16:48])
			quant.Dequantize(typ, dst[:256], plain)
			quant.Dequantize(quant.Q4_K, want, slices.Delete(plain, 16, 48))
		}
		for i := range want {
			if dst[i] != want[i] && (dst[i] == dst[i] || want[i] == want[i]) {
				t.Fatalf("%v: weight %d is %v, want %v", typ, i, dst[i], want[i])
			}
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	for _, format := range quant.Types() {
		b.Run(format.String(), func(b *testing.B) {
			const n = 1 << 14
			size, _ := format.Bytes(n)
			src, dst := bytes.Repeat([]byte{0x11}, size), make([]float32, n)
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				quant.Dequantize(format, dst, src)
			}
		})
	}
}
