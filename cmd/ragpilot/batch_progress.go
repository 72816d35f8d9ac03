package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/batch"
)

// batchProgress shows how far a job is: on a terminal one line that changes, else a line now and then.
type batchProgress struct {
	out   io.Writer
	flags *batchEngineFlags
	live  bool
	first batch.Counts // what was there when this run began
	began time.Time
	last  time.Time
	shown bool
}

// quietTime is how often a line is written where none can change.
const quietTime = 10 * time.Second

func newBatchProgress(out io.Writer, flags *batchEngineFlags) *batchProgress {
	return &batchProgress{out: out, flags: flags, live: terminal(out)}
}

func (p *batchProgress) show(job batch.Job) {
	now := time.Now()
	if p.began.IsZero() {
		p.began, p.last, p.first = now, now, job.Counts
	}
	if !p.live && now.Sub(p.last) < quietTime {
		return
	}
	p.last, p.shown = now, true
	line := fmt.Sprintf("%d of %d rows%s%s", job.RowsDone+job.RowsFailed, job.Rows, p.flags.summary(&job), p.left(&job, now))
	if p.live {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// left says how fast this run is, and when it will be done.
func (p *batchProgress) left(job *batch.Job, now time.Time) string {
	done := job.RowsDone + job.RowsFailed
	here := done - p.first.RowsDone - p.first.RowsFailed
	took := now.Sub(p.began)
	if here <= 0 || took < time.Second {
		return ""
	}
	perRow := took / time.Duration(here)
	return fmt.Sprintf(", %.1f rows/s, %v left", float64(here)/took.Seconds(), (perRow * time.Duration(job.Rows-done)).Round(time.Second))
}

func (p *batchProgress) end() {
	if p.live && p.shown {
		fmt.Fprintln(p.out)
	}
}

// money is an amount with its currency.
func (f *batchEngineFlags) money(amount float64) string {
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", amount, f.currency))
}

// summary says what the answers of a job took.
func (f *batchEngineFlags) summary(job *batch.Job) string {
	text := ""
	if job.RowsFailed > 0 {
		text += fmt.Sprintf(", %d failed", job.RowsFailed)
	}
	if job.PromptTokens > 0 {
		text += fmt.Sprintf(", %s of %d prompt tokens from the cache", hitRatio(&job.Counts), job.PromptTokens)
	}
	if f.prices != (batch.Prices{}) {
		text += ", cost " + f.money(f.prices.Cost(job.PromptTokens, job.CachedTokens, job.OutputTokens))
	}
	return text
}

// sortedNames returns the keys of a map in order.
func sortedNames[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
