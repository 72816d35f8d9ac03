package sim_test

import (
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/sim"
)

// one is a prompt of one segment of its own behind a context, with an answer of one token.
func one(id string, context uint64, tokens, own int) sim.Prompt {
	return sim.Prompt{
		ID: id, Segments: []sim.Segment{{ID: context, Tokens: tokens}, {ID: 1000 + uint64(len(id)), Tokens: own}},
		Answer: sim.Segment{ID: 2000 + uint64(len(id)), Tokens: 1},
	}
}

// TestStepTime: a step that loads takes as long as is written by hand: computing 100 tokens takes 10 ms, loading 1,600 takes 16.
func TestStepTime(t *testing.T) {
	for _, x := range []struct {
		name   string
		layers int
		slower float64
		want   float64 // ms
	}{
		{"not overlapped", 0, 0, 26},
		{"one layer", 1, 0, 26},
		{"ten layers", 10, 0, 17},
		{"computing is slower while blocks are copied", 10, 0.2, 16 + 12.0/10},
		{"not overlapped, and slower", 0, 0.2, 28},
	} {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 1 << 12}, StepCost: sim.StepCost{Prefill: 1e5},
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: 1 << 12, Load: sim.Copy{BytesPerSecond: 1e5, Prefill: x.slower}},
				TokenBytes: 1, Layers: x.layers,
			},
		})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 1, Tokens: 1600}}})
		s.SubmitPrompt(0, one("a", 1, 1600, 100))
		got := drain(s)[0]
		if ms := got.First.Seconds() * 1e3; ms < x.want-0.01 || ms > x.want+0.01 {
			t.Errorf("%s: %.2f ms, want %.2f", x.name, ms, x.want)
		}
		if got.Usage.CachedTokens != 1600 || got.Loaded != 1600 || got.Disk != 0 {
			t.Errorf("%s: %+v", x.name, got)
		}
		if stall := s.Transfers().Stall.Seconds() * 1e3; stall < x.want-10.01 || stall > x.want-9.99 {
			t.Errorf("%s: %.2f ms of stall, want %.2f", x.name, stall, x.want-10)
		}
	}
}

// TestWriting: blocks are copied to the host when they are computed, or when the engine evicts them, which the next step waits for. What the
// host gives up goes to the disk.
func TestWriting(t *testing.T) {
	for _, back := range []bool{false, true} {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 320}, StepCost: sim.StepCost{Prefill: 1e5},
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: 480, Load: sim.Copy{BytesPerSecond: 1e5}, Store: sim.Copy{BytesPerSecond: 1e5, Prefill: 0.5}},
				Disk:       sim.Tier{CapacityTokens: 1 << 12},
				TokenBytes: 1, WriteBack: back,
			},
		})
		ask := func(id string, context uint64) (took float64) {
			s.SubmitPrompt(0, one(id, context, 304, 16))
			for _, x := range drain(s) {
				took = (x.First - x.Queued).Seconds() * 1e3
			}
			return took
		}
		want := func(what string, got, want float64) {
			t.Helper()
			if got < want-0.01 || got > want+0.01 {
				t.Errorf("write-back %v: %s: %.2f, want %.2f", back, what, got, want)
			}
		}
		first := ask("a", 1)
		if back {
			want("nothing is copied: ms", first, 32)
			want("stored", float64(s.Transfers().Stored), 0)
			want("the second waits until the first is copied: ms", ask("bb", 2), 32+3.2)
			want("stored", float64(s.Transfers().Stored), 320)
			continue
		}
		want("copying in the background slows down: ms", first, 32+0.5*3.2)
		want("stored", float64(s.Transfers().Stored), 320)
		want("evicting costs nothing more: ms", ask("bb", 2), 32+0.5*3.2)
		want("stored", float64(s.Transfers().Stored), 640)
		want("on the disk", float64(s.Transfers().Spill), 160)
		want("the first again, from both: ms", ask("ccc", 1), 1.6+0.5*0.16+3.04)
		want("read from the host", float64(s.Transfers().Host), 304)
		want("of these from the disk", float64(s.Transfers().Disk), 144)
	}
}

// TestPublish: what a step computes can be read by others in that step, in the next, or in the one behind it.
func TestPublish(t *testing.T) {
	for publish, want := range [][3]int{{160, 160, 160}, {0, 160, 160}, {0, 0, 160}} {
		s := sim.NewServer(sim.ServerOptions{Options: sim.Options{CapacityTokens: 1 << 12}, StepCost: sim.StepCost{Step: 1e6}, Publish: publish})
		ask := func(id string) {
			p := one(id, 1, 160, 10)
			p.Answer.Tokens = 20 // so that none ends, which would publish it
			s.SubmitPrompt(0, p)
		}
		ask("a")
		for _, id := range []string{"bb", "ccc", "dddd"} {
			ask(id) // in the first, second and third step
			s.Step()
			s.Step()
		}
		cached := map[string]int{}
		for _, x := range drain(s) {
			cached[x.ID] = x.Usage.CachedTokens
		}
		if got := [3]int{cached["bb"], cached["ccc"], cached["dddd"]}; got != want {
			t.Errorf("publish %d: %d tokens were read in the same step and the next two, want %d", publish, got, want)
		}
	}
}

