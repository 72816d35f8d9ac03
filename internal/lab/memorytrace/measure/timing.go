package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/memorytrace"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// timing sends requests to two servers that do nothing else.
type timing struct {
	plain, planned string
	requests       int
	limit          time.Duration
}

// arm is one of the two, with what it has measured.
type arm struct {
	name   string
	path   *memorytrace.Path
	engine *llamacpp.Engine

	ttft             []time.Duration
	prompt, computed int
}

func (f timing) run(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts memorytrace.Options, out io.Writer) (err error) {
	asFound := opts
	asFound.Policy = "retrieval"
	arms := []*arm{{name: "as found"}, {name: "as planned"}}
	for i, of := range []struct {
		url  string
		opts memorytrace.Options
	}{{f.plain, asFound}, {f.planned, opts}} {
		if err := arms[i].open(ctx, trc, blocks, of.opts, of.url); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, arms[i].close()) }()
	}
	began := time.Now()
	for _, q := range f.chosen(arms[0].path, trc) {
		if time.Since(began) > f.limit {
			break
		}
		for _, a := range arms { // side by side, so that a slower minute of the machine is one for both
			if err := a.send(ctx, q); err != nil {
				return err
			}
		}
	}
	return report(out, arms)
}

// chosen returns the first requests of the user who has most.
func (f timing) chosen(p *memorytrace.Path, trc []trace.Request) []trace.Request {
	of := map[string][]trace.Request{}
	most := ""
	for _, q := range trc {
		user := p.User(q)
		of[user] = append(of[user], q)
		if len(of[user]) > len(of[most]) {
			most = user
		}
	}
	return of[most][:min(f.requests, len(of[most]))]
}

func (a *arm) open(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts memorytrace.Options, url string) (err error) {
	if a.path, err = memorytrace.New(ctx, trc, blocks, opts); err != nil {
		return err
	}
	a.engine, err = llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: url, Retries: -1}})
	if err != nil {
		return errors.Join(err, a.path.Close())
	}
	a.engine.Subscribe(a.path.Pilot().Sink(contextpilot.Scope{}))
	return nil
}

func (a *arm) close() error { return errors.Join(a.path.Close(), a.engine.Close()) }

func (a *arm) send(ctx context.Context, q trace.Request) error {
	turn, err := a.path.Turn(ctx, q)
	if err != nil {
		return err
	}
	response, err := a.engine.Generate(ctx, engines.Request{
		ID: turn.Full.RequestID, MaxTokens: 1,
		Messages: []engines.Message{{Role: engines.System, Content: trace.System}, {Role: engines.User, Content: turn.Full.Prompt(q.Query)}},
	}, nil)
	if err != nil {
		return fmt.Errorf("%s: request %q: %w", a.name, q.ID, err)
	}
	if !response.Usage.CachedKnown {
		return fmt.Errorf("%s: the server does not say what it read from its cache", a.name)
	}
	a.ttft = append(a.ttft, response.TTFT)
	a.prompt += response.Usage.PromptTokens
	a.computed += response.Usage.PromptTokens - response.Usage.CachedTokens
	return nil
}

// report prints a row for each arm, and how many times as much the first one took.
func report(out io.Writer, arms []*arm) error {
	if len(arms[0].ttft) == 0 {
		return errors.New("nothing was sent")
	}
	var failed error
	printf := func(format string, args ...any) {
		_, err := fmt.Fprintf(out, format, args...)
		failed = cmp.Or(failed, err)
	}
	n := len(arms[0].ttft)
	printf("| | requests | prompt tokens | computed | mean TTFT | median TTFT |\n|---|---|---|---|---|---|\n")
	for _, a := range arms {
		printf("| %s | %d | %d | %d | %.2f s | %.2f s |\n", a.name, n, a.prompt, a.computed, mean(a.ttft).Seconds(), median(a.ttft).Seconds())
	}
	plain, planned := arms[0], arms[1]
	printf("| ratio | | %.2f | %.2f | %.2f | %.2f |\n", figures.Ratio(plain.prompt, planned.prompt), figures.Ratio(plain.computed, planned.computed),
		mean(plain.ttft).Seconds()/mean(planned.ttft).Seconds(), median(plain.ttft).Seconds()/median(planned.ttft).Seconds())
	return failed
}

func mean(d []time.Duration) (sum time.Duration) {
	for _, x := range d {
		sum += x
	}
	return sum / time.Duration(len(d))
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
