package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

var (
	predicted = regexp.MustCompile(`prompt tokens to compute: \d+ \(([\d.]+)% of (\d+)\)`)
	reused    = regexp.MustCompile(`([\d.]+)% of (\d+) prompt tokens from the cache`)
)

// The report says what the local engine computes then, which reuses whole blocks, in this process and behind HTTP.
func TestBatchReportOfBlocks(t *testing.T) {
	testkit.NotUnderRace(t)
	ctx, stop := context.WithCancel(t.Context())
	url, _, ended := engineServe(ctx, t)
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	text := "product,city\n"
	for i := range 40 {
		text += fmt.Sprintf("a product of kind %d that has a description of some length,city %d\n", i%4, i)
	}
	source := write(t, "orders.csv", text)
	for _, engine := range [][]string{{"--engine", "local", "--model", tinyFile(t)}, {"--engine", url}} {
		out := filepath.Join(t.TempDir(), "out.csv")
		args := append([]string{"batch", "run", source, "--prompt", "Which is it?", "--max-tokens", "1", "--out", out}, engine...)
		shown, report, err := runBoth(t, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, report)
		}
		before, after := predicted.FindStringSubmatch(report), reused.FindStringSubmatch(shown)
		if before == nil || after == nil || before[2] != after[2] {
			t.Fatalf("%q, %q:\n%s%s", before, after, report, shown)
		}
		var computes, reuses float64
		_, _ = fmt.Sscan(before[1], &computes)
		_, _ = fmt.Sscan(after[1], &reuses)
		if sum := computes + reuses; sum < 99.85 || sum > 100.15 || reuses < 10 {
			t.Errorf("%v: %.1f%% of the tokens were to be computed, and %.1f%% came from the cache", engine, computes, reuses)
		}
	}
}
