package sim

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/outbox"
)

// Defaults of [ServerOptions], those of vLLM 0.32.0's server on H100 and H200 GPUs.
const (
	DefaultBatchTokens = 8192
	DefaultMaxRunning  = 1024
)

// ServerOptions configures a [Server].
type ServerOptions struct {
	// Options are those of the cache and of the answers. Fault and Cost are not used.
	Options
	// BatchTokens is the number of tokens that one step computes at most, those of decoding sequences included; 0 or
	// less: [DefaultBatchTokens].
	BatchTokens int
	// MaxRunning is the number of requests that run at a time at most; 0 or less: [DefaultMaxRunning].
	MaxRunning int
	// StepCost is how long steps take. With the zero value everything happens at once.
	StepCost StepCost
	// Order says which of the waiting requests are admitted first; zero: first come, first served.
	Order Order
	// Tiers hold what the engine's memory gives up.
	Tiers Tiers
	// Publish says when others can read the blocks that a step computes: 0 in that step already (vLLM); 1 when it has ended; 2 one step
	// later, because the next step is prepared before this one has ended (SGLang's overlapped scheduler). What a request has
	// computed can always be read when the request has ended.
	Publish int
	// PrefillFirst keeps prompts and decoding apart: a step that computes prompts does nothing else (SGLang's default). Otherwise running
	// requests decode in each step (vLLM).
	PrefillFirst bool
}

// Served is a request that a [Server] has answered.
type Served struct {
	ID     string
	At     time.Duration // when it was submitted
	Queued time.Duration // when it was in the queue
	First  time.Duration // when its first token, or its empty answer, was there
	Done   time.Duration // when its last token was
	Usage  engines.Usage
	// Loaded are those of Usage.CachedTokens that were loaded from lower tiers, Disk those of Loaded that came from the disk in the
	// step that admitted the request. See [Tiers].
	Loaded, Disk int
}

// Server is a simulated inference server in virtual time: requests wait, are computed together, and slow each other
// down, as in vLLM's V1 scheduler. It has the cache of [Engine].
//
// A step computes at most BatchTokens tokens. Running requests come first, in the order of their admission: one token
// for each that decodes, as much of its prompt as there is budget for one that does not yet. Then waiting requests are
// admitted, first come first served, while there is budget, a free place, and room in the cache for the whole prompt
// and its answer. A prompt's blocks can be read by others from the step on in which they are computed, by requests
// that are admitted later in the same step too. The step in which the rest of a prompt is computed yields the
// first token.
//
// [ServerOptions].Order changes which waiting requests are admitted, Tiers keep what the cache evicts in slower memory, Publish and
// PrefillFirst make it work as SGLang does.
//
// Unlike vLLM it reserves room for the answer at admission, so it never preempts a running request, and requests that do not
// fit the empty cache are computed without it. Next and Step drive it:
//
//	for at, ok := server.Next(); ok; at, ok = server.Next() {
//		... submit what arrives until at, then
//		for _, s := range server.Step() { ... }
//	}
//
// Not safe for concurrent use. It never waits and starts no goroutines.
type Server struct {
	options ServerOptions
	cache   cache
	outbox  outbox.Outbox
	first   func(id string) // nil: not set
	stats   Stats
	work    Work // so far

	now     time.Duration
	waiting []*job // on their way to the queue, by the time at which they are there
	running []*job // by admission
	batch   []*job // of the step under way, part of running
	queue   []*job // waiting, and arrived
	spare   []*job // scratch
	loading []*job // of running: admitted, but what they need is still being loaded
	loaded  time.Duration
	arrived int           // requests that came into the queue
	fetched time.Duration // until when the disk has read ahead
	rest    float64       // nanoseconds that were not enough for a block
	ends    time.Duration
	busy    bool // a step is under way
	last    int  // number of the last request without an ID
}

// job is one request in a [Server].
type job struct {
	prompt prompt
	served Served
	output int // tokens generated
	chunk  int // tokens of the prompt in the step under way; 0: it decodes

	number    int // of its arrival in the queue
	overtaken int // later requests that were admitted before it
	queued    bool
	deferred  bool // in the last step
	loading   bool // admitted, but not yet computed: see Order.Fill
	cancelled bool
	before    int   // tokens computed before the last step
	match     match // where its blocks are
}

