package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
)

// benchLocalFlags are what the command line says.
type benchLocalFlags struct {
	model                 string
	prompts               []int
	threads, answer, runs int
	block                 int
	device                string
	deviceMemory          int64
}

func newBenchLocal() *cobra.Command {
	var f benchLocalFlags
	cmd := newCommand("local", "Measure the engine in this process: tokens a second, and memory",
		`Local computes prompts of given lengths from an empty cache and generates an answer to each, several times in turn, and
prints the best time of each in tokens a second, with the resident memory. No cache helps with the prompts.`, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", defaultModel, "GGUF `FILE`, or the name of a model that can be pulled")
	flags.IntVar(&f.threads, "threads", 1, "compute on `N` threads")
	registerDevice(flags, &f.device, &f.deviceMemory)
	flags.IntSliceVar(&f.prompts, "prompt", []int{512}, "lengths of the prompts in `TOKENS`, with commas between them")
	flags.IntVar(&f.answer, "answer", 64, "length of the answer in `TOKENS`")
	flags.IntVar(&f.runs, "runs", 3, "measure `N` times")
	flags.IntVar(&f.block, "block", 0,
		"measure instead how soon an answer begins to prompts made of blocks of `TOKENS` that were computed before; 0: do not")
	return cmd
}

func (f *benchLocalFlags) run(cmd *cobra.Command) (err error) {
	if len(f.prompts) == 0 {
		return errors.New("--prompt: want at least one")
	}
	err = checkLimits(limited{"threads", f.threads, 1}, limited{"prompt", slices.Min(f.prompts), 1}, limited{"answer", f.answer, 2},
		limited{"runs", f.runs, 1})
	if err = cmp.Or(err, checkDevice(f.device, f.deviceMemory)); err != nil {
		return err
	}
	path, err := modelFile(cmd.Context(), f.model, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	// A prompt is computed in one step, as elsewhere with a batch of its length.
	engine, err := local.Open(local.Config{
		Model: path, Threads: f.threads, Step: slices.Max(f.prompts),
		CacheBytes: 2 * local.DefaultCacheBytes, Device: f.device, DeviceBytes: f.deviceMemory,
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, engine.Close()) }()
	if f.block > 0 {
		return f.runBlocks(cmd, engine)
	}
	prefill, decode := make([]float64, len(f.prompts)), make([]float64, len(f.prompts))
	for range f.runs {
		for i, n := range f.prompts {
			engine.Clear()
			r, err := f.once(cmd.Context(), engine, n)
			if err != nil {
				return err
			}
			prefill[i] = max(prefill[i], float64(n)/r.TTFT.Seconds())
			decode[i] = max(decode[i], float64(f.answer-1)/(r.Total-r.TTFT).Seconds())
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintln(out, engine.Name())
	for _, w := range engine.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	for i, n := range f.prompts {
		fmt.Fprintf(out, "prefill of %d tokens: %.1f tokens/s\ndecode of %d tokens behind them: %.1f tokens/s\n", n, prefill[i], f.answer,
			decode[i])
	}
	if info.Mode().IsRegular() {
		fmt.Fprintf(out, "file: %.1f MB\n", figures.Megabytes(info.Size()))
	}
	if resident, _, err := figures.Memory(os.Getpid()); err == nil {
		fmt.Fprintf(out, "resident: %.1f MB, with %d blocks of keys and values\n", figures.Megabytes(resident), engine.Stats().CachedBlocks)
	}
	return nil
}

func (f *benchLocalFlags) runBlocks(cmd *cobra.Command, engine *local.Engine) error {
	b := &blockBench{engine: engine, out: cmd.OutOrStdout(), block: f.block, runs: f.runs}
	fmt.Fprintln(b.out, engine.Name())
	for _, n := range f.prompts {
		if err := b.run(cmd.Context(), n); err != nil {
			return err
		}
	}
	return nil
}

// once answers one prompt of n tokens from an empty cache.
func (f *benchLocalFlags) once(ctx context.Context, engine *local.Engine, n int) (engines.Response, error) {
	words := engine.Tokenize("The harbour master counts the ships that came in over night, one by one. ")
	prompt := make([]int32, n)
	for i := range prompt {
		prompt[i] = words[i%len(words)]
	}
	r, err := engine.GenerateTokens(ctx, engines.Request{
		MaxTokens: f.answer, Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")},
	}, prompt, nil)
	if err == nil && r.Usage.CachedTokens != 0 {
		err = fmt.Errorf("%d prompt tokens came from the cache", r.Usage.CachedTokens)
	}
	return r, err
}

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
	fmt.Fprintf(b.out, "%d tokens in blocks of %d, and a question of %d: %.2f s to the first token\n", length, b.block, benchQuestion,
		best[0].Seconds())
	for i, share := range shares[1:] {
		fmt.Fprintf(b.out, "  blocks computed before, %2.0f %% again: %.2f s, %.2f of it\n", 100*share, best[i+1].Seconds(),
			best[i+1].Seconds()/best[0].Seconds())
	}
	return nil
}

func (b *blockBench) ask(ctx context.Context, prompt []int32, blocks []engines.BlockSpan,
	extra map[string]json.RawMessage,
) (engines.Response, error) {
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
