package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
)

// blockBench measures the time to the first token of prompts that are made of blocks which the engine has computed before.
type blockBench struct {
	engine *local.Engine
	out    io.Writer
	block  int // tokens
	runs   int
}

// benchQuestion is how many tokens follow the blocks.
const benchQuestion = 17

// run prints, for one length and each share that is computed again, the time as a part of that of computing all, in the same run.
func (b *blockBench) run(ctx context.Context, length int) error {
	prompt, blocks := b.prompt(length)
	shares := []float64{1, 0.1, 0.2, 0.4}
	best := make([]time.Duration, len(shares))
	for range b.runs {
		for i, share := range shares {
			b.engine.Clear()
			extra := map[string]json.RawMessage{"ignore_eos": json.RawMessage("true"), "reuse": json.RawMessage(`"prefix"`)}
			if share < 1 {
				extra["reuse"], extra["recompute"] = json.RawMessage(`"blocks"`), json.RawMessage(fmt.Sprint(share))
				if _, err := b.ask(ctx, prompt, blocks, extra); err != nil { // computes the blocks
					return err
				}
			}
			r, err := b.ask(ctx, prompt, blocks, extra)
			if err != nil {
				return err
			}
			if best[i] == 0 || r.TTFT < best[i] {
				best[i] = r.TTFT
			}
		}
	}
	fmt.Fprintf(b.out, "%d tokens in blocks of %d, and a question of %d: %.2f s to the first token\n", length, b.block, benchQuestion, best[0].Seconds())
	for i, share := range shares[1:] {
		fmt.Fprintf(b.out, "  blocks computed before, %2.0f %% again: %.2f s, %.2f of it\n", 100*share, best[i+1].Seconds(), best[i+1].Seconds()/best[0].Seconds())
	}
	return nil
}

func (b *blockBench) ask(ctx context.Context, prompt []int32, blocks []engines.BlockSpan, extra map[string]json.RawMessage) (engines.Response, error) {
	return b.engine.GenerateTokens(ctx, engines.Request{MaxTokens: 1, Extra: extra, Blocks: blocks}, prompt, nil)
}

// prompt has blocks of different tokens.
func (b *blockBench) prompt(length int) (prompt []int32, blocks []engines.BlockSpan) {
	words := b.engine.Tokenize("The harbour master counts the ships that came in over night, one by one. ")
	for len(prompt) < length {
		from := len(prompt)
		for i := range min(b.block, length-from) {
			prompt = append(prompt, words[(i*(1+len(blocks))+len(blocks))%len(words)])
		}
		blocks = append(blocks, engines.BlockSpan{From: from, To: len(prompt)})
	}
	for i := range benchQuestion {
		prompt = append(prompt, words[i%len(words)])
	}
	return prompt, blocks
}
