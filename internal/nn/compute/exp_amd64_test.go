//go:build goexperiment.simd

package compute

import (
	"math"
	"math/rand/v2"
	"testing"

	"simd/archsimd"
)

// The loops of softmax have the bits of [expVector], and add up lane by lane.
func TestExps(t *testing.T) {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		t.Skip("needs AVX2")
	}
	const n = 16 * 1000
	r := rand.New(rand.NewPCG(1, 2))
	x, want := make([]float32, n), make([]float32, n)
	const largest = 3
	for i := range x {
		x[i] = largest - float32(r.ExpFloat64()*20)
	}
	x[0], x[1], x[2], x[3] = largest, largest+expMin, math.Nextafter32(largest+expMin, -100), float32(math.Inf(-1))
	var sums vec
	for i := 0; i < n; i += lanes {
		e := expVector(load((*vec)(x[i:])).Sub(archsimd.BroadcastFloat32x8(largest)))
		e.Store((*vec)(want[i:]))
		load(&sums).Add(e).Store(&sums)
	}
	archsimd.ClearAVXUpperBits()
	check := func(name string, exps func(x *float32, n int, largest float32, sums *vec)) {
		got, added := append([]float32(nil), x...), vec{}
		exps(&got[0], n, largest, &added)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: e to %v is %v, want %v", name, x[i]-largest, got[i], want[i])
			}
		}
		if added != sums {
			t.Errorf("%s: sums %v, want %v", name, added, sums)
		}
	}
	check("exps256", exps256)
	if archsimd.X86.AVX512() {
		check("exps512", exps512)
	}
}
