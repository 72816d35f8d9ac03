package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

type replayFlags struct {
	traceFlags
	engineFlags
	load          loadFlags
	policies      []string
	offline, json bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := newCommand("replay (--trace T --blocks B --policy P[,P…] | --workload NAME)",
		"Run a trace through an engine, policies side by side",
		`Replay plans a trace and sends it, one request at a time, to the simulator or to a real engine, once for each
policy, and compares what was read from the prefix cache. The simulator keeps a real block-hash prefix cache;
its times are a model. Every policy starts with an empty cache: a fresh simulator, or a first prompt line of
its own on a real engine. Later turns resend the recorded answers.

With --arrivals, conversations begin by a clock or by a number of users and wait for each other: in virtual time
on the simulator, in real time on a real engine. Reported are times to the first and the last token, output
tokens per second and hit ratios, and with --find-rate the rate that each policy sustains. With --tiers the
simulator's cache goes on in its host's memory, and --order says which waiting requests it admits first.`, func(cmd *cobra.Command) error {
			arrivals, err := f.load.check(cmd.Flags())
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), arrivals)
		})
	flags := cmd.Flags()
	f.traceFlags.register(flags)
	f.engineFlags.register(flags, 1)
	f.load.register(flags)
	flags.StringSliceVar(&f.policies, "policy", []string{"retrieval", contextpilot.DefaultPolicy},
		fmt.Sprintf("`POLICIES` to compare: %v", contextpilot.PolicyNames()))
	flags.BoolVar(&f.offline, "offline", false, "plan all requests together")
	flags.BoolVar(&f.json, "json", false, "one JSON line per policy instead of a table")
	flags.StringVar(&f.capacity, "capacity", "unlimited",
		"simulator's cache: `TOKENS`, or a share of the trace such as 20%; unlimited: what the engine model says, if it does")
	return cmd
}

func (f *replayFlags) run(ctx context.Context, out io.Writer, arrivals []load.Arrivals) error {
	if f.load.tiers.workload != "" {
		return f.runLoad(ctx, out, load.Job{}, arrivals)
	}
	joined := strings.Join(f.policies, ",")
	set, err := f.settings(joined)
	if err != nil {
		return err
	}
	if !f.flags.Changed("policy") && set.Policy != joined {
		f.policies = []string{"retrieval", set.Policy} // the profile's
	}
	for _, p := range f.policies {
		if _, err := contextpilot.NewPolicy(p); err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
	}
	trc, blocks, err := trace.Load(f.trace, f.blocks)
	if err != nil {
		return err
	}
	cut(trc, set.K)
	if len(arrivals) > 0 {
		return f.runLoad(ctx, out, load.Job{Settings: set, Trace: trc, Blocks: blocks}, arrivals)
	}
	capacity, err := trace.CapacityTokens(f.capacity, trc, blocks, set.History)
	if err != nil {
		return fmt.Errorf("--capacity: %w", err)
	}
	var results []replay.Result
	var engine string
	for _, policy := range f.policies {
		set.Policy = policy
		job := replay.Job{Settings: set, Offline: f.offline, Model: f.model}
		if job.Engine, err = f.newEngine(trc, capacity); err != nil {
			return err
		}
		if job.Exact = f.simulated(); !job.Exact {
			job.MaxTokens = f.maxTokens
			job.Salt = "Run " + nonce() + "."
		}
		res, err := replay.Run(ctx, job, trc, blocks)
		if err != nil {
			return err
		}
		engine = job.Engine.Name()
		if !f.json {
			results = append(results, res)
		} else if err := printReplayJSON(out, engine, res); err != nil {
			return err
		}
	}
	if f.json {
		return nil
	}
	return printReplays(out, engine, results)
}

func (f *replayFlags) newEngine(trc []trace.Request, capacity int) (engines.Engine, error) {
	if !f.simulated() {
		return f.open()
	}
	answers := make(map[string]string, len(trc))
	for _, q := range trc {
		answers[replay.RequestID(q)] = trace.Answer(q)
	}
	return sim.New(sim.Options{
		CapacityTokens: capacity,
		Reply:          func(req engines.Request) string { return answers[req.ID] },
	}), nil
}

func cut(trc []trace.Request, k int) {
	for i := range trc {
		trc[i] = trc[i].First(k)
	}
}

func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func printReplayJSON(out io.Writer, engine string, r replay.Result) error {
	return json.NewEncoder(out).Encode(map[string]any{
		"engine": engine, "policy": r.Policy, "requests": r.Requests, "prompt_tokens": r.PromptTokens,
		"cached_tokens": r.CachedTokens, "cached_known": r.CachedKnown, "computed_tokens": r.Computed(),
		"hit_ratio": r.HitRatio(), "doc_saved_ratio": r.DocSaved(), "doc_saved_known": r.DocTokens > 0,
		"ttft_p50_ms": figures.Millis(r.Quantile(0.5)), "ttft_p95_ms": figures.Millis(r.Quantile(0.95)),
	})
}

func printReplays(out io.Writer, engine string, results []replay.Result) error {
	w := figures.Table(out)
	fmt.Fprintf(w, "engine: %s\n", engine)
	fmt.Fprintln(w, figures.Row("policy", "hit ratio", "doc saved", "computed tokens", "TTFT p50 ms", "TTFT p95 ms"))
	for _, r := range results {
		hit, saved, computed := "?", "?", "?"
		if r.CachedKnown {
			hit, computed = fmt.Sprintf("%.4f", r.HitRatio()), fmt.Sprint(r.Computed())
			if r.DocTokens > 0 {
				saved = fmt.Sprintf("%.4f", r.DocSaved())
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\t%.1f\t\n", r.Policy, hit, saved, computed, figures.Millis(r.Quantile(0.5)),
			figures.Millis(r.Quantile(0.95)))
	}
	return w.Flush()
}
