package compress

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// every returns scores that are the same in all layers and heads.
func every(p *Part, score func(token int) float32) Scores {
	h, n := p.model.Shape(), p.Tokens()
	layer := make([]float32, h.KV*n)
	for i := range n {
		s := score(i)
		for head := range h.KV {
			layer[head*n+i] = s
		}
	}
	all := slices.Repeat(Scores{layer}, p.model.Layers)
	all.force(h.KV, n, 0, sinks)
	return all
}

// random keeps any tokens, the same for all heads.
type random struct{ seed uint64 }

func (s random) Score(_ context.Context, p *Part) (Scores, error) {
	r := rand.New(rand.NewPCG(s.seed, uint64(p.Tokens())))
	return every(p, func(int) float32 { return r.Float32() }), nil
}

// recent keeps the first tokens and the last (StreamingLLM: G. Xiao et al.).
type recent struct{}

func (recent) Score(_ context.Context, p *Part) (Scores, error) {
	return every(p, func(token int) float32 { return float32(token) }), nil
}

// snapKV keeps the last window of tokens, and what they attend to, smoothed over neighbours (Y. Li et al.).
type snapKV struct{ window, kernel int }

func (s snapKV) Score(ctx context.Context, p *Part) (Scores, error) {
	h, n := p.model.Shape(), p.Tokens()
	from := max(n-s.window, p.head, 1)
	probes, err := p.attended(ctx, p.tokens[from:], from, from, compute.Probe{})
	if err != nil {
		return nil, err
	}
	all := make(Scores, len(probes))
	for layer, probe := range probes {
		all[layer] = make([]float32, h.KV*n)
		for head := range h.KV {
			smooth(all[layer][head*n:][:from], probe.Sums[head*from:][:from], s.kernel)
		}
	}
	all.force(h.KV, n, from, n)
	all.force(h.KV, n, 0, sinks)
	return all, nil
}

// smooth writes means of kernel neighbours.
func smooth(to, from []float32, kernel int) {
	for i := range to {
		sum := float32(0)
		for j := max(0, i-kernel/2); j <= min(len(from)-1, i+kernel/2); j++ {
			sum += from[j]
		}
		to[i] = sum / float32(kernel)
	}
}

// kvZip keeps what the model looks at when it repeats the text (J. Kim et al.): a token's score is the largest weight that it gets. It
// differs from the authors' form in that all heads keep equally many, and that the softmax has all that a row sees.
type kvZip struct{ chunk, overlap int }

func (s kvZip) Score(ctx context.Context, p *Part) (Scores, error) {
	h, n := p.model.Shape(), p.Tokens()
	all := make(Scores, p.model.Layers)
	for at := p.head; at < n; at += s.chunk {
		rows := append(slices.Clone(p.Repeat), p.tokens[max(p.head, at-s.overlap):min(n, at+s.chunk)]...)
		probes, err := p.attended(ctx, rows, n, n, compute.Probe{Most: true})
		if err != nil {
			return nil, err
		}
		for layer, probe := range probes {
			if all[layer] == nil {
				all[layer] = probe.Sums
				continue
			}
			for i, x := range probe.Sums {
				all[layer][i] = max(all[layer][i], x)
			}
		}
	}
	all.force(h.KV, n, 0, sinks)
	return all, nil
}
