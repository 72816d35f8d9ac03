package dispatch_test

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/local/server"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// reviews are the prompts of a table in the order of their texts: three instructions over rows whose first cells repeat.
func reviews() []dispatch.Call {
	var texts []string
	for _, ask := range []string{"Is the review good or bad?", "Which film is it about?", "Does the review name an actor?"} {
		for film := range 4 {
			plot := strings.Repeat("A boat leaves the harbour number "+strconv.Itoa(film)+" at high tide. ", 6)
			for review := range 5 {
				texts = append(texts, ask+"\nplot: "+plot+"\nyear: "+strconv.Itoa(1990+review/3)+"\nreview: number "+strconv.Itoa(review*7))
			}
		}
	}
	slices.Sort(texts)
	all := calls(texts...)
	for i := range all {
		all[i].Request.Messages = append([]engines.Message{{Role: engines.System, Content: "You read tables of films. Be short."}},
			all[i].Request.Messages...)
		all[i].Request.MaxTokens = 4
	}
	return all
}

// startLocal starts the local engine with a tiny model and an empty cache behind HTTP, on a real listener.
func startLocal(t *testing.T) engines.Engine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(file, 3); err != nil {
		t.Fatal(err)
	}
	engine, err := local.Open(local.Config{Model: file, Served: "tiny", Threads: 1, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server.New(engine, server.Config{}))
	client, err := openai.New(openai.Config{BaseURL: site.URL, Model: "tiny", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		site.Close()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// compute sends the prompts of the table in so many runs that start together, and returns the tokens that were computed.
func compute(t *testing.T, d *dispatch.Dispatcher, runs int, check func(dispatch.Answer)) int {
	t.Helper()
	all := reviews()
	s := newStore(t)
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() {
			if err := d.Run(t.Context(), all[i*len(all)/runs:(i+1)*len(all)/runs], s.add); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if s.len() != len(all) || len(s.failed()) > 0 {
		t.Errorf("%d answers of %d, failures %v", s.len(), len(all), s.failed())
	}
	for _, a := range s.answers {
		check(a)
	}
	r := d.Stats().Replicas[0]
	return r.PromptTokens - r.CachedTokens
}

// TestTableOnSimulator: for the prompts of a table, a simulated cache computes as many tokens as one after the other, in one run or in
// several. With DefaultMinShared it computes little more; without the rule, much more.
func TestTableOnSimulator(t *testing.T) {
	one := sim.New(sim.Options{BlockTokens: 4})
	for _, c := range reviews() {
		if _, err := one.Generate(t.Context(), c.Request, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := one.Stats().PromptTokens - one.Stats().HitTokens
	for _, runs := range []int{1, 4} {
		got := map[int]int{}
		for _, shared := range []int{1, 0, -1} {
			synctest.Test(t, func(t *testing.T) {
				e := slow{sim.New(sim.Options{BlockTokens: 4}), new(atomic.Int64)}
				d := newDispatcher(t, dispatch.Config{Concurrency: 16, MinShared: shared}, e)
				compute(t, d, runs, func(dispatch.Answer) {})
				got[shared] = int(e.computed.Load())
			})
		}
		t.Logf("%d runs: %d tokens one after the other; computed %d, by default %d, without the rule %d", runs, want, got[1], got[0], got[-1])
		if got[1] != want || got[0] > want*11/10 || got[-1] < want*3/2 {
			t.Errorf("%d runs: computed %d, want %d; by default %d, without the rule %d", runs, got[1], want, got[0], got[-1])
		}
	}
}

// TestTableOnLocalEngine: so does a real engine behind HTTP, and each answer is what it is when the request is sent alone. (That engine
// lets requests share what is being computed, so it needs no rule for this: what is tested is that the rule does no harm.)
func TestTableOnLocalEngine(t *testing.T) {
	want := 0
	texts := map[int]string{}
	one := startLocal(t)
	for _, c := range reviews() {
		r, err := one.Generate(t.Context(), c.Request, nil)
		if err != nil || !r.Usage.CachedKnown {
			t.Fatal(err, r)
		}
		want += r.Usage.PromptTokens - r.Usage.CachedTokens
		texts[c.Seq] = r.Text
	}
	for _, runs := range []int{1, 4} {
		d := newDispatcher(t, dispatch.Config{Concurrency: 16, MinShared: 1}, startLocal(t))
		got := compute(t, d, runs, func(a dispatch.Answer) {
			if a.Text != texts[a.Seq] || a.Attempts != 1 {
				t.Errorf("%+v, want %q", a, texts[a.Seq])
			}
		})
		t.Logf("%d runs: %d tokens computed, %d one after the other", runs, got, want)
		if got != want {
			t.Errorf("%d runs: %d tokens computed, want %d", runs, got, want)
		}
	}
}
