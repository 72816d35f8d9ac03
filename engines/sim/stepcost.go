package sim

import "time"

// StepCost says how long a step of a [Server] takes, and how long a request needs to get into its queue. All
// fields are nanoseconds; fractions count.
//
//	step    = Step + Prefill × prompt tokens computed + PrefillContext × Σ tokens before each of these
//	               + Decode × sequences that decode   + DecodeContext  × Σ tokens before each of their tokens
//	arrival = Arrival + ArrivalToken × prompt tokens, cached or not: HTTP, template, tokeniser, and the way back
type StepCost struct {
	Step           float64 `json:"step_ns"`
	Prefill        float64 `json:"prefill_ns"`
	PrefillContext float64 `json:"prefill_context_ns"`
	Decode         float64 `json:"decode_ns"`
	DecodeContext  float64 `json:"decode_context_ns"`
	Arrival        float64 `json:"arrival_ns"`
	ArrivalToken   float64 `json:"arrival_token_ns"`
}

// Work is what one step computes, or several together.
type Work struct {
	Steps          int
	PrefillTokens  int
	PrefillContext int // Σ over these tokens of the tokens before each
	Decodes        int // sequences that decode one token, each time
	DecodeContext  int // Σ over these of the tokens before
}

// Duration returns how long the work takes.
func (c StepCost) Duration(w Work) time.Duration {
	return time.Duration(c.Step*float64(w.Steps) + c.Prefill*float64(w.PrefillTokens) + c.PrefillContext*float64(w.PrefillContext) +
		c.Decode*float64(w.Decodes) + c.DecodeContext*float64(w.DecodeContext))
}

// Delay returns how long a request of so many prompt tokens is on its way to and from the queue.
func (c StepCost) Delay(promptTokens int) time.Duration {
	return time.Duration(c.Arrival + c.ArrivalToken*float64(promptTokens))
}

// Add adds further work.
func (w *Work) Add(x Work) {
	w.Steps += x.Steps
	w.PrefillTokens += x.PrefillTokens
	w.PrefillContext += x.PrefillContext
	w.Decodes += x.Decodes
	w.DecodeContext += x.DecodeContext
}

// prefill adds a chunk of n tokens behind so many others.
func (w *Work) prefill(before, n int) {
	w.PrefillTokens += n
	w.PrefillContext += n*before + n*(n-1)/2
}

// decode adds one token behind so many others.
func (w *Work) decode(before int) {
	w.Decodes++
	w.DecodeContext += before
}

// PrefillWork returns the work of computing a prompt alone, of which cached tokens are read from the cache, in steps of
// at most batchTokens.
func PrefillWork(promptTokens, cached, batchTokens int) Work {
	var w Work
	for at := cached; at < promptTokens; w.Steps++ {
		n := min(batchTokens, promptTokens-at)
		w.prefill(at, n)
		at += n
	}
	return w
}
