package load

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Job is one run of a trace under load.
type Job struct {
	Settings replay.Settings
	Trace    []trace.Request // conversations begin in the order of their first turns
	Blocks   *trace.Blocks
	Arrivals Arrivals
	// Think is the mean of the exponentially distributed time between an answer and the next turn of its conversation; in
	// Closed also before a user's next conversation. 0: none.
	Think time.Duration
	Seed  uint64 // of the arrivals and the thinking
	// InFlight is the number of requests that are under way at a time at most; those that are due then wait, and their times count from
	// when they were due. 0: any number. Only in virtual time.
	InFlight int
	// MaxTokens is the length of all answers; 0: that of the recorded ones.
	MaxTokens int
	// Salt, if not empty, is the first line of every prompt: runs on one engine do not meet in its cache.
	Salt string
	// Model is what a real engine is asked for; empty: its default.
	Model string
	// Extra holds further members of the body that a real engine is sent.
	Extra map[string]json.RawMessage
}

// Sent is one request of a run. Times are since the run began.
type Sent struct {
	ID      string
	Arrived time.Duration // when it was due; what delays it after that counts as waiting
	TTFT    time.Duration // from then to the first token
	Total   time.Duration // from then to the last one
	Usage   engines.Usage
}

// Run is the result of a job.
type Run struct {
	Policy   string
	Arrivals Arrivals
	Seed     uint64
	Sent     []Sent // by arrival
	Peak     int    // requests under way at a time, at most
	// Transfers and Work are those of simulated servers.
	Transfers sim.Transfers
	Work      sim.Work
}

// conversations are the requests of a trace by session.
func (j Job) conversations() [][]trace.Request {
	var out [][]trace.Request
	at := map[string]int{}
	for _, q := range j.Trace {
		i, ok := at[q.Session]
		if !ok || !j.Settings.History {
			i = len(out)
			at[q.Session] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], q)
	}
	return out
}

// thinking returns the pause before a turn of a conversation, or behind its last one. It depends on nothing else, so
// that all policies have the same.
func (j Job) thinking(conversation, turn int) time.Duration {
	if j.Think <= 0 {
		return 0
	}
	rnd := rand.New(rand.NewPCG(j.Seed, uint64(conversation)<<32|uint64(turn)<<1))
	return time.Duration(rnd.ExpFloat64() * float64(j.Think))
}

// desk plans requests and makes their messages. Not safe for concurrent use.
type desk struct {
	job     Job
	planner *replay.Planner
	talks   *replay.Talks
}

func newDesk(job Job) (*desk, error) {
	planner, err := replay.NewPlanner(job.Settings, job.Blocks)
	if err != nil {
		return nil, err
	}
	return &desk{job: job, planner: planner, talks: replay.NewTalks(job.Trace, job.Blocks, job.Settings.History, job.Salt)}, nil
}

// request makes the engine's request of a plan.
func (d *desk) request(q trace.Request, plan trace.Plan) (engines.Request, error) {
	messages, err := d.talks.Ask(q, plan)
	if err != nil {
		return engines.Request{}, err
	}
	limit := d.job.MaxTokens
	if limit <= 0 {
		limit = max(1, tokens.Count(trace.Answer(q)))
	}
	return engines.Request{ID: replay.RequestID(q), Model: d.job.Model, Messages: messages, MaxTokens: limit, Extra: d.job.Extra}, nil
}

// Replies returns how a simulated engine answers the requests of a trace: with the recorded answers, or with n tokens
// if that is not 0.
func Replies(trc []trace.Request, n int) func(engines.Request) string {
	answers := make(map[string]string, len(trc))
	for _, q := range trc {
		answer := trace.Answer(q)
		for i := tokens.Count(answer); i < n; i++ {
			answer += " and"
		}
		answers[replay.RequestID(q)] = answer
	}
	return func(req engines.Request) string { return answers[req.ID] }
}

// TTFT returns the time to the first token that the share q of requests does not exceed.
func (r Run) TTFT(q float64) time.Duration {
	return quantile(r.Sent, q, func(s Sent) time.Duration { return s.TTFT })
}

// MeanTTFT returns the mean time to the first token.
func (r Run) MeanTTFT() time.Duration {
	sum := 0.0
	for _, s := range r.Sent {
		sum += float64(s.TTFT)
	}
	return time.Duration(sum / float64(max(1, len(r.Sent))))
}

// Total returns the time to the last token that the share q of requests does not exceed.
func (r Run) Total(q float64) time.Duration {
	return quantile(r.Sent, q, func(s Sent) time.Duration { return s.Total })
}

func quantile(sent []Sent, q float64, of func(Sent) time.Duration) time.Duration {
	times := make([]time.Duration, len(sent))
	for i, s := range sent {
		times[i] = of(s)
	}
	slices.Sort(times)
	return figures.Quantile(times, q)
}

// Span returns the time from the first arrival to the last token.
func (r Run) Span() time.Duration {
	if len(r.Sent) == 0 {
		return 0
	}
	end := time.Duration(0)
	for _, s := range r.Sent {
		end = max(end, s.Arrived+s.Total)
	}
	return end - r.Sent[0].Arrived
}

// OutputRate returns the generated tokens a second, over [Run.Span].
func (r Run) OutputRate() float64 {
	output := 0
	for _, s := range r.Sent {
		output += s.Usage.OutputTokens
	}
	return perSecond(output, r.Span())
}

// RequestRate returns the answered requests a second, over [Run.Span].
func (r Run) RequestRate() float64 { return perSecond(len(r.Sent), r.Span()) }

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// HitRatio returns the part of the prompt tokens that was read from the cache.
func (r Run) HitRatio() float64 { return hitRatio(r.Sent) }

// CachedKnown reports whether every answer reported its cached tokens.
func (r Run) CachedKnown() bool {
	return !slices.ContainsFunc(r.Sent, func(s Sent) bool { return !s.Usage.CachedKnown })
}

// Progress returns the hit ratio of n equal parts of the requests, by arrival.
func (r Run) Progress(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = hitRatio(r.Sent[i*len(r.Sent)/n : (i+1)*len(r.Sent)/n])
	}
	return out
}

func hitRatio(sent []Sent) float64 {
	prompt, cached := Run{Sent: sent}.promptTokens()
	return float64(cached) / float64(max(prompt, 1))
}

func (r Run) promptTokens() (prompt, cached int) {
	for _, s := range r.Sent {
		prompt += s.Usage.PromptTokens
		cached += s.Usage.CachedTokens
	}
	return prompt, cached
}

func (r Run) check(requests int) error {
	if len(r.Sent) != requests {
		return fmt.Errorf("%d of %d requests were answered", len(r.Sent), requests)
	}
	return nil
}
