package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

// serveLoadFlags are the flags of bench serve.
type serveLoadFlags struct {
	base, against, path, apiKey string
	rate                        float64
	arrivals                    string
	clients, maxInFlight        int
	warmUp, duration, timeout   time.Duration
	slice                       time.Duration
	openStreams, pid            int
	bodies, place               string
	body                        httpload.BodyOptions
	json                        bool
}

// memoryEvery is how often the memory of a process is read.
const memoryEvery = 100 * time.Millisecond

func newBenchServe() *cobra.Command {
	f := &serveLoadFlags{}
	cmd := newCommand("serve --base URL (--rate N | --clients N | --open-streams N)",
		"Load an OpenAI-compatible server and measure its latency",
		"Serve sends chat requests with documents and measures how long the answers take. At a --rate times count from when\n"+
			"a request was due, so a stall is charged to all that it holds up. With --against both servers are loaded in turn, in\n"+
			"short slices, and the difference is reported: what a sidecar at --base adds to the engine at --against.\n"+
			"With --open-streams it holds streams of `ragpilot bench upstream` open and checks each token of each.", func(cmd *cobra.Command) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		})
	flags := cmd.Flags()
	flags.StringVar(&f.base, "base", "", "base `URL` of the server to load")
	flags.StringVar(&f.against, "against", "", "base `URL` of a second server to compare with")
	flags.StringVar(&f.path, "path", "/chat/completions", "`PATH` below the base URL")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` to send as bearer token; RAGPILOT_API_KEY is safer")
	flags.Float64Var(&f.rate, "rate", 0, "`N` requests due in a second, whatever becomes of those before")
	flags.StringVar(&f.arrivals, "arrivals", "constant", "times between requests at a --rate: `constant|poisson`")
	flags.IntVar(&f.clients, "clients", 0, "`N` clients, each of which sends a request when it has its last answer")
	flags.IntVar(&f.maxInFlight, "max-in-flight", httpload.DefaultMaxInFlight,
		"at a --rate, `N` requests under way at a time; further ones wait, and are charged with it")
	flags.DurationVar(&f.warmUp, "warm-up", time.Second, "`TIME` that is not measured")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "`TIME` that is; with --against for both together")
	flags.DurationVar(&f.slice, "slice", 500*time.Millisecond, "with --against, `TIME` before it is the other's turn")
	flags.DurationVar(&f.timeout, "timeout", 0, "`TIME` for one request (0: 30s, with --open-streams 10m)")
	flags.IntVar(&f.openStreams, "open-streams", 0, "open `N` streams together and check what arrives, instead of measuring")
	flags.IntVar(&f.pid, "pid", 0, "`PID` of the process whose memory is reported (on Linux)")
	flags.StringVar(&f.bodies, "bodies", "", "send the requests of a `FILE`, a JSON body on each line, as they are")
	flags.BoolVar(&f.json, "json", false, "one JSON object in place of tables")
	f.registerBody(flags)
	_ = cmd.MarkFlagRequired("base")
	return cmd
}

// registerBody registers the flags that describe made-up requests.
func (f *serveLoadFlags) registerBody(flags *pflag.FlagSet) {
	b := &f.body
	flags.StringVar(&b.Model, "model", "", "`MODEL` to ask for")
	flags.BoolVar(&b.Stream, "stream", false, "ask for streamed answers, and measure the time to their first text")
	flags.IntVar(&b.MaxTokens, "max-tokens", 16, "length of answers to ask for in `TOKENS` (0: not said)")
	flags.IntVar(&b.Documents, "documents", 1000, "`N` different documents to draw from (0: requests have none)")
	flags.IntVar(&b.K, "k", 15, "`N` documents in each request")
	flags.IntVar(&b.BlockTokens, "block-tokens", 300, "mean length of a document in `TOKENS`")
	flags.StringVar(&f.place, "place", string(httpload.InSystem), "where documents stand: in the `system|tool` message")
	flags.Uint64Var(&b.Seed, "seed", 1, "`SEED` of the documents and of --arrivals poisson")
}

// check returns an error that names flags which make no sense together.
func (f *serveLoadFlags) check(flags *pflag.FlagSet) error {
	var faults []error
	if f.bodies != "" {
		faults = append(faults,
			refuse(flags, "not with --bodies, which are sent as they are", "model", "stream", "max-tokens", "documents", "k", "block-tokens",
				"place"))
	}
	if f.openStreams != 0 {
		faults = append(faults,
			refuse(flags, "not with --open-streams", "against", "rate", "arrivals", "clients", "max-in-flight", "warm-up", "duration", "slice",
				"bodies"))
		if f.openStreams < 0 {
			faults = append(faults, fmt.Errorf("--open-streams %d: must not be negative", f.openStreams))
		}
	} else if f.rate > 0 == (f.clients > 0) {
		faults = append(faults, fmt.Errorf("--rate %g, --clients %d: want one of the two above 0, or --open-streams", f.rate, f.clients))
	}
	if f.against == "" {
		faults = append(faults, refuse(flags, "only with --against", "slice"))
	}
	if f.clients > 0 {
		faults = append(faults, refuse(flags, "not with --clients", "arrivals", "max-in-flight"))
	}
	if f.arrivals != "constant" && f.arrivals != "poisson" {
		faults = append(faults, fmt.Errorf("--arrivals %q: want constant or poisson", f.arrivals))
	}
	if f.timeout < 0 || f.pid < 0 {
		faults = append(faults, fmt.Errorf("--timeout %v, --pid %d: must not be negative", f.timeout, f.pid))
	}
	return cmp.Or(faults...)
}

// target opens one of the servers.
func (f *serveLoadFlags) target(flag, base string) (*httpload.Target, error) {
	target, err := httpload.NewTarget(base, f.path, f.apiKey, nil)
	if err != nil {
		return nil, fmt.Errorf("--%s %w", flag, err)
	}
	return target, nil
}

func (f *serveLoadFlags) made() (*httpload.Made, error) {
	f.body.Place = httpload.Place(f.place)
	made, err := httpload.Generate(f.body)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return made, nil
}

func (f *serveLoadFlags) open() (httpload.Bodies, error) {
	if f.bodies == "" {
		return f.made()
	}
	return readFile("--bodies", f.bodies, func(r io.Reader) (httpload.Bodies, error) { return httpload.ReadBodies(r) })
}

// measured is the result of one call of the command.
type measured struct {
	Report     *httpload.Report        `json:"report,omitempty"`
	Comparison *httpload.Comparison    `json:"comparison,omitempty"`
	Streams    *httpload.StreamsReport `json:"streams,omitempty"`
	PID        int                     `json:"pid,omitempty"`
	Memory     *httpload.Memory        `json:"memory,omitempty"` // nil though a PID was given: not measured
}

func (f *serveLoadFlags) run(ctx context.Context, out io.Writer) error {
	base, err := f.target("base", f.base)
	if err != nil {
		return err
	}
	defer base.Close()
	m := measured{PID: f.pid}
	var watch *httpload.MemoryWatch
	if f.pid > 0 {
		watch, err = httpload.WatchMemory(f.pid, memoryEvery)
		if err != nil && !errors.Is(err, httpload.ErrNotMeasured) {
			return fmt.Errorf("--pid %d: %w", f.pid, err)
		}
	}
	err = f.measure(ctx, base, &m)
	if watch != nil {
		memory, gone := watch.Stop()
		if m.Memory = &memory; gone != nil && err == nil {
			err = fmt.Errorf("--pid %d: %w", f.pid, gone)
		}
	}
	if err != nil {
		return err
	}
	if f.json {
		err = encode(out, []measured{m})
	} else {
		err = m.print(out)
	}
	if err != nil {
		return err
	}
	return m.verdict()
}

// measure does what the flags ask for.
func (f *serveLoadFlags) measure(ctx context.Context, base *httpload.Target, m *measured) error {
	if f.openStreams > 0 {
		f.body.Stream = true
		bodies, err := f.made()
		if err != nil {
			return err
		}
		streams, err := httpload.Streams(ctx, httpload.StreamsConfig{
			Target: base, Bodies: bodies, Streams: f.openStreams, Timeout: f.timeout,
		})
		m.Streams = &streams
		return err
	}
	bodies, err := f.open()
	if err != nil {
		return err
	}
	config := httpload.Config{
		Target: base, Bodies: bodies, WarmUp: f.warmUp, Duration: f.duration, Timeout: f.timeout, Precise: true,
		Load: httpload.Load{Rate: f.rate, Clients: f.clients, Poisson: f.arrivals == "poisson", Seed: f.body.Seed, MaxInFlight: f.maxInFlight},
	}
	if f.against == "" {
		report, err := httpload.Run(ctx, config)
		m.Report = &report
		return err
	}
	against, err := f.target("against", f.against)
	if err != nil {
		return err
	}
	defer against.Close()
	comparison, err := httpload.Compare(ctx, httpload.CompareConfig{Config: config, Against: against, Slice: f.slice})
	m.Comparison = &comparison
	return err
}

// verdict returns an error if a server answered nothing, or if streams were not intact.
func (m *measured) verdict() error {
	var reports []httpload.Report
	switch {
	case m.Streams != nil && m.Streams.Intact < m.Streams.Streams:
		return fmt.Errorf("%d of %d streams were not intact: %s", m.Streams.Streams-m.Streams.Intact, m.Streams.Streams,
			firstProblem(m.Streams.Errors))
	case m.Comparison != nil:
		reports = []httpload.Report{m.Comparison.Base, m.Comparison.Against}
	case m.Report != nil:
		reports = []httpload.Report{*m.Report}
	}
	for _, r := range reports {
		if r.OK == 0 {
			return fmt.Errorf("%s answered none of %d requests: %s", r.Target, r.Requests, firstProblem(r.Errors))
		}
	}
	return nil
}

func firstProblem(problems []httpload.Error) string {
	if len(problems) == 0 {
		return "nothing was sent"
	}
	return strings.TrimSuffix(problems[0].What+": "+problems[0].First, ": ")
}

// print writes tables; their times are in ms.
func (m *measured) print(out io.Writer) error {
	var err error
	switch {
	case m.Streams != nil:
		err = printStreams(out, m.Streams)
	case m.Comparison != nil:
		err = printComparison(out, m.Comparison)
	default:
		err = printReports(out, []string{""}, []httpload.Report{*m.Report})
	}
	if m.PID > 0 {
		if m.Memory == nil {
			fmt.Fprintf(out, "\nmemory of process %d: not measured on this system\n", m.PID)
		} else {
			fmt.Fprintf(out, "\nmemory of process %d in MB: %.1f before, at most %.1f, %.1f after\n", m.PID, figures.Megabytes(m.Memory.Before),
				figures.Megabytes(m.Memory.Peak), figures.Megabytes(m.Memory.After))
		}
	}
	return err
}

// printReports writes the reports of one load; names distinguish them.
func printReports(out io.Writer, names []string, reports []httpload.Report) error {
	fmt.Fprintf(out, "%s, %.1f s; times in ms\n", reports[0].Load, reports[0].Seconds)
	for i, r := range reports {
		fmt.Fprintf(out, "%starget %s\n", names[i], r.Target)
	}
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("", "requests", "ok", "errors", "ok/s", "MB sent", "MB received"))
	for i, r := range reports {
		fmt.Fprintf(w, "%stotal\t%d\t%d\t%d\t%.1f\t%.2f\t%.2f\t\n", names[i], r.Requests, r.OK, r.Requests-r.OK, r.PerSec,
			figures.Megabytes(r.Sent), figures.Megabytes(r.Received))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = figures.Table(out)
	fmt.Fprintln(w, figures.Row("", "count", "mean", "p50", "p90", "p99", "p99.9", "max"))
	for i, r := range reports {
		printTimes(w, names[i]+"latency", r.Latency)
		if r.TTFT.Count > 0 {
			printTimes(w, names[i]+"TTFT", r.TTFT)
		}
		printTimes(w, names[i]+"sent late", r.Late)
		printTimes(w, names[i]+"from sending", r.Service)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, r := range reports {
		printErrors(out, names[i], r.Errors)
	}
	return nil
}

func printTimes(w io.Writer, name string, s httpload.Summary) {
	fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", name, s.Count, s.Mean/1e3, s.P50/1e3, s.P90/1e3, s.P99/1e3, s.P999/1e3,
		s.Max/1e3)
}

func printErrors(out io.Writer, name string, problems []httpload.Error) {
	for _, e := range problems {
		fmt.Fprintf(out, "%s%s: %d, the first: %s\n", name, e.What, e.Count, e.First)
	}
}

func printComparison(out io.Writer, c *httpload.Comparison) error {
	if err := printReports(out, []string{"base ", "against "}, []httpload.Report{c.Base, c.Against}); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nbase less against, in ms\n")
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("", "of all answers", "median of pairs", "from", "to", "confidence", "pairs"))
	for _, x := range []struct {
		name string
		of   []httpload.Difference
	}{{"latency", c.Latency}, {"TTFT", c.TTFT}, {"from sending", c.Service}} {
		for _, d := range x.of {
			fmt.Fprintf(w, "%s p%g\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t\n", x.name, d.Quantile*100, d.Pooled/1e3, d.Median/1e3, d.Low/1e3, d.High/1e3,
				d.Confidence, d.Pairs)
		}
	}
	return w.Flush()
}

func printStreams(out io.Writer, s *httpload.StreamsReport) error {
	fmt.Fprintf(out, "target %s\n", s.Target)
	w := figures.Table(out)
	fmt.Fprintln(w, figures.Row("streams", "intact", "errors", "open together", "tokens", "MB received", "s"))
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.2f\t%.1f\t\n", s.Streams, s.Intact, s.Streams-s.Intact, s.PeakOpen, s.Tokens,
		figures.Megabytes(s.Received), s.Seconds)
	if err := w.Flush(); err != nil {
		return err
	}
	printErrors(out, "", s.Errors)
	if s.TTFT.Count == 0 {
		return nil
	}
	fmt.Fprintln(out, "times in ms")
	w = figures.Table(out)
	fmt.Fprintln(w, figures.Row("", "count", "mean", "p50", "p90", "p99", "p99.9", "max"))
	printTimes(w, "TTFT", s.TTFT)
	return w.Flush()
}
