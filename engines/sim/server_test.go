package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// millisecond in the unit of a StepCost.
const millisecond = float64(time.Millisecond)

// tokenText is n tokens, the first of which carry a name, so that texts of two names share nothing.
func tokenText(name string, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("%s%d", name, i%90)
	}
	return strings.Join(words, " ")
}

func prompt(id, text string, output int) engines.Request {
	return engines.Request{ID: id, MaxTokens: output, Messages: []engines.Message{{Role: engines.User, Content: text}}}
}

// endless answers as long as MaxTokens allows.
func endless(engines.Request) string { return strings.Repeat("word ", 500) }

// drain runs the server until it has nothing to do.
func drain(s *sim.Server) []sim.Served {
	var out []sim.Served
	for _, ok := s.Next(); ok; _, ok = s.Next() {
		out = append(out, s.Step()...)
	}
	return out
}

// TestServerSchedule compares with schedules made by hand. Steps compute at most 32 tokens and take 10 ms, 1 ms for each
// prompt token and 2 ms for each sequence that decodes; two requests run at a time.
func TestServerSchedule(t *testing.T) {
	a, b, c := tokenText("a", 40), tokenText("b", 16), tokenText("c", 8)
	tests := []struct {
		name  string
		sent  []engines.Request
		at    []time.Duration
		cost  sim.StepCost
		first []int // ms, of each
		done  []int
	}{
		{
			// 0: a[0:32] 42 → 42: a[32:40], b[0:16] 10+24 → 76: both first tokens, a done; b decodes 10+2 → 88
			name: "chunks share a step", sent: []engines.Request{prompt("a", a, 1), prompt("b", b, 2)},
			first: []int{76, 76}, done: []int{76, 88},
		},
		{
			// a leaves at 76, c enters then with b's decode: 10+8+2 = 96
			name: "a place gets free", sent: []engines.Request{prompt("a", a, 1), prompt("b", b, 3), prompt("c", c, 1)},
			first: []int{76, 76, 96}, done: []int{76, 108, 96},
		},
		{
			// b arrives while a's first chunk is computed, and is in the next step
			name: "arrival in a step", sent: []engines.Request{prompt("a", a, 1), prompt("b", b, 1)}, at: []time.Duration{0, 5 * time.Millisecond},
			first: []int{76, 76}, done: []int{76, 76},
		},
		{
			// the same prompt in the same step: 16 of its 16 tokens are a full block, but the last one is computed
			name: "equal prompts in one step", sent: []engines.Request{
				prompt("c", c, 1), prompt("x", tokenText("b", 17), 1),
				prompt("y", tokenText("b", 17), 1),
			},
			// two run: c 8 + x 17 → 35; then y reads 16: 10+1 → 46
			first: []int{35, 35, 46}, done: []int{35, 35, 46},
		},
		{
			// an empty answer ends with prefill
			name: "no output", sent: []engines.Request{{ID: "a", Messages: []engines.Message{{Content: "one"}}}},
			first: []int{11}, done: []int{11},
		},
		{
			// 5 ms + 1 ms a token on the way: b is in the queue first
			name: "delay", sent: []engines.Request{prompt("a", a, 1), prompt("c", c, 1)},
			cost: sim.StepCost{Arrival: 5 * millisecond, ArrivalToken: millisecond},
			// c queued at 13, step to 31; a queued at 45, 42 to 87, rest 18 to 105
			first: []int{105, 31}, done: []int{105, 31},
		},
		{
			// prompt of 8 after nothing: context 0+1+…+7 = 28 ms; decode after 9 and 10 tokens: 2×(8+1), 2×(8+2)
			name: "context", sent: []engines.Request{prompt("c", c, 3)},
			cost:  sim.StepCost{PrefillContext: millisecond, DecodeContext: 2 * millisecond},
			first: []int{46}, done: []int{46 + 12 + 18 + 12 + 20},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cost := tt.cost
			cost.Step, cost.Prefill, cost.Decode = 10*millisecond, millisecond, 2*millisecond
			s := sim.NewServer(sim.ServerOptions{
				BatchTokens: 32, MaxRunning: 2, StepCost: cost,
				Options: sim.Options{CapacityTokens: 1000, Reply: func(req engines.Request) string {
					if req.MaxTokens == 0 {
						return ""
					}
					return endless(req)
				}},
			})
			for i, req := range tt.sent {
				at := time.Duration(0)
				if i < len(tt.at) {
					at = tt.at[i]
				}
				for next, ok := s.Next(); ok && next < at; next, ok = s.Next() {
					s.Step()
				}
				s.Submit(at, req)
			}
			served := drain(s)
			first, done := map[string]int{}, map[string]int{}
			for _, x := range served {
				first[x.ID], done[x.ID] = int(x.First/time.Millisecond), int(x.Done/time.Millisecond)
			}
			for i, req := range tt.sent {
				if first[req.ID] != tt.first[i] || done[req.ID] != tt.done[i] {
					t.Errorf("%s: first token at %d, done at %d; want %d and %d", req.ID, first[req.ID], done[req.ID], tt.first[i], tt.done[i])
				}
			}
		})
	}
}

