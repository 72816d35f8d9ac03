package compute

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The loops of softmax have the bits of [expFused], and add up lane by lane.
func TestExps(t *testing.T) {
	kernels := vectorKernels(t)
	const n = 16 * 1000
	r := rand.New(rand.NewPCG(1, 2))
	x, want := make([]float32, n), make([]float32, n)
	const largest = 3
	for i := range x {
		x[i] = largest - float32(r.ExpFloat64()*20)
	}
	x[0], x[1], x[2], x[3] = largest, largest+expMin, math.Nextafter32(largest+expMin, -100), float32(math.Inf(-1))
	var sums vec
	for i := range x {
		want[i] = expFused(x[i] - largest)
		sums[i%lanes] += want[i]
	}
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
	if len(kernels) > 1 {
		check("exps512", exps512)
	}
}

// expFused is [exp] with fused multiply-add, in the order of the vector loops.
func expFused(x float32) float32 {
	if !(x >= expMin) {
		return 0
	}
	x = min(x, expMax)
	n := float32(math.RoundToEven(float64(float32(x * log2e))))
	r := fused(n, -ln2High, x)
	r = fused(n, -ln2Low, r)
	p := float32(expC0)
	for _, c := range []float32{expC1, expC2, expC3, expC4, expC5} {
		p = fused(p, r, c)
	}
	p = fused(p, float32(r*r), r) + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