func (j *job) complete() bool {
	return j.prompt.computed == j.prompt.tokens && j.served.First >= 0 && j.output == j.prompt.answer
}

// NewServer returns a Server with an empty cache at time 0.
func NewServer(options ServerOptions) *Server {
	options.Options = options.withDefaults()
	if options.BatchTokens <= 0 {
		options.BatchTokens = DefaultBatchTokens
	}
	if options.MaxRunning <= 0 {
		options.MaxRunning = DefaultMaxRunning
	}
	s := &Server{options: options, cache: newCache(options.Options)}
	s.cache.delayed, s.cache.writeBack, s.cache.prefetch = options.Publish > 0, options.Tiers.WriteBack, options.Tiers.Prefetch
	if options.CapacityTokens <= 0 {
		return s
	}
	for _, t := range []Tier{options.Tiers.Host, options.Tiers.Disk} {
		n := t.CapacityTokens / options.BlockTokens
		if n <= 0 {
			break
		}
		s.cache.lower = append(s.cache.lower, newLower(n))
	}
	return s
}

// Subscribe registers a sink for what happens to the cache, see the package's documentation. It is called by Step.
func (s *Server) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return s.outbox.Subscribe(sink)
}

// OnFirst has f called when a request's first token, or its empty answer, is there; f must not call the server.
func (s *Server) OnFirst(f func(id string)) { s.first = f }

// Submit sends a request at a time that must not be before that of an earlier Submit or Step; if it is, it counts
// as sent at the time of these. The prompt is tokenised and hashed, O(its length).
func (s *Server) Submit(at time.Duration, req engines.Request) {
	req.ID = s.name(req.ID)
	text, _ := truncate(s.options.Reply(req), req.MaxTokens)
	j := &job{}
	j.prompt.fill(req, text, s.options.BlockTokens)
	s.submit(at, j)
}

// SubmitPrompt is Submit for a prompt without text. It is hashed, O(its blocks).
func (s *Server) SubmitPrompt(at time.Duration, p Prompt) {
	j := &job{}
	j.prompt.id = s.name(p.ID)
	j.prompt.fillSegments(p, s.options.BlockTokens)
	s.submit(at, j)
}

func (s *Server) name(id string) string {
	if id == "" {
		s.last++
		id = "sim-" + strconv.Itoa(s.last)
	}
	return id
}

func (s *Server) submit(at time.Duration, j *job) {
	s.now = max(s.now, at)
	queued := s.now + s.options.StepCost.Delay(j.prompt.tokens)
	j.served = Served{ID: j.prompt.id, At: s.now, Queued: queued, First: -1}
	i, _ := slices.BinarySearchFunc(s.waiting, queued, func(w *job, t time.Duration) int {
		return cmp.Or(cmp.Compare(w.served.Queued, t), -1) // behind those of the same time
	})
	s.waiting = slices.Insert(s.waiting, i, j)
}

// Warm puts the full blocks of a prompt into the host's memory, as if an earlier run had left them there. Without such a tier it does
// nothing.
func (s *Server) Warm(p Prompt) {
	if len(s.cache.lower) == 0 {
		return
	}
	var x prompt
	x.fillSegments(p, s.options.BlockTokens)
	nodes := make([]int32, 0, x.full())
	last := root
	for _, k := range x.chain.keys[:min(x.full(), s.cache.lower[0].limit)] {
		last = s.cache.index.add(k, last)
		nodes = append(nodes, last)
	}
	// None of them must have to make room for those behind it.
	host := s.cache.lower[0]
	for _, n := range slices.Backward(nodes) {
		s.cache.index.nodes[n].leaving = true
		if host.has(n) {
			host.use(n)
		}
	}
	for _, n := range slices.Backward(nodes) {
		s.cache.put(0, n)
	}
	for _, n := range nodes {
		s.cache.index.nodes[n].leaving = false
	}
	s.cache.version++
}