// slowServer is the schedule written down as plainly as possible: time passes in steps of one list, cached prefixes are
// whole strings, and the cache is unlimited.
func slowServer(sent []engines.Request, at []time.Duration, batch, running, block int, cost sim.StepCost) map[string]sim.Served {
	type state struct {
		words         []string
		served        sim.Served
		computed, out int
		admitted      bool
	}
	var all []*state
	for i, req := range sent {
		s := &state{words: strings.Fields(req.Messages[0].Content), served: sim.Served{ID: req.ID, At: at[i], Queued: at[i]}}
		s.served.Usage.OutputTokens = req.MaxTokens
		all = append(all, s)
	}
	cached := map[string]bool{}
	keep := func(s *state) {
		for n := block; n <= s.computed; n += block {
			cached[strings.Join(s.words[:n], " ")] = true
		}
	}
	out := map[string]sim.Served{}
	var run []*state
	now := time.Duration(0)
	for len(out) < len(all) {
		budget, w := batch, sim.Work{Steps: 1}
		var in []*state
		chunk := func(s *state) {
			n := min(len(s.words)-s.computed, budget)
			for k := range n {
				w.PrefillTokens++
				w.PrefillContext += s.computed + k
			}
			s.computed += n
			budget -= n
			keep(s)
		}
		for _, s := range run {
			if budget == 0 {
				break
			}
			if s.computed < len(s.words) {
				chunk(s)
			} else {
				w.Decodes++
				w.DecodeContext += len(s.words) + s.out
				budget--
			}
			in = append(in, s)
		}
		idle := time.Duration(-1)
		for _, s := range all {
			if s.admitted {
				continue
			}
			if s.served.At > now {
				idle = s.served.At
				break
			}
			if budget == 0 || len(run) == running {
				break
			}
			s.admitted = true
			for n := block; n < len(s.words) && cached[strings.Join(s.words[:n], " ")]; n += block {
				s.computed = n
			}
			s.served.Usage.CachedTokens = s.computed
			chunk(s)
			run, in = append(run, s), append(in, s)
		}
		if len(in) == 0 {
			now = idle
			continue
		}
		now += cost.Duration(w)
		for _, s := range in {
			if s.computed < len(s.words) {
				continue
			}
			if s.out == 0 {
				s.served.First = now
			}
			if s.out++; s.out == s.served.Usage.OutputTokens {
				s.served.Done = now
				out[s.served.ID] = s.served
				run = slices.DeleteFunc(run, func(x *state) bool { return x == s })
			}
		}
	}
	return out
}

func TestServerModel(t *testing.T) {
	cost := sim.StepCost{Step: 3e6, Prefill: 1e5, PrefillContext: 2e3, Decode: 3e5, DecodeContext: 1e3}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var sent []engines.Request
		var at []time.Duration
		now := time.Duration(0)
		for i := range 2 + rnd.IntN(30) {
			text := ""
			for range 1 + rnd.IntN(4) {
				text += tokenText(string(rune('a'+rnd.IntN(3))), 1+rnd.IntN(40)) + " "
			}
			sent = append(sent, prompt(fmt.Sprint(i), text, 1+rnd.IntN(20)))
			if rnd.IntN(3) > 0 {
				now += time.Duration(rnd.IntN(20)) * time.Millisecond
			}
			at = append(at, now)
		}
		batch, running, block := 8+rnd.IntN(60), 1+rnd.IntN(6), 4+rnd.IntN(8)
		want := slowServer(sent, at, batch, running, block, cost)
		s := sim.NewServer(sim.ServerOptions{
			BatchTokens: batch, MaxRunning: running, StepCost: cost,
			Options: sim.Options{BlockTokens: block, Reply: endless},
		})
		got := map[string]sim.Served{}
		take := func(served []sim.Served) {
			for _, x := range served {
				x.Usage.PromptTokens, x.Usage.CachedKnown = 0, false
				got[x.ID] = x
			}
		}
		for i, req := range sent {
			for next, ok := s.Next(); ok && next < at[i]; next, ok = s.Next() {
				take(s.Step())
			}
			s.Submit(at[i], req)
		}
		take(drain(s))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, batch %d, running %d, block %d (-want +got):\n%s", seed, batch, running, block, diff)
		}
	}
}

