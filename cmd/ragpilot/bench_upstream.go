package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// upstreamFlags are the flags of bench upstream.
type upstreamFlags struct {
	options                                upstream.Options
	listen, delay, reply, rule, ids, evict string
}

func newBenchUpstream() *cobra.Command {
	f := &upstreamFlags{}
	cmd := newCommand("upstream", "Serve the simulated engine over HTTP, to stand behind a sidecar",
		`Upstream is an OpenAI-compatible server without a model: made-up answers, and a real prefix cache that reports
cached tokens and, with --evict-url, what it loses. It runs until it is interrupted.`, f.run)
	flags, o := cmd.Flags(), &f.options
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8000", "`ADDRESS` to listen on; port 0 takes a free one, and the address is printed")
	flags.StringVar(&o.Model, "model", upstream.DefaultModel, "`MODEL` to be; requests may name any")
	flags.IntVar(&o.CapacityTokens, "capacity", 0, "size of the prefix cache in `TOKENS` (0: unlimited)")
	flags.IntVar(&o.BlockTokens, "block-tokens", sim.DefaultBlockTokens, "size of a cache block in `TOKENS`")
	flags.StringVar(&f.delay, "delay", "0s",
		"`TIME|sim`: the time to the first token, or by the simulator's cost model, which depends on what is cached")
	flags.DurationVar(&o.TokenDelay, "token-delay", 0, "`TIME` from one token to the next")
	flags.IntVar(&o.Tokens, "tokens", 0, "length of answers in `TOKENS` (0: as many as a request's max_tokens, or 16)")
	flags.StringVar(&f.reply, "reply", string(upstream.Numbered),
		fmt.Sprintf("`KIND` of answers: %v; numbered ones are what bench serve --open-streams checks, digest tells equal prompts from others",
			upstream.Replies()))
	flags.BoolVar(&o.Stub, "stub", false,
		"answer with a fixed word at once, without cache, delays or decoding: for measuring what a proxy adds")
	flags.StringVar(&f.evict, "evict-url", "", "post what the cache loses to `URL`/evict")
	flags.StringVar(&f.rule, "evict-rule", string(upstream.OwnLost),
		fmt.Sprintf("`RULE` for when a request is lost: %v: all that it newly stored, its first part, or each part with what is left",
			upstream.EvictRules()))
	flags.StringVar(&f.ids, "evict-ids", "client",
		"post the IDs of `client|engine`: as they came, or as vLLM has them inside, chatcmpl-ID-HEX")
	return cmd
}

// complete takes the flags over into the options. The poster is nil without --evict-url.
func (f *upstreamFlags) complete(log io.Writer) (*upstream.Poster, error) {
	o := &f.options
	o.Reply, o.EvictRule = upstream.Reply(f.reply), upstream.EvictRule(f.rule)
	if f.delay == "sim" {
		cost := sim.DefaultCost()
		o.Cost = &cost
	} else {
		var err error
		if o.Delay, err = time.ParseDuration(f.delay); err != nil {
			return nil, fmt.Errorf("--delay %q: want a time such as 20ms, or sim", f.delay)
		}
	}
	switch f.ids {
	case "client":
	case "engine":
		o.EngineIDs = true
	default:
		return nil, fmt.Errorf("--evict-ids %q: want client or engine", f.ids)
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if f.evict == "" {
		return nil, nil
	}
	if o.CapacityTokens <= 0 || o.Stub {
		return nil, fmt.Errorf("--evict-url %s: nothing is ever lost without --capacity, or with --stub", f.evict)
	}
	poster := upstream.NewPoster(upstream.PosterOptions{URL: f.evict, Log: slog.New(slog.NewTextHandler(log, nil))})
	o.Evict = poster.Add
	return poster, nil
}

func (f *upstreamFlags) run(cmd *cobra.Command) error {
	ctx, out, log := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	poster, err := f.complete(log)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, "--listen", f.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())

	var group sync.WaitGroup
	defer group.Wait()
	posting, stop := context.WithCancel(context.WithoutCancel(ctx)) // until no request is left that may cause evictions
	defer stop()
	if poster != nil {
		group.Go(func() { poster.Run(posting) })
	}
	handler := upstream.New(f.options)
	if err := serveUntil(ctx, listener, &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}, func() {}); err != nil {
		return err
	}
	stop()
	group.Wait()
	if f.options.Stub {
		return nil
	}
	s := handler.Stats()
	fmt.Fprintf(out, "%d requests, %d prompt tokens, %.3f of them from the cache, %d tokens generated, %d blocks evicted\n",
		s.Requests, s.PromptTokens, s.HitRatio(), s.OutputTokens, s.EvictedBlocks)
	if poster != nil {
		p := poster.Stats()
		fmt.Fprintf(out, "%d evictions posted in %d calls; dropped: %d as the queue was full, %d undeliverable\n", p.Posted, p.Calls,
			p.Overflowed, p.Failed)
	}
	return nil
}
