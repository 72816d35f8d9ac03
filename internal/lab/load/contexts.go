package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// Contexts describe a workload without text: long contexts with questions about them, or conversations that grow. Lengths are drawn
// around the means that Strata (Xie et al., Table 1) gives of four datasets; how they vary is our assumption.
type Contexts struct {
	Name     string
	Contexts int // long contexts, or conversations
	Queries  int
	// Context, Question and Answer are mean lengths in tokens.
	Context, Question, Answer float64
	// Talk makes the questions about one context a conversation: each prompt holds the ones before it and their answers. Otherwise each
	// question is a conversation of its own, and begins with its context.
	Talk bool
	// Think is the time between an answer and the next question of a conversation, in the mean.
	Think time.Duration
	// Distance is the order in which questions without conversations come.
	Distance Distance
}

// Distance says how far apart questions about the same context are.
type Distance string

// The distances (Strata, §5.3.3).
const (
	Shuffled Distance = "shuffled" // the order is random
	Minimal  Distance = "minimal"  // one context after the other
	Maximal  Distance = "maximal"  // all contexts in turn
)

// The workloads that [ContextsByName] knows.
var workloads = []Contexts{
	{Name: "loogle", Contexts: 105, Queries: 2410, Context: 21573, Question: 40, Answer: 15.6},
	{Name: "narrativeqa", Contexts: 50, Queries: 1461, Context: 54777, Question: 20, Answer: 13},
	{Name: "reviewmt", Contexts: 100, Queries: 1092, Context: 16080, Question: 100, Answer: 208.3, Talk: true},
	{Name: "sharegpt", Contexts: 2000, Queries: 10000, Question: 55, Answer: 260.9, Talk: true, Think: time.Minute},
}

// ContextsByName returns one of the workloads with the lengths of Strata's Table 1: loogle, narrativeqa, reviewmt or sharegpt.
func ContextsByName(name string) (Contexts, error) {
	var names []string
	for _, w := range workloads {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Contexts{}, fmt.Errorf("%q: want %s", name, strings.Join(names, ", "))
}

// Of returns the workload with so many queries, 0: its own number. Conversations are as long as before.
func (c Contexts) Of(queries int) Contexts {
	if queries <= 0 {
		return c
	}
	if c.Talk {
		c.Contexts = max(1, c.Contexts*queries/c.Queries)
	}
	c.Queries = queries
	return c
}

// spreadOf is the standard deviation of the logarithms of lengths; longest bounds them, as multiples of the mean.
const spreadOf, longest = 0.4, 2.3

// length returns the nth length around a mean: at least 1, log-normal, the same for the same seed.
func length(mean float64, seed uint64, kind, n int) int {
	rnd := rand.New(rand.NewPCG(seed, uint64(kind)<<48|uint64(n)))
	x := math.Exp(rnd.NormFloat64()*spreadOf - spreadOf*spreadOf/2)
	return max(1, int(math.Round(mean*min(x, longest))))
}

// The kinds of lengths and of segments.
const (
	ofContext = iota + 1
	ofQuestion
	ofAnswer
	ofOrder
)

func segment(kind, n, tokens int) sim.Segment {
	return sim.Segment{ID: uint64(kind)<<48 | uint64(n), Tokens: tokens}
}

// ContextsJob is one run of a workload without text on a simulated server, in virtual time.
type ContextsJob struct {
	Contexts
	Arrivals Arrivals
	Seed     uint64 // of lengths, order, arrivals and thinking
	InFlight int    // requests under way at a time at most, see [Job]; 0: any number
	Warm     bool   // the host's memory holds all contexts at the beginning
}

// Simulate runs the job on a fresh server.
func (j ContextsJob) Simulate(ctx context.Context, server *sim.Server) (Run, error) {
	x := &contextsRun{job: j, server: server}
	x.draw()
	if j.Warm {
		for i := range j.Contexts.Contexts {
			server.Warm(sim.Prompt{Segments: []sim.Segment{x.context(i)}})
		}
	}
	v := newVirtual(x, Job{Arrivals: j.Arrivals, Seed: j.Seed, Think: j.Think, InFlight: j.InFlight}, j.Queries)
	if err := v.loop(ctx); err != nil {
		return Run{}, err
	}
	v.run.Transfers, v.run.Work = server.Transfers(), server.Work()
	return v.run, v.run.check(j.Queries)
}

// contextsRun makes the prompts of a [ContextsJob].
type contextsRun struct {
	job    ContextsJob
	server *sim.Server
	talk   []int // of each conversation its context
	first  []int // and the number of its first question; one more at the end
}

// draw decides which questions are asked about which context, and in what order.
func (x *contextsRun) draw() {
	j := x.job
	rnd := rand.New(rand.NewPCG(j.Seed, ofOrder<<48))
	if j.Talk {
		for i := range j.Contexts.Contexts {
			x.talk = append(x.talk, i)
			x.first = append(x.first, i*j.Queries/j.Contexts.Contexts)
		}
		x.first = append(x.first, j.Queries)
		return
	}
	for q := range j.Queries {
		x.talk = append(x.talk, q%j.Contexts.Contexts)
		x.first = append(x.first, q)
	}
	x.first = append(x.first, j.Queries)
	switch j.Distance {
	case Minimal:
		slices.Sort(x.talk)
	case Maximal:
	default:
		rnd.Shuffle(len(x.talk), func(a, b int) { x.talk[a], x.talk[b] = x.talk[b], x.talk[a] })
	}
}

func (x *contextsRun) context(i int) sim.Segment {
	if x.job.Context == 0 {
		return segment(ofContext, i, 0)
	}
	return segment(ofContext, i, length(x.job.Context, x.job.Seed, ofContext, i))
}

func (x *contextsRun) question(q int) sim.Segment {
	return segment(ofQuestion, q, length(x.job.Question, x.job.Seed, ofQuestion, q))
}

func (x *contextsRun) answer(q int) sim.Segment {
	return segment(ofAnswer, q, length(x.job.Answer, x.job.Seed, ofAnswer, q))
}

func (x *contextsRun) conversations() int            { return len(x.talk) }
func (x *contextsRun) turns(i int) int               { return x.first[i+1] - x.first[i] }
func (x *contextsRun) name(i, turn int) string       { return strconv.Itoa(x.first[i] + turn) }
func (x *contextsRun) next() (time.Duration, bool)   { return x.server.Next() }
func (x *contextsRun) step() []sim.Served            { return x.server.Step() }
func (x *contextsRun) answered(int, int, sim.Served) {}

func (x *contextsRun) submit(at time.Duration, i, turn int) (string, error) {
	q := x.first[i] + turn
	p := sim.Prompt{ID: strconv.Itoa(q), Segments: []sim.Segment{x.context(x.talk[i])}, Answer: x.answer(q)}
	for n := x.first[i]; n < q; n++ {
		p.Segments = append(p.Segments, x.question(n), x.answer(n))
	}
	p.Segments = append(p.Segments, x.question(q))
	x.server.SubmitPrompt(at, p)
	return p.ID, nil
}
