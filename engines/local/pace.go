package local

import "time"

// pace estimates how much of a compression is done, and measures what computing its corpus takes.
type pace struct {
	finished, total float64       // of the parts, in tokens at the beginning of a text
	current         float64       // of the part that is computed now
	prefill         time.Duration // of parts
	weight          float64       // of what was computed in it
}

// weigh is what computing a run of tokens at a position costs: the more there is to attend to, the more. far is how many tokens' attention
// cost as much as all else (SmolLM2: 554 tokens a second at 512, 176 at 4,096).
func weigh(tokens, position int) float64 {
	const far = 1500
	return float64(tokens) * (1 + (float64(position)+float64(tokens)/2)/far)
}

// alone is how much more a token costs that is computed by itself: the weights are read for it.
const alone = 6

// behind is what is read, or written, behind a part.
func (x *compressor) behind(p *corpusPart) float64 {
	n, prompt := p.behind+len(p.tokens), len(x.texts.Prompt)
	switch {
	case p.whole:
		return 0
	case x.Scorer == "kvzip":
		return weigh(len(p.tokens), n)
	case x.Scorer == "task":
		return weigh(prompt, n)
	case x.header.Notes == "given":
		return weigh(prompt+len(x.texts.Notes), n)
	case x.header.Notes == "model":
		return weigh(2*prompt+(1+alone)*x.MaxNotes, n)
	}
	return 0
}

// plan weighs the parts to compute.
func (x *compressor) plan(parts []*corpusPart) {
	for _, p := range parts {
		if p.cost = weigh(len(p.tokens), p.behind) + x.behind(p); p.whole || x.old[p.key] == nil {
			x.pace.total += p.cost
		}
	}
}

// progress takes what was computed.
func (x *compressor) progress(tokens, position int) {
	x.result.Computed += tokens
	cost := weigh(tokens, position)
	if tokens == 1 {
		cost *= alone
	}
	x.pace.current += cost
	x.report()
}

// end notes that a part is computed, however much it was.
func (x *compressor) end(p *corpusPart) {
	x.pace.finished += p.cost
	x.pace.current = 0
	x.report()
}

func (x *compressor) report() {
	if x.Progress != nil {
		x.Progress(min(1, (x.pace.finished+x.pace.current)/x.pace.total))
	}
}

// measure has the pace of computing a part.
func (x *compressor) measure(p *corpusPart, took time.Duration) {
	x.pace.prefill += took
	x.pace.weight += weigh(len(p.tokens), p.behind)
}

// once is what computing all tokens once would take.
func (x *compressor) once() time.Duration {
	if x.pace.weight == 0 {
		return 0
	}
	return time.Duration(float64(x.pace.prefill) * weigh(x.header.Tokens, 0) / x.pace.weight)
}
