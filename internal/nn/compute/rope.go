package compute

import "math"

// Rope turns positions into rotations (J. Su et al., RoFormer, 2021).
type Rope struct {
	dim         int
	interleaved bool
	steps       []float64 // the angle of each pair at position 1
}

// NewRope returns the rotations for heads of dim dimensions: pair j turns by base^(−2j/dim)/factors[j] a position. factors may be
// nil. Interleaved pairs are neighbours; others are dim/2 apart.
func NewRope(dim int, base float64, factors []float32, interleaved bool) *Rope {
	r := &Rope{dim: dim, interleaved: interleaved, steps: make([]float64, dim/2)}
	for j := range r.steps {
		r.steps[j] = math.Pow(base, -2*float64(j)/float64(dim))
		if factors != nil {
			r.steps[j] /= float64(factors[j])
		}
	}
	return r
}

// Angles appends the cosines and sines of one position: dim/2 pairs.
func (r *Rope) Angles(to []float32, position int) []float32 {
	for _, step := range r.steps {
		sin, cos := math.Sincos(float64(position) * step)
		to = append(to, float32(cos), float32(sin))
	}
	return to
}

// pair returns the dimensions of pair j.
func (r *Rope) pair(j int) (a, b int) {
	if r.interleaved {
		return 2 * j, 2*j + 1
	}
	return j, j + r.dim/2
}

// move turns a key of a page, whose dimensions are PageTokens apart, by angles, and writes it to a slot of another.
func (r *Rope) move(to, from, angles []float32) {
	for j := range r.dim / 2 {
		a, b := r.pair(j)
		a, b = a*PageTokens, b*PageTokens
		cos, sin := angles[2*j], angles[2*j+1]
		x, y := from[a], from[b]
		to[a] = float32(x*cos) - float32(y*sin)
		to[b] = float32(x*sin) + float32(y*cos)
	}
}

// Rotate turns all heads of a row by a position's angles.
func (r *Rope) Rotate(row, angles []float32) {
	for ; len(row) >= r.dim; row = row[r.dim:] {
		for j := range r.dim / 2 {
			a, b := r.pair(j)
			cos, sin := angles[2*j], angles[2*j+1]
			x, y := row[a], row[b]
			row[a] = float32(x*cos) - float32(y*sin)
			row[b] = float32(x*sin) + float32(y*cos)
		}
	}
}

// Dim is the number of dimensions of a head.
func (r *Rope) Dim() int { return r.dim }

// Interleaved reports whether the pairs that turn are neighbours.
func (r *Rope) Interleaved() bool { return r.interleaved }