// TestServerLikeEngine: one request at a time, the server's cache does what the engine's does.
func TestServerLikeEngine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	options := sim.Options{CapacityTokens: 400, BlockTokens: 8, Reply: endless}
	engine := sim.New(options)
	server := sim.NewServer(sim.ServerOptions{Options: options, BatchTokens: 24})
	var fromEngine, fromServer []contextpilot.Event
	engine.Subscribe(func(events ...contextpilot.Event) { fromEngine = append(fromEngine, events...) })
	server.Subscribe(func(events ...contextpilot.Event) { fromServer = append(fromServer, events...) })
	for i := range 500 {
		text := ""
		for range 1 + rnd.IntN(4) {
			text += tokenText(string(rune('a'+rnd.IntN(5))), 1+rnd.IntN(60)) + " "
		}
		if i%100 == 99 {
			text = tokenText("z", 500) // larger than the cache
		}
		req := prompt(fmt.Sprint(i), text, 1+rnd.IntN(20))
		response, err := engine.Generate(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		server.Submit(0, req)
		served := drain(server)
		if len(served) != 1 || served[0].Usage != response.Usage {
			t.Fatalf("request %d: %+v, the engine says %+v", i, served, response.Usage)
		}
	}
	// Shrunk may differ: in several steps, a prompt takes its blocks before it has computed all of them again.
	count := func(events []contextpilot.Event, kind contextpilot.EventKind) (n int) {
		for _, e := range events {
			if e.Kind == kind {
				n++
			}
		}
		return n
	}
	for _, kind := range []contextpilot.EventKind{contextpilot.Served, contextpilot.Gone} {
		if a, b := count(fromEngine, kind), count(fromServer, kind); a != b || a == 0 {
			t.Errorf("%v: %d and %d", kind, a, b)
		}
	}
	a, b := engine.Stats(), server.Stats()
	if a.HitTokens != b.HitTokens || a.EvictedBlocks != b.EvictedBlocks || a.ResidentBlocks != b.ResidentBlocks ||
		a.Oversize != b.Oversize || a.OutputTokens != b.OutputTokens {
		t.Errorf("engine %+v\nserver %+v", a, b)
	}
}

// TestServerConserves: under load with a small cache everything that was sent is answered in full, no step is too large,
// no more run than may, and every block is free afterwards.
func TestServerConserves(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		s := sim.NewServer(sim.ServerOptions{
			Options:     sim.Options{CapacityTokens: 300 + rnd.IntN(600), BlockTokens: 4 + rnd.IntN(12), Reply: endless},
			BatchTokens: 16 + rnd.IntN(100), MaxRunning: 1 + rnd.IntN(8),
			StepCost: sim.StepCost{Step: 1e6, Prefill: 1e4, Decode: 1e5},
		})
		gone := map[string]int{}
		s.Subscribe(func(events ...contextpilot.Event) {
			for _, e := range events {
				if e.Kind == contextpilot.Gone {
					gone[e.Request]++
				}
			}
		})
		want, wantOutput := map[string]int{}, 0
		for i := range 150 {
			text := tokenText(string(rune('a'+rnd.IntN(4))), 1+rnd.IntN(80)) + " " + tokenText(string(rune('a'+rnd.IntN(20))), 1+rnd.IntN(200))
			req := prompt(fmt.Sprint(i), text, 1+rnd.IntN(30))
			want[req.ID], wantOutput = req.MaxTokens, wantOutput+req.MaxTokens
			s.Submit(time.Duration(i)*time.Millisecond, req)
		}
		for _, ok := s.Next(); ok; _, ok = s.Next() {
			for _, x := range s.Step() {
				if x.Usage.OutputTokens != want[x.ID] || x.First < x.Queued || x.Done < x.First || x.Queued < x.At {
					t.Errorf("seed %d: %+v, want %d tokens", seed, x, want[x.ID])
				}
				delete(want, x.ID)
			}
			if err := s.CheckRunning(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		st, w := s.Stats(), s.Work()
		if len(want) > 0 || st.Requests != 150 || st.OutputTokens != wantOutput {
			t.Errorf("seed %d: unanswered %v, %+v", seed, want, st)
		}
		if w.PrefillTokens != st.PromptTokens-st.HitTokens || w.Decodes != wantOutput-150 {
			t.Errorf("seed %d: work %+v, stats %+v", seed, w, st)
		}
		for id, n := range gone {
			if n > 1 {
				t.Errorf("seed %d: request %s was reported gone %d times", seed, id, n)
			}
		}
		if err := s.CheckIdle(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestServerDefaults: a request without an ID gets one, and the zero value serves at once.
func TestServerDefaults(t *testing.T) {
	s := sim.NewServer(sim.ServerOptions{})
	s.Submit(time.Second, prompt("", "hello", 0))
	s.Submit(0, prompt("", "hello", 0)) // before the last one: at its time
	served := drain(s)
	if len(served) != 2 || served[0].ID == served[1].ID || served[1].At != time.Second || served[1].Done != time.Second {
		t.Errorf("%+v", served)
	}
	if s.Step() != nil {
		t.Error("a step of an idle server")
	}
}
