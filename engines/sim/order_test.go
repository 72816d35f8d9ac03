package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/sim"
)

func TestParseOrder(t *testing.T) {
	for _, text := range []string{"fifo", "lpm", "defer", "balance", "balance+bubble", "defer+balance+bubble", "lpm+defer+balance+bubble"} {
		o, err := sim.ParseOrder(text)
		if err != nil || o.String() != text {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
	if o, err := sim.ParseOrder("strata"); err != nil || o.String() != "defer+balance+bubble" {
		t.Errorf("strata: %v, %v", o, err)
	}
	for _, text := range []string{"", "lifo", "lpm+", "fifo+lpm", "LPM"} {
		if o, err := sim.ParseOrder(text); err == nil {
			t.Errorf("%q: %v", text, o)
		}
	}
}

// load is what a server is sent in the property tests: prompts that share contexts, at times, and which of them are taken back when.
type load struct {
	prompts []sim.Prompt
	at      []time.Duration
	cancel  map[int]time.Duration
}

func drawLoad(t *rapid.T, cancels bool) load {
	l := load{cancel: map[int]time.Duration{}}
	contexts := rapid.SliceOfN(rapid.IntRange(1, 400), 1, 6).Draw(t, "contexts")
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
		at += time.Duration(rapid.IntRange(0, 30).Draw(t, "gap")) * time.Millisecond
		c := rapid.IntRange(0, len(contexts)-1).Draw(t, "context")
		p := sim.Prompt{
			ID:       fmt.Sprint("r", i),
			Segments: []sim.Segment{{ID: uint64(c), Tokens: contexts[c]}, {ID: uint64(1000 + i), Tokens: rapid.IntRange(1, 60).Draw(t, "question")}},
			Answer:   sim.Segment{ID: uint64(2000 + i), Tokens: rapid.IntRange(0, 12).Draw(t, "answer")},
		}
		l.prompts, l.at = append(l.prompts, p), append(l.at, at)
		if cancels && rapid.IntRange(0, 4).Draw(t, "cancelled") == 0 {
			l.cancel[i] = at + time.Duration(rapid.IntRange(0, 60).Draw(t, "after"))*time.Millisecond
		}
	}
	return l
}

// tokens returns the tokens of all prompts and answers.
func (l load) tokens() int {
	n := 0
	for _, p := range l.prompts {
		for _, s := range p.Segments {
			n += s.Tokens
		}
		n += p.Answer.Tokens
	}
	return n
}

// run sends the load, and returns what was answered by ID. check is called between all steps.
func (l load) run(s *sim.Server, check func()) map[string]sim.Served {
	served := map[string]sim.Served{}
	sent, over := 0, map[int]bool{}
	for steps := 0; ; steps++ {
		if steps == 200_000 {
			panic("a request is never answered")
		}
		at, ok := s.Next()
		if sent < len(l.prompts) && (!ok || l.at[sent] <= at) {
			s.SubmitPrompt(l.at[sent], l.prompts[sent])
			sent++
			continue
		}
		for i, due := range l.cancel {
			if i < sent && !over[i] && (due <= at || !ok) {
				over[i] = true
				s.Cancel(l.prompts[i].ID)
			}
		}
		if _, ok = s.Next(); !ok {
			if sent == len(l.prompts) {
				return served
			}
			continue
		}
		for _, x := range s.Step() {
			served[x.ID] = x
		}
		check()
	}
}

func drawOptions(t *rapid.T) sim.ServerOptions {
	o := sim.ServerOptions{
		Options: sim.Options{
			CapacityTokens: rapid.IntRange(50, 1500).Draw(t, "capacity"), BlockTokens: rapid.IntRange(1, 16).Draw(t, "block"),
		},
		BatchTokens: rapid.IntRange(1, 600).Draw(t, "batch"), MaxRunning: rapid.IntRange(1, 12).Draw(t, "running"),
		StepCost: sim.StepCost{Step: 2e6, Prefill: 50e3, Decode: 1e5, PrefillContext: 10},
		Order: sim.Order{
			LongestPrefix: rapid.Bool().Draw(t, "lpm"), Defer: rapid.Bool().Draw(t, "defer"),
			Balance: rapid.Bool().Draw(t, "balance"), Fill: rapid.Bool().Draw(t, "fill"),
		},
		Publish: rapid.IntRange(0, 2).Draw(t, "publish"), PrefillFirst: rapid.Bool().Draw(t, "prefill first"),
		Tiers: sim.Tiers{
			Host: sim.Tier{
				CapacityTokens: rapid.SampledFrom([]int{0, 20, 300, 3000}).Draw(t, "host"),
				Load:           sim.Copy{BytesPerSecond: 1e6, Pieces: 2, Piece: 1000, Prefill: 0.1, Decode: 0.2}, Store: sim.Copy{BytesPerSecond: 1e6},
			},
			Disk: sim.Tier{
				CapacityTokens: rapid.SampledFrom([]int{0, 100, 5000}).Draw(t, "disk"),
				Load:           sim.Copy{BytesPerSecond: 3e5}, Store: sim.Copy{BytesPerSecond: 3e5},
			},
			TokenBytes: 100, Layers: rapid.IntRange(0, 4).Draw(t, "layers"),
			WriteBack: rapid.Bool().Draw(t, "write back"), Prefetch: rapid.Bool().Draw(t, "prefetch"),
		},
	}
	return o
}

// TestOrderAnswersAll: every request is answered or taken back, whatever the order, the tiers and what is cancelled; the bookkeeping is right
// after each step, and no request is overtaken more often than is said.
func TestOrderAnswersAll(t *testing.T) {
	for range 3 { // the rarer cases take more than a hundred draws
		rapid.Check(t, answersAll)
	}
}

func answersAll(t *rapid.T) {
	l, o := drawLoad(t, true), drawOptions(t)
	s := sim.NewServer(o)
	if rapid.Bool().Draw(t, "warm") {
		for _, p := range l.prompts {
			s.Warm(sim.Prompt{Segments: p.Segments[:1]})
			if err := s.CheckTiers(); err != nil {
				t.Fatal("warm: ", err)
			}
		}
	}
	served := l.run(s, func() {
		if err := s.CheckTiers(); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckRunning(); err != nil {
			t.Fatal(err)
		}
		if most := s.MostOvertaken(); most >= sim.MaxOvertaken+o.MaxRunning {
			t.Fatalf("a request was overtaken %d times", most)
		}
	})
	for i, p := range l.prompts {
		x, ok := served[p.ID]
		if _, cancelled := l.cancel[i]; !ok && !cancelled {
			t.Fatalf("%s was not answered", p.ID)
		}
		if ok && (x.Usage.OutputTokens != p.Answer.Tokens || x.Loaded > x.Usage.CachedTokens || x.Disk > x.Loaded || x.First > x.Done) {
			t.Fatalf("%s: %+v", p.ID, x)
		}
	}
	if err := s.CheckIdle(); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats(); n.Running != 0 || n.Waiting != 0 {
		t.Fatalf("at the end: %+v", n)
	}
}

// TestOrderWithoutTiers: without anything to load, balance and bubble are first come, first served; so is defer where
// what a step computes can be read at once.
func TestOrderWithoutTiers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, o := drawLoad(t, false), drawOptions(t)
		o.Tiers, o.Publish, o.Order.LongestPrefix = sim.Tiers{}, rapid.IntRange(0, 2).Draw(t, "publish"), false
		o.Order.Defer = o.Order.Defer && o.Publish == 0
		got := l.run(sim.NewServer(o), func() {})
		o.Order = sim.Order{}
		if diff := cmp.Diff(l.run(sim.NewServer(o), func() {}), got); diff != "" {
			t.Fatalf("fifo (-), %v (+): %s", o.Order, diff)
		}
	})
}

