package paper

// Distance is Eq. 1 between two contexts.
func Distance(a, b []Doc, alpha float64) float64 {
	var p positions
	p.load(b)
	d, _ := p.distance(a, len(b), alpha)
	return d
}