// TestDeferredFirst: a deferred request is the next when what it waits for is there, before others that came earlier.
func TestDeferredFirst(t *testing.T) {
	s := sim.NewServer(sim.ServerOptions{
		Options: sim.Options{CapacityTokens: 1 << 14}, StepCost: sim.StepCost{Step: 1e6}, BatchTokens: 320, Publish: 1,
		Order: sim.Order{Defer: true},
	})
	for _, p := range []sim.Prompt{one("a", 1, 300, 20), one("bb", 2, 310, 10), one("ccc", 1, 300, 20), one("dddd", 4, 310, 10)} {
		s.SubmitPrompt(0, p)
	}
	order := ""
	for _, x := range drain(s) {
		order += x.ID + " "
	}
	if want := "a ccc bb dddd "; order != want {
		t.Errorf("%q, want %q", order, want)
	}
}

// TestCancelWhileLoading: a request that is taken back while its context is loaded leaves nothing in the cache that was not computed.
func TestCancelWhileLoading(t *testing.T) {
	for publish := range 3 {
		s := tieredPublish(sim.Order{Fill: true}, 1, publish)
		s.SubmitPrompt(0, sim.Prompt{ID: "writes", Segments: []sim.Segment{{ID: 70, Tokens: 20}}, Answer: sim.Segment{ID: 71, Tokens: 100}})
		for range 6 {
			s.Step()
		}
		s.SubmitPrompt(0, one("loads", 0, 3200, 160))
		s.Step() // its context is being loaded
		if !s.Cancel("loads") || s.Cancel("loads") || s.Cancel("unknown") {
			t.Error("Cancel")
		}
		for _, x := range drain(s) {
			if x.ID != "writes" {
				t.Errorf("%s was answered", x.ID)
			}
		}
		computed := s.Work().PrefillTokens
		s.SubmitPrompt(0, one("again", 0, 3200, 160))
		got := drain(s)[0]
		if got.Usage.CachedTokens > 3200 && computed < 20+160 {
			t.Errorf("publish %d: %d tokens were computed, and then %d read", publish, computed, got.Usage.CachedTokens)
		}
		if err := s.CheckIdle(); err != nil {
			t.Error(err)
		}
	}
}

// TestSegments: segments are the same where their IDs and places are, and not what their numbers of tokens add up to.
func TestSegments(t *testing.T) {
	for _, x := range []struct {
		second []sim.Segment
		want   int
	}{
		{[]sim.Segment{{ID: 1, Tokens: 33}}, 32},
		{[]sim.Segment{{ID: 1, Tokens: 40}}, 32},
		{[]sim.Segment{{ID: 1, Tokens: 20}, {ID: 2, Tokens: 20}}, 16},
		{[]sim.Segment{{ID: 1, Tokens: 16}, {ID: 1, Tokens: 17}}, 16},
		{[]sim.Segment{{ID: 2, Tokens: 33}}, 0},
	} {
		s := sim.NewServer(sim.ServerOptions{Options: sim.Options{CapacityTokens: 1 << 10}})
		s.SubmitPrompt(0, sim.Prompt{Segments: []sim.Segment{{ID: 1, Tokens: 40}}})
		drain(s)
		s.SubmitPrompt(0, sim.Prompt{Segments: x.second})
		if got := drain(s)[0].Usage.CachedTokens; got != x.want {
			t.Errorf("%v: %d tokens were read, want %d", x.second, got, x.want)
		}
	}
}