// TestOrderLoadsOnce: requests that wait together and share what is to be loaded load it once, in any order.
func TestOrderLoadsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, o := drawLoad(t, false), drawOptions(t)
		o.Tiers.Host.CapacityTokens, o.Tiers.Disk = 1<<20, sim.Tier{}
		o.CapacityTokens = l.tokens() + o.BlockTokens*len(l.prompts)
		s := sim.NewServer(o)
		blocks := map[string]bool{}
		for _, p := range l.prompts {
			s.Warm(sim.Prompt{Segments: p.Segments[:1]})
			for b := range p.Segments[0].Tokens / o.BlockTokens {
				blocks[fmt.Sprint(p.Segments[0].ID, b)] = true
			}
		}
		l.run(s, func() {})
		if got, want := s.Transfers().Host, len(blocks)*o.BlockTokens; got != want {
			t.Fatalf("%v: %d tokens were loaded, want %d", o.Order, got, want)
		}
	})
}

// TestDeferral: of requests that share a context which is in no tier, one computes it; without deferral all of a step do.
func TestDeferral(t *testing.T) {
	run := func(o sim.Order, publish int) int {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 1 << 20}, Order: o, Publish: publish, StepCost: sim.StepCost{Step: 1e6, Prefill: 1e4},
			BatchTokens: 1 << 20,
		})
		for i := range 8 {
			s.SubmitPrompt(0, sim.Prompt{
				Segments: []sim.Segment{{ID: 1, Tokens: 2000}, {ID: uint64(10 + i), Tokens: 20}},
				Answer:   sim.Segment{ID: 2, Tokens: 5},
			})
		}
		drain(s)
		return s.Work().PrefillTokens
	}
	for publish := range 3 {
		if got, want := run(sim.Order{Defer: true}, publish), 2000+8*20; got != want {
			t.Errorf("publish %d: %d tokens computed with deferral, want %d", publish, got, want)
		}
	}
	if got, want := run(sim.Order{}, 1), 8*2020; got != want {
		t.Errorf("%d tokens computed without deferral, want %d", got, want)
	}
	if got, want := run(sim.Order{}, 0), 2000+8*20; got != want {
		t.Errorf("%d tokens computed where a step's blocks can be read at once, want %d", got, want)
	}
}

