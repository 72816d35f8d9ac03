package evictions

import "context"

// enqueue has the tokens of a prompt asked for, once. A prompt that finds no place is not followed.
func (p *prompt) enqueue() {
	p.mu.Lock()
	body := p.body
	p.mu.Unlock()
	if body == nil {
		return
	}
	select {
	case p.fleet.asking <- p:
	default:
		p.take()
		p.fleet.f.counts.missing.Add(1)
	}
}

// take returns the body, the first time that it is asked for.
func (p *prompt) take() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	body := p.body
	p.body = nil
	return body
}

// tokenize asks engines for tokens until ctx ends.
func (fl *fleet) tokenize(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-fl.asking:
			if body := p.take(); body != nil {
				fl.ask(ctx, p, body)
			}
		}
	}
}

func (fl *fleet) ask(ctx context.Context, p *prompt, body []byte) {
	for _, e := range fl.engines {
		if !e.features().tokenize {
			continue
		}
		tokens, err := e.server.tokenize(ctx, body)
		if err == nil {
			p.learned(tokens)
			return
		}
		e.failed(err)
	}
	fl.f.counts.missing.Add(1)
}

// tokenizer tells whether there is an engine to ask.
func (fl *fleet) tokenizer() bool {
	for _, e := range fl.engines {
		if e.features().tokenize {
			return true
		}
	}
	return false
}

// way is how tokens of a model's prompts are to be had, and whether the model is an adapter. What is asked of an answer all
// engines must know, as any of them may serve it.
func (fl *fleet) way(model string) (w way, adapter bool) {
	w = answer
	for _, e := range fl.engines {
		f := e.features()
		if !f.answer {
			w = ask
		}
		adapter = adapter || f.adapters[model]
	}
	return w, adapter
}
