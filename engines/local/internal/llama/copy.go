package llama

import "github.com/ragpilot/ragpilot/internal/nn/compute"

// Copy copies the keys and values of n tokens from one sequence's pages to another's, which may not be the same memory. Where the tokens
// come to stand elsewhere their keys are turned to the new positions: rotations add, so that is exact but for rounding (CacheNotes §3.3,
// ProphetKV §4.1). At the same position the bits are the same.
func (m *Model) Copy(to [][]float32, at int, from [][]float32, fromAt, n int) {
	var angles []float32
	if at != fromAt {
		angles = m.rope.Angles(nil, at-fromAt)
	}
	for i := range n {
		t, f := to[(at+i)/PageTokens], from[(fromAt+i)/PageTokens]
		for layer := range m.layers {
			for head := range m.heads.KV {
				m.Page(t, layer).CopyHead(m.heads, head, (at+i)%PageTokens, m.Page(f, layer), (fromAt+i)%PageTokens, m.rope, angles)
			}
		}
	}
}

// Shape returns the heads of a layer.
func (m *Model) Shape() compute.Heads { return m.heads }

// Angles are those by which keys turn that move by a number of positions.
func (m *Model) Angles(by int) []float32 { return m.rope.Angles(nil, by) }

// Turn turns the key of a slot of a page, of one head in one layer, by angles.
func (m *Model) Turn(layer, head int, memory []float32, slot int, angles []float32) {
	p := m.Page(memory, layer)
	p.CopyHead(m.heads, head, slot, p, slot, m.rope, angles)
}
