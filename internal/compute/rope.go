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

// Rotate turns all heads of a row by a position's angles.
func (r *Rope) Rotate(row, angles []float32) {
	half := r.dim / 2
	for ; len(row) >= r.dim; row = row[r.dim:] {
		for j := range half {
			a, b := j, j+half
			if r.interleaved {
				a, b = 2*j, 2*j+1
			}
			cos, sin := angles[2*j], angles[2*j+1]
			x, y := row[a], row[b]
			row[a] = float32(x*cos) - float32(y*sin)
			row[b] = float32(x*sin) + float32(y*cos)
		}
	}
}