// tiered is a server with a context of 3,200 tokens for each of its IDs in the host's memory. Loading one takes 32 ms, computing a token 10 µs.
func tiered(o sim.Order, ids int) *sim.Server { return tieredPublish(o, ids, 1) }

func tieredPublish(o sim.Order, ids, publish int) *sim.Server {
	s := sim.NewServer(sim.ServerOptions{
		Options: sim.Options{CapacityTokens: 1 << 20}, Order: o, StepCost: sim.StepCost{Step: 1e6, Prefill: 1e4, Decode: 1e5}, Publish: publish,
		Tiers: sim.Tiers{Host: sim.Tier{CapacityTokens: 1 << 20, Load: sim.Copy{BytesPerSecond: 1e5}}, TokenBytes: 1, Layers: 1000},
	})
	for id := range ids {
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: uint64(id), Tokens: 3200}}})
	}
	return s
}

// TestBalance: the second request, which only loads, is taken later than those that compute while the first one's context is loaded; one
// that shares this context is taken with it.
func TestBalance(t *testing.T) {
	first := func(o sim.Order) []string {
		s := tiered(o, 2)
		ask := func(id string, context, own int) {
			s.SubmitPrompt(0, sim.Prompt{
				ID: id, Segments: []sim.Segment{{ID: uint64(context), Tokens: 3200}, {ID: 99, Tokens: own}},
				Answer: sim.Segment{ID: 98, Tokens: 1},
			})
		}
		ask("loads", 0, 10)
		ask("loads another", 1, 10)
		ask("computes", 50, 100)
		ask("shares", 0, 10)
		var out []string
		s.Step()
		for _, x := range s.Step() {
			out = append(out, x.ID)
		}
		return out
	}
	// The batch holds all four either way: what differs is the order in which they were taken.
	if got, want := first(sim.Order{}), []string{"loads", "loads another", "computes", "shares"}; !slices.Equal(got, want) {
		t.Errorf("fifo: %q", got)
	}
	if got, want := first(sim.Order{Balance: true}), []string{"loads", "shares", "computes", "loads another"}; !slices.Equal(got, want) {
		t.Errorf("balance: %q", got)
	}
}

