package engines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// asked is a request of TestWarmProperties.
type asked struct {
	*engines.Warming
	name  string
	over  bool // ready or cancelled
	calls int  // of the engine when it was over
	leave context.CancelFunc
}

// Whatever happens: the index holds the guesses that the engine has computed, those under way and the real requests,
// and nothing else; what is wrong is cancelled when the request is ready; nothing is sent for a request that is over;
// no more warm-ups run than may; no head is computed twice at a time; and nothing is left behind.
func TestWarmProperties(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{MaxWarmups: 3}, func(t *testing.T, w *warmUp) {
		// A bubble's test has no deadline, and says so by a panic.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			w := &warmUp{t: t, engine: &heldEngine{}, system: w.system}
			w.pilot, _ = contextpilot.New(contextpilot.Config{})
			var err error
			if w.Warmer, err = engines.NewWarmer(engines.WarmerOptions{Engine: w.engine, Pilot: w.pilot, MaxWarmups: 3}); err != nil {
				t.Fatal(err)
			}
			var under []*asked
			planned := int64(0)
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				planned += w.step(rt, &under)
				w.check(rt, under)
			}
			for _, x := range under {
				x.Cancel()
			}
			w.Close()
			served := int64(0)
			for _, c := range w.engine.calls {
				if c.answered && strings.HasPrefix(c.req.ID, "rp-") && !c.late { // a guess's last part
					served++
				}
			}
			if got := w.pilot.Stats().LiveRequests; got != planned+served {
				rt.Fatalf("%d requests in the index: %d real ones and %d guesses that were computed", got, planned, served)
			}
			for _, x := range under {
				x.leave()
			}
		})
	})
}

// step does one thing, and returns the number of real requests that it has planned.
func (w *warmUp) step(rt *rapid.T, under *[]*asked) (planned int64) {
	some := rapid.Permutation([]string{"a", "b", "c", "d", "e"}).Draw(rt, "blocks")[:rapid.IntRange(1, 4).Draw(rt, "number")]
	var x *asked
	if n := len(*under); n > 0 {
		x = (*under)[rapid.IntRange(0, n-1).Draw(rt, "request")]
	}
	actions := []string{"begin", "guess", "guess", "guess", "ready", "cancel", "leave", "answer", "answer", "refuse"}
	switch action := rapid.SampledFrom(actions).Draw(rt, "do"); {
	case action == "begin" || x == nil:
		ctx, leave := context.WithCancel(w.t.Context())
		name := fmt.Sprint("tenant ", rapid.IntRange(0, 1).Draw(rt, "tenant"))
		x = &asked{name: name, leave: leave}
		x.Warming = w.Begin(ctx, contextpilot.Request{Scope: contextpilot.Scope{Tenant: name}}, func(p *contextpilot.Plan) engines.Request {
			req := w.build(p)
			req.Model = fmt.Sprintf("for %p", x) // so that the test knows whose it is
			if p.Len() == 1 && p.Block(0).ID == "ragpilot-probe" {
				req.Model = "" // heads are shared
			}
			return req
		})
		*under = append(*under, x)
	case action == "guess":
		x.Guess(pages(some...))
	case action == "ready" && !x.over:
		plan := w.pilot.Plan(contextpilot.Request{Scope: contextpilot.Scope{Tenant: x.name}, Query: how, Blocks: pages(some...)})
		x.Ready(&plan)
		w.end(x, &plan)
		planned = 1
	case action == "cancel" || action == "leave":
		if x.leave(); action == "cancel" {
			x.Cancel()
		}
		w.end(x, nil)
	case action == "answer" || action == "refuse":
		w.answer(rt, action)
	}
	synctest.Wait()
	return planned
}

// end notes that a request is over, and looks whether what is wrong was cancelled; plan nil: all of its is.
func (w *warmUp) end(x *asked, plan *contextpilot.Plan) {
	w.t.Helper()
	if plan == nil {
		synctest.Wait()
	}
	whole := ""
	if plan != nil {
		whole = blocksOf(w.build(plan)) + " "
	}
	for _, c := range w.of(x) {
		right := plan != nil && len(whole) > len(blocksOf(c.req)) && whole[:len(blocksOf(c.req))+1] == blocksOf(c.req)+" "
		if !c.answered && c.wanted() && !right {
			w.t.Errorf("%q is wrong for %q, and not cancelled", blocksOf(c.req), whole)
		}
	}
	if !x.over {
		synctest.Wait()
		x.over, x.calls = true, len(w.of(x))
	}
}

// of returns the guesses of a request that have reached the engine.
func (w *warmUp) of(x *asked) (calls []*heldCall) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	for _, c := range w.engine.calls {
		if c.req.Model == fmt.Sprintf("for %p", x) {
			calls = append(calls, c)
		}
	}
	return calls
}

