package cachewatch

import "context"

// hold makes room for a body that is kept for the tokenizer.
func (fl *fleet) hold(n int) bool {
	f := fl.f
	f.holding.Lock()
	defer f.holding.Unlock()
	if held := f.now.Load().held(); held > 0 && held+int64(n) > f.opt.MaxBytes() {
		return false
	}
	fl.held.Add(int64(n))
	return true
}

// held is how many bytes of bodies are kept.
func (g *generation) held() (n int64) {
	if g == nil {
		return 0
	}
	for _, fl := range g.fleets {
		n += fl.held.Load()
	}
	return n
}

// enqueue has the tokens of a prompt asked for, once. A prompt that finds no place is not followed.
func (p *prompt) enqueue() {
	if !p.take() {
		return
	}
	select {
	case p.fleet.asking <- p:
	default:
		p.drop()
		p.fleet.f.counts.missing.Add(1)
	}
}

// take returns true to its first caller, which must enqueue or drop the body.
func (p *prompt) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.taken
	p.taken = true
	return first
}

// drop lets go of the body, which is the caller's.
func (p *prompt) drop() {
	p.fleet.held.Add(-int64(len(p.body)))
	p.body = nil
}

// tokenize asks engines for tokens until ctx ends.
func (fl *fleet) tokenize(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-fl.asking:
			tokens, ok := fl.ask(ctx, p.body)
			p.drop()
			if !ok {
				fl.f.counts.missing.Add(1)
				continue
			}
			p.learned(tokens)
		}
	}
}

// ask asks one engine after the other, until one answers.
func (fl *fleet) ask(ctx context.Context, body []byte) (tokens []uint32, ok bool) {
	for _, e := range fl.engines {
		if !e.features().tokenize {
			continue
		}
		tokens, err := e.server.tokenize(ctx, body)
		if err == nil {
			return tokens, true
		}
		e.failed(err)
	}
	return nil, false
}
