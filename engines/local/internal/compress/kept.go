package compress

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
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
func (k *Kept) Slots() int { return len(k.Positions) * llama.PageTokens }

// Keep gathers the best slots tokens of the part, without those of its head. slots is a multiple of 16, and not more than there are.
func (p *Part) Keep(scores Scores, slots int) (*Kept, error) {
	own, h := len(p.tokens)-p.head, p.model.Shape()
	if slots%llama.PageTokens != 0 || slots > own || slots < 1 {
		return nil, fmt.Errorf("%d slots of %d tokens: want a multiple of %d, and not more", slots, own, llama.PageTokens)
	}
	k := &Kept{}
	for range slots / llama.PageTokens {
		k.Positions = append(k.Positions, make([]uint32, p.model.Layers*h.KV*llama.PageTokens))
	}
	chosen := make([][][]int, p.model.Layers)
	for layer := range chosen {
		var values []float32
		for head := range h.KV {
			values = append(values, scores[layer][head*len(p.tokens):][p.head:len(p.tokens)]...)
		}
		var err error
		if chosen[layer], err = p.model.worker.Largest(values, own, slots); err != nil {
			return nil, err
		}
		for head, tokens := range chosen[layer] {
			for slot := range tokens {
				tokens[slot] += p.head
				k.Positions[slot/llama.PageTokens][(layer*h.KV+head)*llama.PageTokens+slot%llama.PageTokens] = uint32(tokens[slot])
			}
		}
	}
	pages, err := p.model.NewPages(slots / llama.PageTokens)
	if err != nil {
		return nil, err
	}
	defer p.model.FreePages(pages)
	p.model.worker.Gather(pages, p.pages, chosen)
	if err := p.model.worker.Sync(); err != nil {
		return nil, err
	}
	return k, k.read(p.model.Model, pages)
}

// read takes what pages have.
func (k *Kept) read(m *llama.Model, pages []gpu.Page) error {
	for _, page := range pages {
		floats, err := m.Floats(page)
		if err != nil {
			return err
		}
		k.Pages = append(k.Pages, floats)
	}
	return nil
}

// Whole keeps all of the part: whole pages, those of its head too.
func (p *Part) Whole() (*Kept, error) {
	k, h, pages := &Kept{}, p.model.Shape(), p.pages[:len(p.tokens)/llama.PageTokens]
	for i := range pages {
		positions := make([]uint32, p.model.Layers*h.KV*llama.PageTokens)
		for j := range positions {
			positions[j] = uint32(i*llama.PageTokens + j%llama.PageTokens)
		}
		k.Positions = append(k.Positions, positions)
	}
	return k, k.read(p.model.Model, pages)
}

// Place brings the keys and values of a page to the device, with its slots at position at and behind it. Where a token stays the bits do.
func Place(w *llama.Worker, m *llama.Model, to gpu.Page, floats []float32, positions []uint32, at int) error {
	if err := m.Pool().Write(to, floats); err != nil {
		return err
	}
	steps := make([]int32, len(positions))
	for i, from := range positions {
		steps[i] = int32(at + i%llama.PageTokens - int(from))
	}
	w.Turn(to, steps)
	return w.Sync()
}
