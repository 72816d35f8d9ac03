package local

import (
	"math"
	"slices"
)

// penalties change the logits of one answer by the tokens in front of it: those of the prompt and those generated so far, as in Hugging
// Face transformers for models without an encoder (RepetitionPenaltyLogitsProcessor, NoRepeatNGramLogitsProcessor in
// generation/logits_process.py). The zero value changes nothing.
type penalties struct {
	repetition float32 // 0: off
	ngram      int     // 0: off
	tokens     []int32 // prompt and answer so far
	seen       map[int32]bool
}

// newPenalties checks the two options. nil, a penalty of 1 and n-grams of 0 tokens turn them off.
func newPenalties(repetition *float64, ngram *int, prompt []int32) (*penalties, error) {
	p := &penalties{}
	if repetition != nil {
		if !(*repetition >= 0.01 && *repetition <= 100) {
			return nil, refused("repetition_penalty %g: want 0.01 to 100", *repetition)
		}
		if *repetition != 1 {
			p.repetition = float32(*repetition)
		}
	}
	if ngram != nil {
		if *ngram < 0 {
			return nil, refused("no_repeat_ngram_size %d: want 0 or more", *ngram)
		}
		p.ngram = *ngram
	}
	if p.repetition == 0 && p.ngram == 0 {
		return p, nil
	}
	p.tokens, p.seen = slices.Clone(prompt), make(map[int32]bool, len(prompt))
	for _, t := range prompt {
		p.seen[t] = true
	}
	return p, nil
}

// wrap returns a sampler that draws from changed logits. It must be called for each token of the answer once, in order.
func (p *penalties) wrap(sample func([]float32) int32) func([]float32) int32 {
	if p.tokens == nil {
		return sample
	}
	return func(logits []float32) int32 {
		p.apply(logits)
		token := sample(logits)
		p.tokens = append(p.tokens, token)
		p.seen[token] = true
		return token
	}
}

// apply changes logits: the repetition penalty first, then n-grams, which is the order of transformers' generate.
func (p *penalties) apply(logits []float32) {
	if p.repetition != 0 {
		for t := range p.seen { // each token once, however often it occurs
			if logits[t] < 0 {
				logits[t] *= p.repetition
			} else {
				logits[t] /= p.repetition
			}
		}
	}
	if p.ngram == 0 || len(p.tokens)+1 < p.ngram {
		return
	}
	begun := p.tokens[len(p.tokens)-(p.ngram-1):] // all but the last token of the n-gram to come
	for i := 0; i+p.ngram <= len(p.tokens); i++ {
		if slices.Equal(p.tokens[i:i+len(begun)], begun) {
			logits[p.tokens[i+len(begun)]] = float32(math.Inf(-1))
		}
	}
}
