package compute

import "math"

// Norm writes each row of x, divided by its root mean square and multiplied by weights, to out (B. Zhang, R. Sennrich, Root Mean
// Square Layer Normalization, 2019). Rows have len(weights) elements, a multiple of 8. out may be x.
func (c *Crew) Norm(out, x, weights []float32, epsilon float32) {
	n := len(weights)
	c.Each(len(x)/n, len(x), func(from, to int) {
		for i := from * n; i < to*n; i += n {
			mean := active.dot(x[i:i+n], x[i:i+n]) / float32(n)
			active.scale(out[i:i+n], x[i:i+n], weights, float32(1/math.Sqrt(float64(mean+epsilon))))
		}
	})
}

// Gate computes silu(g)·u into g. The length is a multiple of 8.
func (c *Crew) Gate(g, u []float32) {
	c.Each(len(g)/lanes, len(g), func(from, to int) { active.gate(g[from*lanes:to*lanes], u[from*lanes:to*lanes]) })
}

// Add adds y to x.
func Add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}

// AddRow adds bias to each row of x.
func AddRow(x, bias []float32) {
	for ; len(x) > 0; x = x[len(bias):] {
		Add(x[:len(bias)], bias)
	}
}
