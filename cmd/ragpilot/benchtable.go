package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
)

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
			fmt.Fprintf(out, "\nmemory of process %d in MB: %.1f before, at most %.1f, %.1f after\n", m.PID, megabytes(m.Memory.Before), megabytes(m.Memory.Peak), megabytes(m.Memory.After))
		}
	}
	return err
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

func aligned(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// printReports writes the reports of one load; names tell them apart.
func printReports(out io.Writer, names []string, reports []httpload.Report) error {
	fmt.Fprintf(out, "%s, %.1f s; times in ms\n", reports[0].Load, reports[0].Seconds)
	for i, r := range reports {
		fmt.Fprintf(out, "%starget %s\n", names[i], r.Target)
	}
	w := aligned(out)
	fmt.Fprintln(w, title("", "requests", "ok", "errors", "ok/s", "MB sent", "MB received"))
	for i, r := range reports {
		fmt.Fprintf(w, "%stotal\t%d\t%d\t%d\t%.1f\t%.2f\t%.2f\t\n", names[i], r.Requests, r.OK, r.Requests-r.OK, r.PerSec, megabytes(r.Sent), megabytes(r.Received))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = aligned(out)
	fmt.Fprintln(w, title("", "count", "mean", "p50", "p90", "p99", "p99.9", "max"))
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
	fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", name, s.Count, s.Mean/1e3, s.P50/1e3, s.P90/1e3, s.P99/1e3, s.P999/1e3, s.Max/1e3)
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
	w := aligned(out)
	fmt.Fprintln(w, title("", "of all answers", "median of pairs", "from", "to", "confidence", "pairs"))
	for _, x := range []struct {
		name string
		of   []httpload.Difference
	}{{"latency", c.Latency}, {"TTFT", c.TTFT}, {"from sending", c.Service}} {
		for _, d := range x.of {
			fmt.Fprintf(w, "%s p%g\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t\n", x.name, d.Quantile*100, d.Pooled/1e3, d.Median/1e3, d.Low/1e3, d.High/1e3, d.Confidence, d.Pairs)
		}
	}
	return w.Flush()
}

func printStreams(out io.Writer, s *httpload.StreamsReport) error {
	fmt.Fprintf(out, "target %s\n", s.Target)
	w := aligned(out)
	fmt.Fprintln(w, title("streams", "intact", "errors", "open together", "tokens", "MB received", "s"))
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.2f\t%.1f\t\n", s.Streams, s.Intact, s.Streams-s.Intact, s.PeakOpen, s.Tokens, megabytes(s.Received), s.Seconds)
	if err := w.Flush(); err != nil {
		return err
	}
	printErrors(out, "", s.Errors)
	if s.TTFT.Count == 0 {
		return nil
	}
	fmt.Fprintln(out, "times in ms")
	w = aligned(out)
	fmt.Fprintln(w, title("", "count", "mean", "p50", "p90", "p99", "p99.9", "max"))
	printTimes(w, "TTFT", s.TTFT)
	return w.Flush()
}
