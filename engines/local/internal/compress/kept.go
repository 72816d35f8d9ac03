package compress

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// Kept are the keys and values that were chosen from a part. Slot i of a head has one token's, those of smaller positions first.
type Kept struct {
	// Pages have llama.PageTokens slots each, with keys as they were computed.
	Pages [][]float32
	// Positions say where the token of each slot stood: of each page layer after layer, head after head, slot after slot.
	Positions [][]uint32
	// Profile says, in the same order, which part of a head's attention to the slots each has when notes are read; nil: it is not known.
	// See [Part.Look].
	Profile [][]uint8
	// Own is the drift of the notes from themselves: the mean of [Drift] over pieces of [LookedRows] tokens.
	Own float64
}

// Slots returns how many tokens each head keeps.
func (k *Kept) Slots() int { return len(k.Pages) * llama.PageTokens }

// Keep gathers the best slots tokens of the part, without those of its head. slots is a multiple of 16, and not more than there are.
func (p *Part) Keep(scores Scores, slots int) (*Kept, error) {
	own, h := len(p.tokens)-p.head, p.model.Shape()
	if slots%llama.PageTokens != 0 || slots > own || slots < 1 {
		return nil, fmt.Errorf("%d slots of %d tokens: want a multiple of %d, and not more", slots, own, llama.PageTokens)
	}
	k := &Kept{}
	for range slots / llama.PageTokens {
		k.Pages = append(k.Pages, make([]float32, p.model.PageFloats()))
		k.Positions = append(k.Positions, make([]uint32, p.model.Layers*h.KV*llama.PageTokens))
	}
	for layer := range p.model.Layers {
		for head := range h.KV {
			for slot, i := range compute.Largest(scores[layer][head*len(p.tokens):][p.head:len(p.tokens)], slots) {
				at := p.head + i
				page, in := slot/llama.PageTokens, slot%llama.PageTokens
				from := p.model.Page(p.pages[at/llama.PageTokens], layer)
				p.model.Page(k.Pages[page], layer).CopyHead(h, head, in, from, at%llama.PageTokens, nil, nil)
				k.Positions[page][(layer*h.KV+head)*llama.PageTokens+in] = uint32(at)
			}
		}
	}
	return k, nil
}

// Whole keeps all of the part: whole pages, those of its head too.
func (p *Part) Whole() *Kept {
	k, h := &Kept{}, p.model.Shape()
	for i, page := range p.pages[:len(p.tokens)/llama.PageTokens] {
		positions := make([]uint32, p.model.Layers*h.KV*llama.PageTokens)
		for j := range positions {
			positions[j] = uint32(i*llama.PageTokens + j%llama.PageTokens)
		}
		k.Pages, k.Positions = append(k.Pages, page), append(k.Positions, positions)
	}
	return k
}

// Place turns the keys of a page whose slots are to stand at position at and behind it. Where a token stays the bits do.
func Place(m *llama.Model, page []float32, positions []uint32, at int) {
	h, angles := m.Shape(), map[int][]float32{}
	for layer := range m.Layers {
		for head := range h.KV {
			for slot, from := range positions[(layer*h.KV+head)*llama.PageTokens:][:llama.PageTokens] {
				by := at + slot - int(from)
				if by == 0 {
					continue
				}
				if angles[by] == nil {
					angles[by] = m.Angles(by)
				}
				m.Turn(layer, head, page, slot, angles[by])
			}
		}
	}
}