// Cancel takes back a request, and reports whether it was there: one that waits leaves the queue, one that runs gives its
// blocks back when the step under way has ended, or the one that computes what is being loaded for it. It is not returned by Step.
func (s *Server) Cancel(id string) bool {
	for _, list := range []*[]*job{&s.waiting, &s.queue} {
		if i := slices.IndexFunc(*list, func(j *job) bool { return j.prompt.id == id }); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	i := slices.IndexFunc(s.running, func(j *job) bool { return j.prompt.id == id && !j.cancelled })
	if i < 0 {
		return false
	}
	if s.running[i].cancelled = true; !s.busy {
		s.drop()
		s.outbox.Deliver()
	}
	return true
}

// drop ends the cancelled requests.
func (s *Server) drop() {
	gone := func(j *job) bool { return j.cancelled && !j.loading }
	for _, j := range s.running {
		if gone(j) {
			s.put(s.cache.release(&j.prompt, j.output, nil))
		}
	}
	s.running = slices.DeleteFunc(s.running, gone)
}

// Next returns when the server does something next, and false if it has nothing to do. It begins steps lazily: requests
// submitted before Step is called at that time may still be part of the step.
func (s *Server) Next() (at time.Duration, ok bool) {
	switch {
	case s.busy:
		return s.ends, true
	case len(s.running) > 0 || len(s.queue) > 0:
		return s.now, true
	case len(s.waiting) > 0:
		return max(s.now, s.waiting[0].served.Queued), true
	}
	return 0, false
}

// Step does what Next announced, the beginning of a step or its end, and returns the requests answered by it.
func (s *Server) Step() []Served {
	at, ok := s.Next()
	if !ok {
		return nil
	}
	s.now = at
	var done []Served
	if s.busy {
		done = s.end()
	} else {
		s.begin()
	}
	s.outbox.Deliver()
	return done
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	c := s.stats
	c.EvictedBlocks, c.ResidentBlocks, c.CapacityBlocks = s.cache.evicted, len(s.cache.index.at), s.cache.pool.limit
	c.Running, c.Waiting, c.Followed = len(s.running), len(s.waiting)+len(s.queue), len(s.cache.tracker.byID)
	return c
}

// Transfers returns what was moved between the tiers so far.
func (s *Server) Transfers() Transfers { return s.cache.moves }

// Work returns what the steps so far computed, the one under way included.
func (s *Server) Work() Work { return s.work }

func (s *Server) admit(j *job, budget int) bool {
	p := &j.prompt
	if p.oversize = !s.cache.fits(p); p.oversize {
		s.cache.bypass(p)
		s.cache.compute(p, min(budget, p.tokens))
		s.stats.Oversize++
	} else {
		events, ok := s.cache.admit(p, budget, nil)
		if !ok {
			return false
		}
		s.put(events)
	}
	s.stats.Requests++
	s.stats.PromptTokens += p.tokens
	s.stats.HitTokens += p.cached()
	return true
}

func (s *Server) end() []Served {
	s.busy = false
	s.drop()
	var done []Served
	for _, j := range s.batch {
		p := &j.prompt
		if p.computed < p.tokens || j.cancelled {
			continue
		}
		if j.served.First < 0 {
			j.served.First = s.now
			if s.first != nil {
				s.first(p.id)
			}
		}
		if p.answer > 0 {
			j.output++
			s.stats.OutputTokens++
		}
		if !j.complete() {
			continue
		}
		j.served.Done = s.now
		j.served.Usage = engines.Usage{PromptTokens: p.tokens, OutputTokens: j.output, CachedTokens: p.cached(), CachedKnown: true}
		j.served.Loaded, j.served.Disk = p.loaded*s.cache.blockTokens, p.disk*s.cache.blockTokens
		done = append(done, j.served)
		s.put(s.cache.release(p, j.output, []contextpilot.Event{{
			Kind: contextpilot.Served, Request: p.id, Tokens: p.cached(), Output: j.output, Prompt: p.tokens,
			CachedKnown: !p.oversize, // which did not look into the cache
		}}))
	}
	if len(done) > 0 {
		s.running = slices.DeleteFunc(s.running, (*job).complete)
	}
	return done
}

func (s *Server) put(events []contextpilot.Event) {
	for i := range events {
		events[i].Scope = s.options.Scope
	}
	s.outbox.Put(events)
}
