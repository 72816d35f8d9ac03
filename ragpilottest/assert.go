package ragpilottest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/prompt/gotemplate"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// AssertReuse runs a program against a recorder, which ends with the test, and fails the test if [Report.Share] is less than least, or if
// the program repeats nothing. The program must send at least two requests: it is called twice, or over several turns.
//
// A failure names each request that parts from an earlier one, where and why, and with [Templates] the line of the template. It quotes
// the prompts.
func AssertReuse(t testing.TB, least float64, run func(rec *Recorder), opts ...Option) Report {
	t.Helper()
	report, err := CheckReuse(t, least, run, opts...)
	if err != nil {
		t.Errorf("ragpilottest: %v", err)
	}
	return report
}

// CheckReuse is [AssertReuse] without the failure: it returns it.
func CheckReuse(t testing.TB, least float64, run func(rec *Recorder), opts ...Option) (Report, error) {
	t.Helper()
	if !(least > 0 && least <= 1) { // not a number, too
		return Report{}, fmt.Errorf("least is %v, want a share above 0 and up to 1", least)
	}
	rec, err := newRecorder(t, opts)
	if err != nil {
		return Report{}, err
	}
	run(rec)
	rec.mu.Lock()
	errs := slices.Clone(rec.problems)
	rec.mu.Unlock()
	report := rec.Report()
	return report, errors.Join(append(errs, rec.judge(report, least))...)
}

// judge returns the failure of a report.
func (rec *Recorder) judge(r Report, least float64) error {
	share, of, base := r.Share(), "that repeat an earlier request", r.Common+r.Lost
	if rec.config.all {
		share, of, base = r.ShareOfAll(), "behind the first request", r.Prompt
	}
	switch {
	case r.Requests < 2:
		return fmt.Errorf("requests recorded: %d; at least 2 are needed to compare", r.Requests)
	case base == 0:
		return fmt.Errorf("%d requests repeat nothing of an earlier one", r.Requests)
	case share < least:
		return fmt.Errorf("%s of the prompt tokens %s are in a reusable prefix, want at least %s: %d of %d tokens in %d requests%s",
			percent(share), of, percent(least), r.Common, base, r.Requests, rec.explain())
	}
	return nil
}

// Report says how much of what requests repeat an engine's prefix cache can serve. The first request counts nothing. Of each later one
//
//   - Common are the tokens of the longest prefix that it has in common with an earlier request,
//   - Lost are the tokens behind that prefix that the earlier request has, too, so that they were there to be reused,
//   - Prompt are all tokens.
//
// What is new, such as the next question, is in neither Common nor Lost. A difference of a few tokens, or between requests that have little
// in common, is no loss, see package prefixdiff.
type Report struct {
	Requests             int
	Common, Lost, Prompt int
	Findings             []prefixdiff.Finding
}

// Share is Common / (Common + Lost): of the tokens that repeat an earlier request, those that can be reused. It is NaN if nothing
// is repeated.
func (r Report) Share() float64 { return float64(r.Common) / float64(r.Common+r.Lost) }

// ShareOfAll is Common / Prompt. Unlike Share it depends on how long questions and answers are.
func (r Report) ShareOfAll() float64 { return float64(r.Common) / float64(r.Prompt) }

// Report adds up what was recorded.
func (rec *Recorder) Report() Report {
	var out Report
	for _, r := range rec.Requests() {
		out.Requests++
		if r.Number == 1 {
			continue
		}
		out.Common += r.Common
		out.Prompt += r.Tokens
		out.Lost += r.lost()
		if r.Finding != nil {
			out.Findings = append(out.Findings, *r.Finding)
		}
	}
	return out
}

// lost are the tokens that could be in the common prefix. The finding may be about another earlier request than the longest prefix.
func (r *Request) lost() int {
	if r.Finding == nil {
		return 0
	}
	return max(0, r.Finding.Token+r.Finding.LostTokens-r.Common)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// maxExplained bounds the differences in a failure.
const maxExplained = 8

// cause is what several findings may have in common.
type cause struct {
	prefixdiff.Cause
	path   string
	action gotemplate.Place
}

// explain describes the findings. Those with the same cause at the same place are described once.
func (rec *Recorder) explain() string {
	requests := rec.Requests()
	var order []cause
	first, more, lost := map[cause]*Request{}, map[cause]int{}, map[cause]int{}
	for i := range requests {
		r := &requests[i]
		if r.Finding == nil {
			continue
		}
		c := cause{Cause: r.Finding.Cause, path: r.Finding.Path}
		if is, was, ok := texts(r, &requests[r.Finding.Against]); ok {
			c.action, _ = rec.place(is, was)
		}
		if first[c] == nil {
			first[c] = r
			order = append(order, c)
			continue
		}
		more[c]++
		lost[c] += r.lost()
	}
	var b strings.Builder
	for i, c := range order {
		if i == maxExplained {
			fmt.Fprintf(&b, "\nand %d more differences", len(order)-i)
			break
		}
		c.describe(&b, first[c], &requests[first[c].Finding.Against])
		switch n := more[c]; {
		case n == 1:
			fmt.Fprintf(&b, "\n    the same in another request: %d tokens lost", lost[c])
		case n > 1:
			fmt.Fprintf(&b, "\n    the same in %d more requests: %d tokens lost", n, lost[c])
		}
	}
	return b.String()
}

// describe writes about one finding.
func (c *cause) describe(b *strings.Builder, r, earlier *Request) {
	f := r.Finding
	at := f.Path
	if at == "" {
		at = "its end"
	}
	fmt.Fprintf(b, "\nrequest %d parts from request %d at %s, token %d: %s, %d tokens lost",
		r.Number, earlier.Number, at, f.Token, f.Cause, r.lost())
	if is, was, ok := texts(r, earlier); ok {
		fmt.Fprintf(b, "\n    was: %s\n    is:  %s", excerpt(was, f.Offset), excerpt(is, f.Offset))
	}
	if c.action.File != "" {
		fmt.Fprintf(b, "\n    written by %s:%d: %s", c.action.File, c.action.Line, c.action.Action)
	}
}

// texts returns the two texts that a finding is about.
func texts(r, earlier *Request) (is, was string, ok bool) {
	i := partAt(r.Prompt, r.Finding.Path)
	if i < 0 {
		return "", "", false
	}
	part := &r.Prompt.Parts[i]
	if i < len(earlier.Prompt.Parts) && earlier.Prompt.Parts[i].Kind == part.Kind {
		was = earlier.Prompt.Parts[i].Text
	}
	return part.Text, was, true
}

// partAt returns the part of a finding's path, which may be of the message around it, or of a member in it; -1: none.
func partAt(p prefixdiff.Prompt, path string) int {
	inside := -1
	for i := range p.Parts {
		switch at := p.Parts[i].Path; {
		case at == path || path != "" && strings.HasPrefix(at, path+"."):
			return i
		case inside < 0 && strings.HasPrefix(path, at+"."):
			inside = i
		}
	}
	return inside
}
