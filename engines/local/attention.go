package local

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// Attention is how much each token of a prompt's blocks is attended to, in the order of the prompt: the sums over rows, heads and layers of
// attention weights under a full prefill.
type Attention struct {
	Question []float32 // by what stands behind the last block
	Answer   []float32 // by the answer's tokens
}

// Overlap is |S ∩ G| / |G| (ProphetKV, §3): G is the share of the tokens that the answer attends to most, S as many that the
// question attends to most. Of equal tokens the first counts as more. Tokens drawn at random overlap by the share. It is 1 if
// the share is of no token.
func (a Attention) Overlap(share float64) float64 {
	n := min(len(a.Answer), int(math.Ceil(share*float64(len(a.Answer))-1e-9)))
	if n <= 0 {
		return 1
	}
	s, g := compute.Largest(a.Question, n), compute.Largest(a.Answer, n)
	both := 0
	for _, i := range s {
		if slices.Contains(g, i) {
			both++
		}
	}
	return float64(both) / float64(n)
}

// Attention computes a chat with its answer, beside all other requests and in memory of its own, and looks at what the question and the
// answer attend to. The chat must have blocks, and something behind them. Errors are those of Generate.
func (e *Engine) Attention(ctx context.Context, req engines.Request, answer string) (Attention, error) {
	id := e.name(req.ID)
	attention, err := e.attention(ctx, req, answer)
	if err != nil {
		return attention, e.failed(id, err)
	}
	return attention, nil
}

func (e *Engine) attention(ctx context.Context, req engines.Request, answer string) (a Attention, err error) {
	req.Extra = extraReuse(req.Extra)
	p, err := e.forced(req, answer, e.file.Tokenizer.Encode(answer, false))
	if err != nil {
		return a, err
	}
	if p.request.Reuse == nil {
		return a, refused("blocks %v: want some of at least %d tokens, and text behind the last", req.Blocks, minBlock)
	}
	blocks, prompt := p.request.Reuse.Blocks, len(p.request.Prompt)
	tail := blocks[len(blocks)-1].To
	tokens := append(slices.Clone(p.request.Prompt), p.request.Forced...)
	pages, err := e.model.NewPages((len(tokens) + llama.PageTokens - 1) / llama.PageTokens)
	if err != nil {
		return a, err
	}
	defer e.model.FreePages(pages)
	worker, err := e.model.NewWorker(e.config.Threads)
	if err != nil {
		return a, err
	}
	defer worker.Close()
	question, answered := compute.NewProbe(e.model.Shape(), tail), compute.NewProbe(e.model.Shape(), tail)
	const step = DefaultStep // fixed, so that sums are the same bits with any settings
	for from := 0; from < len(tokens); {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		to, probe := min(from+step, tail), (*compute.Probe)(nil)
		switch {
		case from >= prompt:
			to, probe = min(from+step, len(tokens)), answered
		case from >= tail:
			to, probe = min(from+step, prompt), question
		}
		span := llama.Span{Tokens: tokens[from:to], Position: from, Pages: pages}
		if probe != nil {
			span.Probes = slices.Repeat([]*compute.Probe{probe}, e.model.Layers)
		}
		if _, err := worker.Forward([]llama.Span{span}); err != nil {
			return a, err
		}
		from = to
	}
	for _, b := range blocks {
		for i := b.From; i < b.To; i++ {
			a.Question, a.Answer = append(a.Question, over(question, i)), append(a.Answer, over(answered, i))
		}
	}
	return a, nil
}

// over adds up a token's heads.
func over(p *compute.Probe, token int) (sum float32) {
	for at := token; at < len(p.Sums); at += p.Tokens {
		sum += p.Sums[at]
	}
	return sum
}

// extraReuse asks for blocks to be found in the prompt, whatever the engine's own setting.
func extraReuse(extra map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(extra)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all["reuse"] = json.RawMessage(`"` + ReuseBlocks + `"`)
	return all
}
