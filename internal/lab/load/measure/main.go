// Command measure times a real engine that does nothing else, and fits the constants of the simulator's step cost
// to what it measured.
//
//	go run ./internal/lab/load/measure -engine URL -model M -out samples.jsonl      measure, then fit
//	go run ./internal/lab/load/measure -fit samples.jsonl -batch-tokens 2048        fit what was measured before
//
// The engine must report cached tokens and take ignore_eos, as vLLM does. Prompts are made-up words.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
	"github.com/ragpilot/ragpilot/internal/lab/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	url := flags.String("engine", "", "base `URL` of the engine")
	model := flags.String("model", "", "`MODEL` to ask for")
	file := flags.String("out", "", "`FILE` for the samples, JSON lines")
	fit := flags.String("fit", "", "fit the samples of this `FILE` and measure nothing")
	batch := flags.Int("batch-tokens", 2048, "`TOKENS` that a step of the engine computes at most")
	repeat := flags.Int("repeat", 7, "`TIMES` that each case is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var samples []load.Sample
	if *fit == "" {
		engine, err := openai.New(openai.Config{
			BaseURL: *url, Model: *model, Retries: -1,
			Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")},
		})
		if err != nil {
			return err
		}
		defer engine.Close()
		if samples, err = measure(ctx, engine, *repeat); err != nil {
			return err
		}
		if err := write(*file, samples); err != nil {
			return err
		}
	} else {
		var err error
		if samples, err = load.ReadSamples(*fit); err != nil {
			return err
		}
	}
	cost, residuals, err := load.Fit(samples, *batch)
	if err != nil {
		return err
	}
	for _, r := range residuals {
		fmt.Fprintf(out, "%-14s %3d samples %9.2f ms measured %9.2f ms fitted %+6.1f %%\n", r.Case, r.Samples, r.Measured, r.Fitted,
			100*r.Relative())
	}
	return json.NewEncoder(out).Encode(cost)
}

func write(path string, samples []load.Sample) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(jsonlines.Write(f, samples), f.Close())
}

// meter sends prompts and times them.
type meter struct {
	engine engines.Engine
	words  *rand.Rand
}

func measure(ctx context.Context, engine engines.Engine, repeat int) ([]load.Sample, error) {
	m := meter{engine: engine, words: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	for range 3 { // warm up
		if _, err := m.alone(ctx, "", m.text(500)); err != nil {
			return nil, err
		}
	}
	var all []load.Sample
	add := func(s load.Sample, err error) error {
		all = append(all, s)
		return err
	}
	// The repetitions are the outer loop, so that what else the machine does meets all cases alike.
	for range repeat {
		for _, n := range []int{50, 200, 500, 1000, 1500, 2500, 4000, 6000} {
			text := m.text(n)
			if err := add(m.alone(ctx, fmt.Sprintf("cold-%d", n), text)); err != nil {
				return nil, err
			}
			if err := add(m.alone(ctx, fmt.Sprintf("again-%d", n), text)); err != nil {
				return nil, err
			}
			half := text[:strings.LastIndexByte(text[:len(text)/2], ' ')]
			if err := add(m.alone(ctx, fmt.Sprintf("half-%d", n), half+" "+m.text(n/2))); err != nil {
				return nil, err
			}
		}
		for _, n := range []int{50, 1000, 3000} {
			for _, k := range []int{1, 2, 4, 8} {
				if err := add(m.together(ctx, fmt.Sprintf("decode-%dx%d", k, n), k, n)); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// text makes n random words.
func (m *meter) text(n int) string {
	const syllables = "bacedifoguhajekilomunaperosutavewixoyuza"
	var b strings.Builder
	for range n {
		b.WriteByte(' ')
		for range 2 {
			i := 2 * m.words.IntN(len(syllables)/2)
			b.WriteString(syllables[i : i+2])
		}
	}
	return b.String()
}

func (m *meter) ask(ctx context.Context, text string, output int) (engines.Response, error) {
	return m.engine.Generate(ctx, engines.Request{
		Messages: []engines.Message{{Role: engines.User, Content: text}}, MaxTokens: output,
	}, nil)
}

// alone returns the time to the first token. As the first tokens of a random model may be no text yet, several are asked
// for; the median of a case is not moved by the few that come late.
func (m *meter) alone(ctx context.Context, name, text string) (load.Sample, error) {
	r, err := m.ask(ctx, text, 8)
	if err == nil && !r.Usage.CachedKnown {
		err = errors.New("the engine does not report cached tokens")
	}
	return load.Sample{
		Case: name, Requests: 1, Prompt: r.Usage.PromptTokens, Cached: r.Usage.CachedTokens, Output: r.Usage.OutputTokens,
		Millis: figures.Millis(r.TTFT),
	}, err
}

// together returns the time between two tokens while k requests decode, whose prompts are in the cache.
func (m *meter) together(ctx context.Context, name string, k, n int) (load.Sample, error) {
	const output = 48
	texts := make([]string, k)
	for i := range texts {
		texts[i] = m.text(n)
		if _, err := m.ask(ctx, texts[i], 1); err != nil {
			return load.Sample{}, err
		}
	}
	responses := make([]engines.Response, k)
	var group errgroup.Group
	for i, text := range texts {
		group.Go(func() (err error) {
			responses[i], err = m.ask(ctx, text, output)
			return err
		})
	}
	failed := group.Wait()
	s := load.Sample{Case: name, Requests: k, Output: output}
	for _, r := range responses {
		s.Prompt += r.Usage.PromptTokens / k
		s.Cached += r.Usage.CachedTokens / k
		s.Millis += figures.Millis(r.Total-r.TTFT) / float64((r.Usage.OutputTokens-1)*k)
	}
	return s, failed
}