// TestCopy: the copies' constants give the figures that they are taken from, and those that were not used.
func TestCopy(t *testing.T) {
	const (
		pcie5, gh200 = 55e9, 300e9 // of 64 and 384 GB/s: what large copies reach
		llama8B      = 32 * 8 * 128 * 2 * 2
	)
	rate := func(c sim.Copy, tokens, blockTokens, tokenBytes int) float64 {
		blocks := tokens / blockTokens
		return float64(tokens*tokenBytes) / c.Nanos(blocks, blockTokens*tokenBytes) // GB/s
	}
	for _, x := range []struct {
		name      string
		got, want float64 // of the link's nominal rate
	}{
		{"DMA, 32 tokens, PCIe 5.0 (Fig. 3)", rate(sim.DMA(pcie5, 32), 8192, 32, llama8B) / 64, 0.22},
		{"DMA, 32 tokens, GH200 (§3.1)", rate(sim.DMA(gh200, 32), 8192, 32, llama8B) / 384, 0.05},
		{"DMA, pieces of 1 MiB (§3.1: 75 to 80 % from 1 to 2 MiB)", rate(sim.DMA(pcie5, 32), 8192, 512, llama8B) / 64, 0.73},
		{"DMA, pieces of 2 MiB", rate(sim.DMA(pcie5, 32), 8192, 1024, llama8B) / 64, 0.79},
		{"two thread blocks (Fig. 5)", rate(sim.GPUAssisted(pcie5, 25e9, 2), 8192, 1, llama8B) / 50, 1},
	} {
		if x.got < x.want-0.015 || x.got > x.want+0.015 {
			t.Errorf("%s: %.3f, want %.2f", x.name, x.got, x.want)
		}
	}
}

// TestPrefetch: while a request waits, its context is read from the disk; what is not there when it is admitted is computed. Without prefetch
// the step that admits it waits for all of it.
func TestPrefetch(t *testing.T) {
	for _, prefetch := range []bool{true, false} {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 1 << 14}, MaxRunning: 1, StepCost: sim.StepCost{Step: 1e6, Prefill: 1e4},
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: 3200},
				Disk:       sim.Tier{CapacityTokens: 1 << 14, Load: sim.Copy{BytesPerSecond: 16e3}}, // a block of 16 tokens a millisecond
				TokenBytes: 1, Prefetch: prefetch,
			},
		})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 1, Tokens: 3200}}})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 2, Tokens: 1600}}}) // half of the first context goes to the disk
		s.SubmitPrompt(0, sim.Prompt{ID: "first", Segments: []sim.Segment{{ID: 3, Tokens: 100}}, Answer: sim.Segment{ID: 4, Tokens: 40}})
		s.SubmitPrompt(0, sim.Prompt{
			ID: "second", Segments: []sim.Segment{{ID: 1, Tokens: 3200}, {ID: 5, Tokens: 16}},
			Answer: sim.Segment{ID: 6, Tokens: 1},
		})
		done := drain(s)
		got, waited := done[1], done[0].Done
		// Six blocks of the first request took the place of as many of the context in the host's memory.
		if want := 1600 - 6*16 + int(waited/time.Millisecond)*16; prefetch && (got.Usage.CachedTokens != want || got.Disk != 0) {
			t.Errorf("waited %v: %d tokens were there, %d of them from the disk, want %d", waited, got.Usage.CachedTokens, got.Disk, want)
		}
		if !prefetch && (got.Usage.CachedTokens != 3200 || got.Disk < 1600 || got.First-waited < 100*time.Millisecond) {
			t.Errorf("without prefetch: %+v", got)
		}
		if err := s.CheckTiers(); err != nil {
			t.Error(err)
		}
	}
}

// TestPrefetchTakesTime: reading ahead begins when a request comes, and goes on with the rest of a block in the next step.
func TestPrefetchTakesTime(t *testing.T) {
	for _, x := range []struct {
		at, block time.Duration
		want      int // blocks read ahead in 50 ms of waiting
	}{
		{0, time.Millisecond, 50},
		{10 * time.Second, time.Millisecond, 50},
		{0, 1500 * time.Microsecond, 33},
		{time.Hour, 2500 * time.Microsecond, 20},
	} {
		s := sim.NewServer(sim.ServerOptions{
			Options: sim.Options{CapacityTokens: 1 << 14}, MaxRunning: 1, StepCost: sim.StepCost{Step: 1e6},
			Tiers: sim.Tiers{
				Host:       sim.Tier{CapacityTokens: 3200},
				Disk:       sim.Tier{CapacityTokens: 1 << 14, Load: sim.Copy{Piece: float64(x.block), BytesPerSecond: 1e18}},
				TokenBytes: 1, Prefetch: true,
			},
		})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 1, Tokens: 3200}}})
		s.Warm(sim.Prompt{Segments: []sim.Segment{{ID: 2, Tokens: 1600}}})
		s.SubmitPrompt(x.at, sim.Prompt{Segments: []sim.Segment{{ID: 3, Tokens: 8}}, Answer: sim.Segment{ID: 4, Tokens: 50}})
		s.SubmitPrompt(x.at, sim.Prompt{
			Segments: []sim.Segment{{ID: 1, Tokens: 3200}, {ID: 5, Tokens: 16}}, Answer: sim.Segment{ID: 6, Tokens: 1},
		})
		drain(s)
		if got := s.Transfers().Ahead / 16; got < x.want-1 || got > x.want+1 {
			t.Errorf("came at %v, %v a block: %d blocks were read ahead, want %d", x.at, x.block, got, x.want)
		}
	}
}
