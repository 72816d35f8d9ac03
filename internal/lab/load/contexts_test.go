package load_test

import (
	"context"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/replay"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// side is a setup by name.
func side(t *testing.T, copying load.Copying, order string) load.Setup {
	t.Helper()
	return load.Setup{Copying: copying, Order: testkit.Must(sim.ParseOrder(order))(t)}
}

// contexts runs a workload on Qwen2.5-14B on an H200, as Strata's analysis does (§5.3).
func contexts(t *testing.T, job load.ContextsJob, s load.Setup) load.Run {
	t.Helper()
	model := testkit.Must(load.ReadModel("h200-qwen2.5-14b"))(t)
	return testkit.Must(job.Simulate(context.Background(), testkit.Must(model.ServerOf(s, nil))(t)))(t)
}

func contextsOf(t *testing.T, name string) load.Contexts {
	t.Helper()
	return testkit.Must(load.ContextsByName(name))(t)
}

// TestContextsAreAsInThePaper: the lengths are those of Strata's Table 1, and most of what long prompts hold was sent before.
func TestContextsAreAsInThePaper(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, x := range []struct {
		name     string
		queries  int
		in, out  float64
		tolerant float64 // of 50 contexts the mean is less certain than of 105
	}{
		{"loogle", 2410, 21613, 15.60, 0.03},
		{"narrativeqa", 1461, 54797, 13, 0.05},
		{"reviewmt", 1092, 17708, 208.3, 0.03},
		{"sharegpt", 0, 680.9, 260.9, 0.03},
	} {
		in, out, n := 0.0, 0.0, 0
		for seed := uint64(1); seed <= 4; seed++ {
			run := contexts(t, load.ContextsJob{Contexts: contextsOf(t, x.name), Arrivals: load.Arrivals{Kind: load.Poisson, Rate: 1e3}, Seed: seed},
				load.Setup{Page: 512})
			for _, s := range run.Sent {
				in, out = in+float64(s.Usage.PromptTokens), out+float64(s.Usage.OutputTokens)
			}
			if n = len(run.Sent); x.queries > 0 && n != x.queries {
				t.Errorf("%s: %d queries, want %d", x.name, n, x.queries)
			}
		}
		for what, ratio := range map[string]float64{"in": in / float64(4*n) / x.in, "out": out / float64(4*n) / x.out} {
			if ratio < 1-x.tolerant || ratio > 1+x.tolerant {
				t.Errorf("%s: avg. %s is %.3f of the paper's", x.name, what, ratio)
			}
		}
	}
}

// TestOrderDoesNoHarm: with Strata's order the mean time to the first token is not above that of first come, first served, on any workload and
// at any rate from idle to overload: 1 % is allowed, 2 % with short contexts.
func TestOrderDoesNoHarm(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	for _, x := range []struct {
		name     string
		rates    []float64
		queries  int // 0: the dataset's
		capacity int // 0: the machine's
		most     float64
	}{
		{"loogle", []float64{0.3, 1, 4}, 0, 0, 1.01},
		{"narrativeqa", []float64{0.1, 0.5, 2}, 700, 0, 1.01},
		{"reviewmt", []float64{0.05, 0.3, 1}, 0, 0, 1.01},
		{"sharegpt", []float64{1, 10, 20}, 4000, 100_000, 1.02},
	} {
		for _, copying := range []load.Copying{load.GPU, load.DMA} {
			if copying == load.DMA && x.name == "narrativeqa" {
				continue // as loogle, and slow
			}
			for _, rate := range x.rates {
				var fifo, strata time.Duration
				for seed := uint64(1); seed <= 2; seed++ {
					job := load.ContextsJob{
						Contexts: contextsOf(t, x.name).Of(x.queries), Arrivals: load.Arrivals{Kind: load.Poisson, Rate: rate},
						InFlight: 128, Seed: seed,
					}
					a, b := side(t, copying, "fifo"), side(t, copying, "strata")
					a.Capacity, b.Capacity = x.capacity, x.capacity
					a.Page, b.Page = 32, 32
					fifo += contexts(t, job, a).MeanTTFT()
					strata += contexts(t, job, b).MeanTTFT()
				}
				if ratio := float64(strata) / float64(fifo); ratio > x.most {
					t.Errorf("%s at %g conversations a second, %s: mean TTFT is %.3f of first come, first served", x.name, rate, copying, ratio)
				}
			}
		}
	}
}

// TestStrataDirections: what Strata's figures 9 to 11 show at peak throughput holds in the model, too.
func TestStrataDirections(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	peak := func(d load.Distance, s load.Setup) float64 {
		w := contextsOf(t, "loogle")
		w.Distance = d
		return contexts(t, load.ContextsJob{Contexts: w, Arrivals: load.Arrivals{Kind: load.Closed, Size: 128}, Seed: 1}, s).RequestRate()
	}
	more := func(what string, a, b, least float64) {
		if a < least*b {
			t.Errorf("%s: %.2f requests a second, %.2f without: want at least %.2f times as many", what, a, b, least)
		}
	}
	dma := side(t, load.DMA, "fifo")
	dma.Page = 32
	scheduled := side(t, load.DMA, "strata")
	scheduled.Page = 32
	for _, d := range []load.Distance{load.Shuffled, load.Maximal} {
		none, hicache := peak(d, side(t, load.NoTiers, "fifo")), peak(d, dma)
		io, deferred := peak(d, side(t, load.GPU, "fifo")), peak(d, side(t, load.GPU, "defer"))
		balanced, strata := peak(d, side(t, load.GPU, "defer+balance")), peak(d, side(t, load.GPU, "strata"))
		more(string(d)+": tiers", hicache, none, 2)
		more(string(d)+": fast copies", io, hicache, 1.5)
		more(string(d)+": the order alone", peak(d, scheduled), hicache, 1.2)
		more(string(d)+": deferral", deferred, io, 0.99)
		more(string(d)+": balanced batches", balanced, deferred, 1.05)
		more(string(d)+": bubbles", strata, balanced, 0.98)
		more(string(d)+": LPM does not help under load", io, peak(d, side(t, load.GPU, "lpm")), 1)
	}
	more("minimal: deferral", peak(load.Minimal, side(t, load.NoTiers, "defer")), peak(load.Minimal, side(t, load.NoTiers, "fifo")), 1.2)

	// Fig. 10: with commands for each piece, pages can be too small and too large; with a kernel their size does not matter.
	page := func(c load.Copying, n int) float64 {
		s := side(t, c, "fifo")
		s.Page = n
		return peak(load.Shuffled, s)
	}
	more("pages of 512 tokens", page(load.DMA, 512), page(load.DMA, 32), 1.3)
	more("a kernel and small pages", page(load.GPU, 16), page(load.DMA, 512), 1)
	more("a kernel and large pages", page(load.GPU, 16), page(load.GPU, 128), 0.97)
}

// TestInFlight: no more requests are under way than may be, and the others count from when they were due.
func TestInFlight(t *testing.T) {
	many := load.Arrivals{Kind: load.Poisson, Rate: 1e3}
	run := contexts(t, load.ContextsJob{Contexts: contextsOf(t, "loogle").Of(100), Arrivals: many, InFlight: 5},
		side(t, load.NoTiers, "fifo"))
	if run.Peak != 5 || len(run.Sent) != 100 {
		t.Errorf("%d of %d requests under way at a time", run.Peak, len(run.Sent))
	}
	if last := run.Sent[99]; last.TTFT < run.Span()/2 {
		t.Errorf("the last request waited %v of %v", last.TTFT, run.Span())
	}
}

// TestTiersOnTraces: on the open traces the host's memory has what a small cache gave up, and Strata's order does no harm.
func TestTiersOnTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	testkit.NotUnderRace(t)
	for _, name := range testkit.Traces() {
		dir := testkit.Shared(t, "traces", name)
		trc, blocks, err := trace.Load(dir+"/trace.jsonl", dir+"/blocks.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		capacity := testkit.Must(trace.CapacityTokens("5%", trc, blocks, true))(t)
		run := func(s load.Setup) load.Run {
			s.Capacity = capacity
			job := load.Job{
				Settings: replay.Settings{Policy: contextpilot.DefaultPolicy, History: true, Dedup: true}, Trace: trc, Blocks: blocks,
				Arrivals: load.Arrivals{Kind: load.Poisson, Rate: 3}, Seed: 1,
			}
			server := testkit.Must(load.H100().ServerOf(s, load.Replies(trc, 0)))(t)
			return testkit.Must(job.Simulate(context.Background(), server))(t)
		}
		none, fifo, strata := run(side(t, load.NoTiers, "fifo")), run(side(t, load.GPU, "fifo")), run(side(t, load.GPU, "strata"))
		t.Logf("%s: hit ratio %.3f, %.3f with tiers; mean TTFT %v, %v, %v with Strata's order", name, none.HitRatio(),
			fifo.HitRatio(), none.MeanTTFT(),
			fifo.MeanTTFT(), strata.MeanTTFT())
		if fifo.HitRatio() < none.HitRatio()+0.02 || fifo.MeanTTFT() > none.MeanTTFT() {
			t.Errorf("%s: tiers do not help", name)
		}
		if float64(strata.MeanTTFT()) > 1.01*float64(fifo.MeanTTFT()) {
			t.Errorf("%s: mean TTFT is %v, %v first come, first served", name, strata.MeanTTFT(), fifo.MeanTTFT())
		}
	}
}

// TestDiskLayout: while requests always wait for the disk, pages that lie in one piece are read up to 4 times as fast (Strata, §5.3.4).
func TestDiskLayout(t *testing.T) {
	testkit.NotUnderRace(t)
	model := testkit.Must(load.ReadModel("h200-llama-3.1-8b"))(t)
	model.Memory.HostTokens, model.Memory.DiskTokens, model.Memory.DiskRate = 400_000, 10_000_000, 3.5e9
	model.CapacityTokens = 200_000
	speed := func(c load.Copying) float64 {
		server := testkit.Must(model.ServerOf(load.Setup{Copying: c, Page: 32}, nil))(t)
		job := load.ContextsJob{
			Contexts: contextsOf(t, "loogle").Of(400), Arrivals: load.Arrivals{Kind: load.Poisson, Rate: 4}, InFlight: 128, Seed: 1,
		}
		run := testkit.Must(job.Simulate(context.Background(), server))(t)
		return float64(run.Transfers.Ahead) / run.Span().Seconds()
	}
	if pages, layers := speed(load.GPU), speed(load.DMA); pages < 3*layers || pages > 4*layers {
		t.Errorf("%.0f tokens a second are read ahead, %.0f where pages lie layer by layer", pages, layers)
	}
}
