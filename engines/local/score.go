package local

import (
	"context"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// Score is how probable an answer is.
type Score struct {
	Tokens   []int32   // of the answer
	LogProbs []float64 // natural logarithm of each one's probability, given the prompt and those before it
	Cached   int       // tokens of the prompt that were in the cache
}

// NLL is the mean negative logarithm of the probability of a token, in nats.
func (s Score) NLL() float64 {
	sum := 0.0
	for _, p := range s.LogProbs {
		sum -= p
	}
	return sum / float64(len(s.LogProbs))
}

// Score computes how probable an answer to a chat is, without generating anything. each, which may be nil, is called with the logits
// before each token of the answer, never after Score has returned; it must not block, nor keep them. The request counts for the cache,
// and is reported to subscribers, like one that has got this answer. What bounds or chooses an answer is not used: req.MaxTokens,
// temperature, stop and the like. Errors are those of Generate.
func (e *Engine) Score(ctx context.Context, req engines.Request, answer string, each func(i int, logits []float32)) (Score, error) {
	id := e.name(req.ID)
	tokens := e.file.Tokenizer.Encode(answer, false)
	p, err := e.forced(req, answer, tokens)
	if err != nil {
		return Score{}, e.failed(id, err)
	}
	if err := ctx.Err(); err != nil {
		return Score{}, e.failed(id, err)
	}
	s := &scoring{score: Score{Tokens: tokens}, each: each}
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	p.request.OnLogits = s.take
	length := p.length()
	var served *contextpilot.Event
	end := e.begin(id, p.request)
	defer func() { end(served) }()
	e.warm(ctx, &p.request)
	run := e.runner.Submit(p.request)
	_, _, err = run.Next(ctx)
	run.Wait() // each may be running
	if s.panicked != nil {
		panic(s.panicked)
	}
	if err != nil {
		return Score{}, e.failed(id, err)
	}
	s.score.Cached = run.Result().Cached
	served = &contextpilot.Event{
		Kind: contextpilot.Served, Request: id, Tokens: s.score.Cached, Output: len(tokens), CachedKnown: true, Prompt: length,
	}
	return s.score, nil
}

// forced checks a request whose answer is given.
func (e *Engine) forced(req engines.Request, answer string, forced []int32) (prompt, error) {
	tokens, blocks, err := e.TokenizeBlocks(req)
	if err != nil {
		return prompt{}, err
	}
	if len(forced) == 0 {
		return prompt{}, refused("answer %q: no tokens", answer)
	}
	p, err := e.prepare(req, tokens, blocks)
	if err != nil {
		return p, err
	}
	if length := p.length(); length+len(forced) > e.room(p.context) {
		return p, refused("prompt of %d tokens and answer of %d: together %d have room", length, len(forced), e.room(p.context))
	}
	p.request.Forced = forced
	return p, nil
}

// scoring is one call of Score.
type scoring struct {
	score    Score
	each     func(i int, logits []float32)
	cancel   context.CancelFunc
	panicked any // what each panicked with; the panic goes on in Score's goroutine
}

// take takes the logits before a token of the answer, or those after the last.
func (s *scoring) take(logits []float32) {
	i := len(s.score.LogProbs)
	if i == len(s.score.Tokens) || s.panicked != nil {
		return
	}
	s.score.LogProbs = append(s.score.LogProbs, LogProb(logits, s.score.Tokens[i]))
	if s.each == nil {
		return
	}
	defer func() {
		if s.panicked = recover(); s.panicked != nil {
			s.cancel()
		}
	}()
	s.each(i, logits)
}

// LogProb is the natural logarithm of a token's probability by its logits. It panics if there is no such token.
func LogProb(logits []float32, token int32) float64 {
	if int(token) >= len(logits) || token < 0 {
		panic(fmt.Sprintf("local: token %d of %d", token, len(logits)))
	}
	return float64(logits[token]) - logSum(logits)
}

// logSum is the logarithm of the sum of the exponentials of logits.
func logSum(logits []float32) float64 {
	most := math.Inf(-1)
	for _, v := range logits {
		most = max(most, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum)
}

// LogProbs are the natural logarithms of the probabilities of all tokens by their logits.
func LogProbs(logits []float32) []float32 {
	sum := logSum(logits)
	all := make([]float32, len(logits))
	for i, v := range logits {
		all[i] = float32(float64(v) - sum)
	}
	return all
}
