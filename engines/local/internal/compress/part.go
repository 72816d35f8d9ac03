package compress

import (
	"context"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// DefaultStep is how many tokens are computed at a time.
const DefaultStep = 512

// Model computes parts. It is for one goroutine.
type Model struct {
	*llama.Model
	// Step is how many tokens are computed at a time, a multiple of 16. It changes no bit of any result.
	Step int
	// Progress is called after each step with the tokens and the position of the first of them; nil: it is not.
	Progress func(tokens, position int)

	worker *llama.Worker
}

// New returns a Model that computes with threads. It must be closed.
func New(model *llama.Model, threads int) (*Model, error) {
	worker, err := model.NewWorker(threads)
	if err != nil {
		return nil, err
	}
	return &Model{Model: model, Step: DefaultStep, worker: worker}, nil
}

// Close gives the memory of the computation back. Parts must be closed before.
func (m *Model) Close() { m.worker.Close() }

// Texts are what a scorer may let the model read behind a part.
type Texts struct {
	Prompt []int32 // asks for notes on the task
	Notes  []int32 // the answer to it
	Repeat []int32 // asks to repeat the text
}

// Part is a number of tokens of a corpus that were computed behind its head. It must be closed.
type Part struct {
	Texts
	model  *Model
	tokens []int32 // with the head
	head   int
	pages  []gpu.Page
	shared int // of them, which are the head's
}

// Head computes what stands in front of all parts: whole pages.
func (m *Model) Head(ctx context.Context, tokens []int32) (*Part, error) {
	return m.Part(ctx, nil, tokens, Texts{})
}

// Part computes tokens behind a head, nil: behind nothing. The head is not changed.
func (m *Model) Part(ctx context.Context, head *Part, tokens []int32, texts Texts) (*Part, error) {
	p := &Part{model: m, Texts: texts}
	if head != nil {
		p.head = len(head.tokens)
		p.tokens = append(p.tokens, head.tokens...)
		p.shared = p.head / llama.PageTokens
		p.pages = append(p.pages, head.pages[:p.shared]...)
	}
	p.tokens = append(p.tokens, tokens...)
	if _, err := p.forward(ctx, tokens, p.head, nil, 0); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close gives the part's pages back. What was kept of it stays.
func (p *Part) Close() {
	p.model.FreePages(p.pages[p.shared:])
	p.pages = p.pages[:p.shared]
}

// Tokens returns how many tokens the part has, those of the head included.
func (p *Part) Tokens() int { return len(p.tokens) }

// forward computes tokens at a position. It returns the logits of the last ones.
func (p *Part) forward(ctx context.Context, tokens []int32, position int, probes []*compute.Probe, logits int) (last []float32, err error) {
	if missing := (position+len(tokens)+llama.PageTokens-1)/llama.PageTokens - len(p.pages); missing > 0 {
		pages, err := p.model.NewPages(missing)
		if err != nil {
			return nil, err
		}
		p.pages = append(p.pages, pages...)
	}
	for at := 0; at < len(tokens); at += p.model.Step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(p.model.Step, len(tokens)-at)
		span := llama.Span{Tokens: tokens[at : at+n], Position: position + at, Pages: p.pages, Probes: probes}
		if at+n == len(tokens) {
			span.Logits = logits
		}
		if last, err = p.model.worker.Forward([]llama.Span{span}); err != nil {
			return nil, err
		}
		if p.model.Progress != nil {
			p.model.Progress(n, position+at)
		}
	}
	return last, nil
}

// attended computes tokens at a position, and returns for each layer what they attended to of the first n tokens, each as one
// form of probe. Behind the part they are not part of it.
func (p *Part) attended(ctx context.Context, tokens []int32, position, n int, form compute.Probe) ([]*compute.Probe, error) {
	probes := p.model.NewProbes(n)
	for _, probe := range probes {
		probe.Rows, probe.Within, probe.Most = form.Rows, form.Within, form.Most
	}
	_, err := p.forward(ctx, tokens, position, probes, 0)
	return probes, err
}

// Continue computes tokens behind the part and then those that next chooses by their logits, until it returns a negative one. It
// returns what was chosen, which is not part of it.
func (p *Part) Continue(ctx context.Context, tokens []int32, next func(logits []float32) int32) (chosen []int32, err error) {
	position := len(p.tokens)
	for {
		logits, err := p.forward(ctx, tokens, position, nil, 1)
		if err != nil {
			return nil, err
		}
		position += len(tokens)
		token := next(logits)
		if token < 0 {
			return chosen, nil
		}
		chosen = append(chosen, token)
		tokens = chosen[len(chosen)-1:]
	}
}