// TestFill: a running request decodes while another one's context is loaded.
func TestFill(t *testing.T) {
	decoded := func(o sim.Order) (int, time.Duration) {
		s := tiered(o, 1)
		s.SubmitPrompt(0, sim.Prompt{ID: "writes", Segments: []sim.Segment{{ID: 70, Tokens: 20}}, Answer: sim.Segment{ID: 71, Tokens: 200}})
		for range 10 {
			s.Step()
		}
		s.SubmitPrompt(0, sim.Prompt{
			ID: "loads", Segments: []sim.Segment{{ID: 0, Tokens: 3200}, {ID: 72, Tokens: 10}},
			Answer: sim.Segment{ID: 73, Tokens: 1},
		})
		for {
			for _, x := range s.Step() {
				if x.ID == "loads" {
					return s.Stats().OutputTokens, x.First
				}
			}
		}
	}
	plain, without := decoded(sim.Order{})
	filled, with := decoded(sim.Order{Fill: true})
	if filled < plain+20 {
		t.Errorf("%d tokens were there with the first token of the request that loads, %d without", filled, plain)
	}
	if with > without+2*time.Millisecond {
		t.Errorf("its first token came after %v, %v without", with, without)
	}
}

// TestFillFits: decoding does not begin where a step of it takes longer than loading leaves the engine idle: the prompt would wait for it.
func TestFillFits(t *testing.T) {
	first := func(o sim.Order) time.Duration {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 1 << 14}, Order: o, PrefillFirst: true, Publish: 1,
			StepCost: sim.StepCost{Prefill: 1e5, Decode: 5e6}, // 1 ms for ten tokens, 5 ms for a step of decoding
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: 1 << 14, Load: sim.Copy{BytesPerSecond: 1e6}}, // 3.2 ms
				TokenBytes: 1, Layers: 1000,
			},
		})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 1, Tokens: 3200}}})
		s.SubmitPrompt(0, sim.Prompt{ID: "writes", Segments: []sim.Segment{{ID: 2, Tokens: 20}}, Answer: sim.Segment{ID: 3, Tokens: 50}})
		for range 6 {
			s.Step()
		}
		s.SubmitPrompt(0, sim.Prompt{
			ID: "loads", Segments: []sim.Segment{{ID: 1, Tokens: 3200}, {ID: 4, Tokens: 10}}, Answer: sim.Segment{ID: 5, Tokens: 1},
		})
		for _, x := range drain(s) {
			if x.ID == "loads" {
				return x.First - x.At
			}
		}
		return 0
	}
	if plain, filled := first(sim.Order{}), first(sim.Order{Fill: true}); plain == 0 || filled != plain {
		t.Errorf("the first token came after %v, %v without", filled, plain)
	}
}

// TestMaxOvertaken: a request whose context has to be loaded is not passed over for ever, however many come that need not.
func TestMaxOvertaken(t *testing.T) {
	s := sim.NewServer(sim.ServerOptions{
		Options: sim.Options{CapacityTokens: 1 << 16}, Order: sim.Order{LongestPrefix: true}, MaxRunning: 1,
		StepCost: sim.StepCost{Step: 1e6},
	})
	ask := func(id string, at time.Duration, context, question uint64) {
		s.SubmitPrompt(at, sim.Prompt{
			ID: id, Segments: []sim.Segment{{ID: context, Tokens: 320}, {ID: question, Tokens: 10}},
			Answer: sim.Segment{Tokens: 1},
		})
	}
	ask("popular", 0, 1, 5)
	drain(s)
	ask("next", 0, 1, 6)
	ask("rare", 0, 2, 7)
	for i := range 500 {
		ask(fmt.Sprint("popular ", i), 0, 1, uint64(10+i))
	}
	order := []string{}
	for _, x := range drain(s) {
		order = append(order, x.ID)
	}
	if at := slices.Index(order, "rare"); at < sim.MaxOvertaken/2 || at > sim.MaxOvertaken+2 {
		t.Errorf("the rare request was number %d of %d, want about %d", at, len(order), sim.MaxOvertaken)
	}
}

// FuzzParseOrder: what is read is written so that it is read as the same.
func FuzzParseOrder(f *testing.F) {
	for _, text := range []string{"fifo", "strata", "lpm+defer+balance+bubble", "bubble+bubble", "", "+"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := sim.ParseOrder(text)
		if err != nil {
			return
		}
		if again, err := sim.ParseOrder(o.String()); err != nil || again != o {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, o, o.String(), again, err)
		}
	})
}
