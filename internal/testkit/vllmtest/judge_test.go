//go:build unix

package vllmtest

import "fmt"

// line compares an arm with plain order over some requests.
type line struct {
	Arm      string  `json:"arm"`
	Over     string  `json:"over"`
	Requests int     `json:"requests"`
	Plain    mean    `json:"plain"`
	Ours     mean    `json:"ours"`
	TTFT     float64 `json:"ttft_ratio"`
	Computed float64 `json:"computed_ratio"`
	Derived  float64 `json:"derived_ratio"` // of 87 ms and 0.65 ms a token
	Want     float64 `json:"want,omitempty"`
}

type mean struct {
	TTFT     float64 `json:"ttft_ms"`
	Computed float64 `json:"computed_tokens"`
}

func (m mean) derived() float64 { return requestMillis + tokenMillis*m.Computed }

// compare adds a line. want is 0 where nothing is asked.
func (c *contest) compare(a *arm, over string, of []int, want float64) {
	if len(of) == 0 {
		return
	}
	l := line{Arm: a.name, Over: over, Requests: len(of), Want: want}
	l.Plain.TTFT, l.Plain.Computed = c.plain.mean(of)
	l.Ours.TTFT, l.Ours.Computed = a.mean(of)
	l.TTFT, l.Computed, l.Derived = l.Ours.TTFT/l.Plain.TTFT, l.Ours.Computed/l.Plain.Computed, l.Ours.derived()/l.Plain.derived()
	c.lines = append(c.lines, l)
}

func between(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// judge compares the arms on what is asked, and on what else may be meant by it.
func (c *contest) judge() {
	all, late := between(0, c.n), between(min(warmUp, c.n*2/3), c.n)
	inCache := func(a *arm) []int {
		list := make([]int, c.n)
		for i, s := range a.took {
			list[i] = s.Reused
		}
		return list
	}
	blocks, times := wanted(c.plain.requests)
	c.compare(c.online, "after the warm-up", late, onlineShare)
	c.compare(c.offline, "all", all, batchShare)
	c.compare(c.offline, "40 with most blocks from the cache", top(all, inCache(c.offline)), topShare)
	c.compare(c.offline, "40 with most blocks of others, most wanted", top(all, blocks, times), 0)
	c.compare(c.offline, "40 whose blocks are wanted most", top(all, times), 0)
	c.compare(c.online, "all", all, 0)
	c.compare(c.online, "40 with most blocks from the cache", top(all, inCache(c.online)), 0)
	c.compare(c.online, "the same after the warm-up", top(late, inCache(c.online)), 0)
	c.compare(c.online, "40 with most blocks of others, most wanted", top(all, blocks, times), 0)
	c.compare(c.online, "40 whose blocks are wanted most", top(all, times), 0)
	for _, l := range c.lines {
		got := l.TTFT
		if !c.timed {
			got = l.Derived
		}
		if l.Want > 0 && c.n == allRequests && c.cut == blockTokens && got > l.Want {
			c.t.Errorf("%s, %s: %.3f of plain order, want at most %.2f; load %s", l.Arm, l.Over, got, l.Want, machineLoad())
		}
	}
}

func (c *contest) report(name string) {
	var sum, detail table
	sum.row("arm", "requests", "n", "plain ms", "ours ms", "TTFT", "plain computed", "ours computed", "computed", "derived", "want")
	for _, l := range c.lines {
		want := ""
		if l.Want > 0 {
			want = fmt.Sprintf("%.2f", l.Want)
		}
		sum.row(
			l.Arm,
			l.Over,
			fmt.Sprint(l.Requests),
			fmt.Sprintf("%.0f", l.Plain.TTFT),
			fmt.Sprintf("%.0f", l.Ours.TTFT),
			fmt.Sprintf("%.3f", l.TTFT),
			fmt.Sprintf(
				"%.0f",
				l.Plain.Computed,
			),
			fmt.Sprintf("%.0f", l.Ours.Computed),
			fmt.Sprintf("%.3f", l.Computed),
			fmt.Sprintf("%.3f", l.Derived),
			want,
		)
	}
	detail.row("arm", "prompt tokens", "cached", "expected by plans", "ms a request", "ms a token", "planning ms", "events", "events unknown")
	for _, a := range []*arm{c.plain, c.online, c.offline} {
		detail.row(a.cells()...)
	}
	values := struct {
		Requests, Cut, Pool int
		Dtype               string
		Paired              bool
		Lines               []line
		Samples             map[string][]sample
	}{c.n, c.cut, c.pool, c.dtype, c.paired, c.lines, map[string][]sample{
		"plain": c.plain.took, "online": c.online.took,
		"offline": c.offline.took,
	}}
	f := figures{
		Loads: []string{c.began, machineLoad()}, Release: c.plain.engine.Features().Version, Values: values,
		Table: fmt.Sprintf("%s; load %s at the start and %s at the end\n%s\n%s", c, c.began, machineLoad(), sum.String(), detail.String()),
	}
	f.report(c.t, name)
}

// cells are a row of what the arm came to over all requests.
func (a *arm) cells() []string {
	var prompt, cached, expected int
	var plan float64
	for _, s := range a.took {
		prompt += s.Prompt
		cached += s.Cached
		expected += s.Expected
		plan += s.Plan.Seconds() * 1e3
	}
	request, token := a.fit()
	st := a.pilot.Stats()
	return []string{
		a.name, fmt.Sprint(prompt), fmt.Sprint(cached), fmt.Sprint(expected), fmt.Sprintf("%.0f", request), fmt.Sprintf("%.3f", token),
		fmt.Sprintf("%.2f", plan/float64(len(a.took))), fmt.Sprint(st.Events), fmt.Sprint(st.EventsUnknown),
	}
}

// fit returns the line through the times by tokens computed: milliseconds for a request and for a token.
func (a *arm) fit() (request, token float64) {
	var n, x, y, xx, xy float64
	for _, s := range a.took {
		tokens, millis := float64(s.computed()), s.TTFT.Seconds()*1e3
		n, x, y, xx, xy = n+1, x+tokens, y+millis, xx+tokens*tokens, xy+tokens*millis
	}
	if d := n*xx - x*x; d > 0 {
		token = (n*xy - x*y) / d
	}
	return (y - token*x) / n, token
}
