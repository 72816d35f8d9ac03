package runner

import (
	"math"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// lowLayers are those that CacheBlend and KVShare compare: the values of the second are the first that depend on other tokens.
const lowLayers = 2

// compare values tokens by how far what was copied is from what a prefill of the whole prompt computes. It needs memory for the prompt's
// pages a second time.
func (a *assembly) compare(model *llama.Model, worker *llama.Worker) ([]float32, error) {
	h, own := model.Shape(), []*compute.Probe(nil)
	full, err := a.observed(model, worker)
	defer model.FreePages(full.pages)
	if err != nil {
		return nil, err
	}
	value := make([]float32, a.tail)
	if a.reuse.Selector != CacheBlend {
		own = model.NewProbes(a.tail)
		if _, err := worker.Forward(a.observers(a.pages, own)); err != nil {
			return nil, err
		}
	}
	before, err := floats(model, a.pages)
	if err != nil {
		return nil, err
	}
	after, err := floats(model, full.pages)
	if err != nil {
		return nil, err
	}
	first, last := lowLayers-1, lowLayers
	if a.reuse.Selector == Ideal {
		first, last = 0, model.Layers
	}
	for layer := first; layer < last; layer++ {
		for head := range h.KV {
			for t := range a.tail {
				at := head*a.tail + t
				page, slot := t/llama.PageTokens, t%llama.PageTokens
				was := model.Page(before[page], layer).HeadValues(h, head, slot)
				is := model.Page(after[page], layer).HeadValues(h, head, slot)
				switch a.reuse.Selector {
				case CacheBlend:
					value[t] += squares(is, was, 1, 1)
				case KVShare:
					attention := own[0].Sums[at] + own[1].Sums[at]
					value[t] += attention * absolute(is, was)
				default:
					value[t] += float32(math.Sqrt(float64(squares(is, was, full.probes[layer].Sums[at], own[layer].Sums[at]))))
				}
			}
		}
	}
	return value, nil
}

// floats are what pages have.
func floats(model *llama.Model, pages []gpu.Page) ([][]float32, error) {
	all := make([][]float32, len(pages))
	for i, p := range pages {
		var err error
		if all[i], err = model.Floats(p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// truth is what a prefill of the whole prompt computes.
type truth struct {
	pages  []gpu.Page
	probes []*compute.Probe
}

// observed computes what the selector compares with. Its pages must be given back.
func (a *assembly) observed(model *llama.Model, worker *llama.Worker) (t truth, err error) {
	if t.pages, err = model.NewPages(len(a.pages)); err != nil {
		return t, err
	}
	const step = 128
	for from := 0; from < a.tail; from += step {
		span := []llama.Span{{Tokens: a.tokens[from:min(from+step, a.tail)], Position: from, Pages: t.pages}}
		if a.reuse.Selector == Ideal {
			_, err = worker.Forward(span)
		} else {
			err = worker.KeysValues(span, lowLayers)
		}
		if err != nil {
			return t, err
		}
	}
	if a.reuse.Selector == Ideal {
		t.probes = model.NewProbes(a.tail)
		_, err = worker.Forward([]llama.Span{{Tokens: a.tokens[a.tail:a.prompt], Position: a.tail, Pages: t.pages, Probes: t.probes}})
	}
	return t, err
}

// observers are the spans of what is missing, and of the tail, which looks at everything.
func (a *assembly) observers(pages []gpu.Page, probes []*compute.Probe) (spans []llama.Span) {
	for _, i := range a.missing() {
		spans = append(spans, llama.Span{Tokens: a.tokens[i : i+1], Position: i, Pages: pages})
	}
	return append(spans, llama.Span{Tokens: a.tokens[a.tail:a.prompt], Position: a.tail, Pages: pages, Probes: probes})
}

// squares is the squared norm of wx·x − wy·y.
func squares(x, y []float32, wx, wy float32) (sum float32) {
	for i := range x {
		d := wx*x[i] - wy*y[i]
		sum += d * d
	}
	return sum
}

// absolute is the sum of the absolute differences.
func absolute(x, y []float32) (sum float32) {
	for i := range x {
		sum += float32(math.Abs(float64(x[i] - y[i])))
	}
	return sum
}