// answer answers one of the requests that the engine has, if there are any.
func (w *warmUp) answer(rt *rapid.T, action string) {
	var open []*heldCall
	for _, c := range w.engine.calls {
		if !c.answered && c.wanted() {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return
	}
	c := rapid.SampledFrom(open).Draw(rt, "call")
	if action == "refuse" {
		c.reply <- engines.ErrRefused
		synctest.Wait()
		c.answered, c.late = true, true
		return
	}
	c.answered = true
	c.reply <- nil
}

func (w *warmUp) check(rt *rapid.T, under []*asked) {
	heads, running := map[string]int{}, 0
	for _, c := range w.engine.calls {
		if c.answered || !c.wanted() {
			continue
		}
		running++
		if blocksOf(c.req) == "" {
			heads[c.req.Messages[0].Content]++
		}
	}
	for _, n := range heads {
		if n > 2 { // one for each tenant
			rt.Fatalf("a head is computed %d times at once", n)
		}
	}
	if running > 3 {
		rt.Fatalf("%d warm-ups at once", running)
	}
	for _, x := range under {
		if x.over && len(w.of(x)) > x.calls {
			rt.Fatal("sent for a request that is over")
		}
	}
}

// Many requests at once, on a real cache that is too small and an engine that fails at times. Run it with -race. In the end the index
// holds nothing that the engine does not have.
func TestWarmConcurrent(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var number atomic.Int64
	engine := sim.New(sim.Options{CapacityTokens: 2000, Fault: func(engines.Request) *sim.Fault {
		if number.Add(1)%9 == 0 {
			return &sim.Fault{}
		}
		return nil
	}})
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	w, err := engines.NewWarmer(engines.WarmerOptions{Engine: engine, Pilot: pilot, MinTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{pilot: pilot, engine: engine, warmer: w, system: words("s", 160)}
	for i := range 9 {
		c.pages = append(c.pages, contextpilot.Block{ID: fmt.Sprint(i), Text: words(fmt.Sprintf("page%d-", i), 20)})
		plan := c.plan(i)
		c.pages[i].Tokens = tokens.Count(plan.RenderItem(0))
	}
	var wg sync.WaitGroup
	for user := range 8 {
		wg.Go(func() {
			for i := range 40 {
				c.ask(t.Context(), user, i)
			}
		})
	}
	wg.Wait()
	w.Close()
	if s := w.Stats(); s.Sent == 0 || s.Failed == 0 || s.Skipped == 0 || pilot.Stats().Faults() != 0 {
		t.Errorf("%+v, %d faults", s, pilot.Stats().Faults())
	}
	found := 0
	for i := range 9 {
		for k := range 9 {
			plan := c.plan(i, k)
			believed, resident := pilot.Match(c.request(c.pages[i], c.pages[k])).Plain, engine.Resident(c.build(&plan))
			if found += believed; believed > resident {
				t.Errorf("blocks %d, %d: %d tokens are believed to be resident, %d are", i, k, believed, resident)
			}
		}
	}
	if found == 0 {
		t.Error("the index is empty")
	}
}

// crowd asks about a few pages.
type crowd struct {
	pilot  *contextpilot.Pilot
	engine *sim.Engine
	warmer *engines.Warmer
	system string
	pages  []contextpilot.Block
}

func (c *crowd) request(blocks ...contextpilot.Block) contextpilot.Request {
	return contextpilot.Request{HeadTokens: tokens.Count(c.system), Blocks: blocks}
}

// plan returns one of these pages, in this order.
func (c *crowd) plan(pages ...int) contextpilot.Plan {
	p, _ := contextpilot.New(contextpilot.Config{Policy: "retrieval"})
	req := c.request()
	for _, i := range pages {
		req.Blocks = append(req.Blocks, c.pages[i])
	}
	return p.Plan(req)
}

func (c *crowd) build(p *contextpilot.Plan) engines.Request {
	return engines.Request{ID: p.RequestID, Messages: []engines.Message{
		{Role: engines.System, Content: c.system}, {Role: engines.User, Content: p.Prompt("")},
	}}
}

// ask is one request of a user. Some are given up while they are retrieved, some find nothing, some have several searches that report
// what they have found.
func (c *crowd) ask(ctx context.Context, user, i int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var blocks []contextpilot.Block
	for k := range 4 {
		blocks = append(blocks, c.pages[(user+i*(k+1))%9])
	}
	retrieve := func(_ context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error) {
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() { provisional(blocks[k:]) })
		}
		if i%5 == 0 {
			cancel()
		}
		wg.Wait()
		if i%7 == 0 {
			return nil, errNoBlocks
		}
		return blocks, nil
	}
	plan, err := c.warmer.Retrieve(ctx, c.request(), c.build, retrieve)
	if err != nil {
		return
	}
	if _, err := c.engine.Generate(ctx, c.build(&plan), nil); err != nil {
		c.pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: plan.RequestID})
	}
	if user == 0 && i == 30 {
		c.engine.Reset()
	}
}

var errNoBlocks = errors.New("nothing found")
