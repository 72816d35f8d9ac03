package engines_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// Many clients while replicas come, go and lose their caches. Run it with -race.
func TestRouterRace(t *testing.T) {
	r, pilot := newRouter(t, engines.RouterOptions{Window: 20})
	replica := func() engines.Engine { return sim.New(sim.Options{CapacityTokens: 3000}) }
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		add(t, r, name, replica())
	}
	var clients, upheaval sync.WaitGroup
	stop := make(chan struct{})
	upheaval.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := names[1+i%3] // there is always one
			var err error
			switch i % 4 {
			case 0:
				err = errors.Join(r.Remove(name), r.Add(name, replica()))
			case 1:
				err = errors.Join(r.SetUp(name, false), r.SetUp(name, true))
			case 2:
				err = r.Observe(name, contextpilot.Event{Kind: contextpilot.Cleared})
			default:
				_ = r.Scores(contextpilot.Request{Blocks: longDocs("x y")})
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for g := range 8 {
		clients.Go(func() {
			for i := range 60 {
				req := contextpilot.Request{
					Session: fmt.Sprint("s", (g+i)%5), Scope: contextpilot.Scope{Tenant: fmt.Sprint(g % 2)},
					Blocks: longDocs(fmt.Sprintf("x%d y%d z%d", i%3, g%3, i)),
				}
				if _, err := r.Do(t.Context(), req, ask, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	upheaval.Wait()
	for _, s := range r.Replicas() {
		if s.Under != 0 || s.Pending != 0 || !s.Up || s.Prefill < 0 {
			t.Errorf("afterwards: %+v", s)
		}
	}
	if st := pilot.Stats(); st.Faults() > 0 || st.Plans != 8*60 || st.Scopes > 8 {
		t.Errorf("%+v", st)
	}
}

// Requests that arrive together do not all run to the replica that looked best to each.
func TestRouteTogether(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{}, "a", "b", "c", "d")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if _, err := r.Route(contextpilot.Request{Blocks: docs(fmt.Sprint("n", i))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range r.Replicas() {
		if s.Under != 16 || s.Pending != 1600 {
			t.Errorf("%+v", s)
		}
	}
}

// interrupting is a tokenizer that does something at its n-th call: while a pilot is asked, or while it plans.
type interrupting struct {
	at, calls int
	do        func()
}

func (i *interrupting) Count(text string) int {
	if i.calls++; i.calls == i.at {
		i.do()
	}
	return contextpilot.Estimate{}.Count(text)
}

// A replica that goes while a request is on its way to it gets another one, or leaves nothing behind.
func TestGoneMeanwhile(t *testing.T) {
	for name, run := range map[string]func(*engines.Router) error{
		"removed": func(r *engines.Router) error { return r.Remove("a") },
		"down":    func(r *engines.Router) error { return r.SetUp("a", false) },
		"cleared": func(r *engines.Router) error { return r.Observe("a", contextpilot.Event{Kind: contextpilot.Cleared}) },
		"another": func(r *engines.Router) error { return errors.Join(r.Remove("a"), r.Add("a", nil)) },
		"all":     func(r *engines.Router) error { return errors.Join(r.Remove("a"), r.Remove("b")) },
	} {
		t.Run(name, func(t *testing.T) {
			when := &interrupting{}
			pilot, err := contextpilot.New(contextpilot.Config{Tokenizer: when, BlockSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			one := contextpilot.Request{Blocks: []contextpilot.Block{{ID: "x", Text: "text of x"}}}
			o := loose
			o.Pilot = pilot
			r, _ := newRouter(t, o, "a", "b")
			serve(t, r, one, "b")
			before := when.calls
			serve(t, r, one, "b")
			each := (when.calls - before) / 2 // calls of asking, and of planning

			// while it is asked
			when.at, when.do = when.calls+1, func() {
				if err := run(r); err != nil {
					t.Error(err)
				}
			}
			rt, err := r.Route(one)
			switch name {
			case "all":
				if !errors.Is(err, engines.ErrNoReplica) {
					t.Errorf("got %v", err)
				}
				return
			case "removed", "down":
				if err != nil || rt.Score.Replica != "b" {
					t.Errorf("%+v, %v", rt, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}

			// while it plans
			serve(t, r, one, "b")
			when.at = when.calls + each + 1
			rt = route(t, r, one, "b")
			equal(t, "goes to", "a", rt.Score.Replica)
			equal(t, "is known of a", contextpilot.Match{Prompt: rt.Score.Match.Prompt}, r.Scores(one)[0].Match)
		})
	}
}
