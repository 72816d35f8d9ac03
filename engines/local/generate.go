package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
)

// Generate implements [engines.Engine]. Of Request.Extra it understands temperature, top_p, seed, stop (a text or several),
// max_tokens and max_completion_tokens, ignore_eos and cache_salt, with their usual meaning, and repetition_penalty (0.01 to
// 100; 1, the default, is off) and no_repeat_ngram_size (in tokens; 0, the default, is off), with the meaning of Hugging Face
// transformers: the prompt's tokens count as repeated, too. reuse, recompute and selector override the settings of the same
// names in [Config]. context names one of [Config].Contexts, which stands in front of the chat as its first system prompt: its
// slots count as tokens of the prompt, and as cached; penalties do not see them; blocks behind it are not reused;
// [engines.Response.Context] says how the answer fits it. Others are ignored. Without a temperature, or with 0, answers are
// greedy. Usage counts the token that ends an answer, as vLLM does, though it is no text.
//
// Errors wrap [engines.ErrRefused] if the request is wrong (the message names the field and the value), [engines.ErrInterrupted] after
// the first piece, [ErrClosed], or ctx's error.
func (e *Engine) Generate(ctx context.Context, req engines.Request, onText func(piece string) error) (engines.Response, error) {
	start := e.config.Now()
	req.ID = e.name(req.ID)
	tokens, blocks, err := e.TokenizeBlocks(req)
	if err != nil {
		return engines.Response{ID: req.ID}, e.failed(req.ID, err)
	}
	req.Blocks = blocks
	return e.generate(ctx, start, req, tokens, e.file.Tokenizer.Stream(false), onText)
}

// GenerateTokens continues a text that is given in tokens, without a chat template. req.Messages is not used, and
// req.Blocks counts tokens of the prompt: see TokenizeBlocks.
func (e *Engine) GenerateTokens(
	ctx context.Context, req engines.Request, prompt []int32, onText func(piece string) error,
) (engines.Response, error) {
	start := e.config.Now()
	req.ID = e.name(req.ID)
	return e.generate(ctx, start, req, prompt, e.file.Tokenizer.Continue(), onText)
}

// Check returns the error that GenerateTokens would refuse a request with, nil if it would not. Nothing is computed.
func (e *Engine) Check(req engines.Request, prompt []int32) error {
	p, err := e.prepare(req, prompt, req.Blocks)
	if err == nil {
		_, err = e.limit(req, p)
	}
	if err != nil {
		return e.failed(e.name(req.ID), err)
	}
	return nil
}

func (e *Engine) generate(
	ctx context.Context, start time.Time, req engines.Request, tokens []int32, stream *bpe.Stream, onText func(piece string) error,
) (engines.Response, error) {
	response := engines.Response{ID: req.ID}
	p, err := e.prepare(req, tokens, req.Blocks)
	if err == nil {
		p.request.Max, err = e.limit(req, p)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return response, e.failed(req.ID, err)
	}
	a := &answer{
		now: e.config.Now, stream: stream, cutter: cutter{stops: p.options.Stop}, onText: onText, start: start,
	}
	if err := e.run(ctx, p, a, &response); err != nil {
		return response, e.failed(req.ID, err)
	}
	return response, nil
}

// run generates an answer and writes what it is to response.
func (e *Engine) run(ctx context.Context, p prompt, a *answer, response *engines.Response) error {
	length := p.length()
	var served *contextpilot.Event
	end := e.begin(response.ID, p.request)
	defer func() { end(served) }() // also if onText panics
	e.warm(ctx, &p.request)
	p.context.watch(e.model, &p.request)
	run := e.runner.Submit(p.request)
	defer run.Cancel(context.Canceled)
	stopped, err := a.follow(ctx, run)
	result := run.Result()
	if err == nil && !stopped && result.Finish == "stop" {
		a.output++ // the token that ends the answer, as vLLM counts it
	}
	response.Text, response.Finish = a.text.String(), result.Finish
	response.TTFT, response.Total = a.first, a.now().Sub(a.start)
	response.Usage = engines.Usage{PromptTokens: length, OutputTokens: a.output, CachedTokens: result.Cached, CachedKnown: true}
	if err != nil {
		response.Finish = ""
		if a.first > 0 {
			err = errors.Join(engines.ErrInterrupted, err)
		}
		return err
	}
	if stopped {
		response.Finish = "stop"
	}
	if !stopped || a.output > runner.Watched { // otherwise a step may still write to Watch
		response.Context = p.context.fit(&p.request, result.Watched)
	}
	served = &contextpilot.Event{
		Kind: contextpilot.Served, Request: response.ID, Tokens: result.Cached, Output: a.output, CachedKnown: true, Prompt: length,
	}
	return nil
}

// follow gives out the text while it is generated. It reports true if one of the request's stop texts ended it.
func (a *answer) follow(ctx context.Context, run *runner.Run) (stopped bool, err error) {
	for {
		tokens, done, err := run.Next(ctx)
		if err != nil {
			return false, err
		}
		for _, t := range tokens {
			if err := ctx.Err(); err != nil { // onText may have cancelled
				return false, err
			}
			a.output++
			if stopped, err := a.add(a.stream.Next(t)); stopped || err != nil {
				return stopped, err
			}
		}
		if done {
			text, stopped := a.cutter.next(a.stream.End())
			if !stopped {
				text += a.cutter.rest()
			}
			return stopped, a.give(text)
		}
	}
}

// add gives out what is certain to be text of the answer. It reports true at a stop text, which is not given out.
func (a *answer) add(text string) (stopped bool, err error) {
	text, stopped = a.cutter.next(text)
	return stopped, a.give(text)
}

func (a *answer) give(text string) error {
	if text == "" {
		return nil
	}
	if a.first == 0 {
		a.first = max(a.now().Sub(a.start), 1)
	}
	a.text.WriteString(text)
	if a.onText == nil {
		return nil
	}
	if err := a.onText(text); err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	return nil
}
