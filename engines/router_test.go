package engines_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

func TestNewRouter(t *testing.T) {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	for name, o := range map[string]engines.RouterOptions{
		"Pilot":         {},
		"MaxShare 0.5":  {Pilot: pilot, MaxShare: 0.5},
		"MaxShare -1":   {Pilot: pilot, MaxShare: -1},
		"MaxShare NaN":  {Pilot: pilot, MaxShare: math.NaN()},
		"MaxShare -Inf": {Pilot: pilot, MaxShare: math.Inf(-1)},
	} {
		if _, err := engines.NewRouter(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, _ := newRouter(t, engines.RouterOptions{}, "a")
	for name, add := range map[string]string{`"a"`: "a", "name": ""} {
		if err := r.Add(add, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Add(%q): %v", add, err)
		}
	}
	for what, err := range map[string]error{"Remove": r.Remove("b"), "SetUp": r.SetUp("b", true), "Observe": r.Observe("b")} {
		if !errors.Is(err, engines.ErrUnknownReplica) || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A request goes where its documents are, in the order that is best there.
func TestRouteFollowsThePrefix(t *testing.T) {
	r, pilot := newRouter(t, loose, "a", "b")
	serve(t, r, contextpilot.Request{Blocks: docs("x y z")}, "b")
	serve(t, r, contextpilot.Request{Blocks: docs("u v w")}, "a")

	rt := serve(t, r, contextpilot.Request{Blocks: docs("q z y x")})
	equal(t, "to a", "a: x y z q", rt.Score.Replica+": "+order(rt.Plan))
	equal(t, "scope", contextpilot.Scope{Replica: "a"}, rt.Plan.Scope)
	rt = serve(t, r, contextpilot.Request{Blocks: docs("w v u x")})
	equal(t, "to b", "b: u v w x", rt.Score.Replica+": "+order(rt.Plan))
	rt = serve(t, r, contextpilot.Request{Blocks: docs("z y x")}, "a")
	equal(t, "not where it was said not to go", "b", rt.Score.Replica)
	equal(t, "faults", int64(0), pilot.Stats().Faults())
}

// Documents that a replica has had, though not in front of a prompt, draw a request there.
func TestRouteMeetsTheFamiliar(t *testing.T) {
	for affinity, want := range map[float64]string{0: "b", -1: "a"} {
		o := loose
		o.Affinity = affinity
		r, _ := newRouter(t, o, "a", "b")
		serve(t, r, contextpilot.Request{Blocks: docs("w y z")}, "a")
		serve(t, r, contextpilot.Request{Blocks: docs("p q")}, "b")
		rt := serve(t, r, contextpilot.Request{Blocks: docs("z y")}) // of which nothing is resident in front
		equal(t, fmt.Sprint("affinity ", affinity), want, rt.Score.Replica)
	}
}

// What waits in front of a request is weighed against what it would have to compute elsewhere, until its first token.
func TestRouteAvoidsQueues(t *testing.T) {
	r, _ := newRouter(t, loose, "a", "b")
	serve(t, r, contextpilot.Request{Blocks: docs("x y")}, "b")
	var waiting []*engines.Route
	for i := range 8 {
		waiting = append(waiting, route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("n", i))}, "b"))
	}
	equal(t, "state", []engines.ReplicaState{{Name: "a", Up: true, Pending: 800, Under: 8, Prefill: 1000}, {Name: "b", Up: true}},
		r.Replicas())
	// 200 tokens against 0.3 × 800
	equal(t, "x y are at a, which is busy", "b", route(t, r, contextpilot.Request{ID: "probe", Blocks: docs("x y")}).Score.Replica)
	if err := r.Remove("b"); err != nil {
		t.Fatal(err)
	}
	for _, rt := range waiting {
		rt.First()
		rt.First()
		rt.Done(engines.Usage{}, nil)
		rt.Done(engines.Usage{}, errors.New("too late"))
	}
	equal(t, "state", []engines.ReplicaState{{Name: "a", Up: true}}, r.Replicas())
}

// A conversation stays where its history is, and leaves when that replica is busier than the history is worth.
func TestSessionSticks(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{}, "a", "b", "c", "d")
	var prior []string
	var end contextpilot.Position
	turn := func(n int) *engines.Route {
		req := contextpilot.Request{Session: "s", Blocks: docs(fmt.Sprintf("t%d u%d", n, n)), Prior: prior, Behind: end}
		rt := route(t, r, req)
		end = rt.Plan.End
		prior = append(prior, rt.Plan.Prompt(""), "answer")
		return rt
	}
	home := ""
	for n := range 8 {
		rt := turn(n)
		if home == "" {
			home = rt.Score.Replica
		}
		if rt.Score.Replica != home {
			t.Fatalf("turn %d went to %s: %+v", n, rt.Score.Replica, r.Replicas())
		}
		if n > 0 && rt.Score.Match.Tokens < 200*n {
			t.Errorf("turn %d: %+v", n, rt.Score.Match)
		}
		rt.Done(engines.Usage{}, nil)
	}
	var others []string
	for _, s := range r.Replicas() {
		if s.Name != home {
			others = append(others, s.Name)
		}
	}
	route(t, r, contextpilot.Request{Blocks: []contextpilot.Block{{ID: "huge", Tokens: 100_000}}}, others...) // and never ends
	rt := turn(8)
	if rt.Score.Replica == home {
		t.Errorf("it waits behind 100,000 tokens: %+v", rt.Score)
	}
	equal(t, "turn", 9, rt.Plan.Turn)
}

// Two tenants have nothing in common, wherever they go.
func TestTenantsNeverShare(t *testing.T) {
	r, _ := newRouter(t, loose, "a", "b")
	for i := range 20 {
		for _, tenant := range []string{"red", "blue"} {
			rt := serve(t, r, contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant, Replica: "ignored"}, Blocks: docs("x y z")})
			equal(t, "scope", contextpilot.Scope{Tenant: tenant, Replica: rt.Score.Replica}, rt.Plan.Scope)
			if i == 0 && rt.Plan.Prefix.Tokens > 0 {
				t.Errorf("the first request of %s finds %d tokens", tenant, rt.Plan.Prefix.Tokens)
			}
			if i > 0 && rt.Plan.Prefix.Tokens != 300 {
				t.Errorf("request %d of %s finds %d tokens", i, tenant, rt.Plan.Prefix.Tokens)
			}
		}
	}
}

func TestErrNoReplica(t *testing.T) {
	r, pilot := newRouter(t, engines.RouterOptions{}, "a", "b")
	if err := r.SetUp("b", false); err != nil {
		t.Fatal(err)
	}
	equal(t, "the one that is up", "a", serve(t, r, contextpilot.Request{Blocks: docs("x")}).Score.Replica)
	if _, err := r.Route(contextpilot.Request{Blocks: docs("x")}, "a"); !errors.Is(err, engines.ErrNoReplica) {
		t.Errorf("all others are down: %v", err)
	}
	if err := errors.Join(r.SetUp("a", false), r.Remove("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Route(contextpilot.Request{Blocks: docs("x")}); !errors.Is(err, engines.ErrNoReplica) {
		t.Errorf("the last one is down: %v", err)
	}
	equal(t, "plans", int64(1), pilot.Stats().Plans)
	equal(t, "scores", 0, len(r.Scores(contextpilot.Request{Blocks: docs("x")})))
}

// What is known of a cache goes with its replica, however that goes; the others' stays.
func TestWhatIsKnownIsDropped(t *testing.T) {
	for name, drop := range map[string]func(r *engines.Router) error{
		"down and up": func(r *engines.Router) error { return errors.Join(r.SetUp("a", false), r.SetUp("a", true)) },
		"removed":     func(r *engines.Router) error { return errors.Join(r.Remove("a"), r.Add("a", nil)) },
		"cleared":     func(r *engines.Router) error { return r.Observe("a", contextpilot.Event{Kind: contextpilot.Cleared}) },
	} {
		t.Run(name, func(t *testing.T) {
			r, pilot := newRouter(t, loose, "a", "b")
			for _, tenant := range []string{"", "t"} {
				serve(t, r, contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}, Blocks: docs("x y")}, "b")
			}
			serve(t, r, contextpilot.Request{Blocks: docs("z")}, "a")
			if err := drop(r); err != nil {
				t.Fatal(err)
			}
			for _, tenant := range []string{"", "t"} {
				for _, s := range r.Scores(contextpilot.Request{Scope: contextpilot.Scope{Tenant: tenant}, Blocks: docs("x y")}) {
					if s.Match.Tokens+s.Match.Familiar > 0 {
						t.Errorf("%+v", s)
					}
				}
			}
			equal(t, "b's", 100, r.Scores(contextpilot.Request{Blocks: docs("z")})[1].Match.Tokens)
			equal(t, "scopes", int64(1), pilot.Stats().Scopes)
		})
	}
}

// Setting a replica to what it is already changes nothing.
func TestSetUpTwice(t *testing.T) {
	r, _ := newRouter(t, loose, "a", "b")
	serve(t, r, contextpilot.Request{Blocks: docs("x y")}, "b")
	before := r.Replicas()
	if err := errors.Join(r.SetUp("a", true), r.SetUp("b", true)); err != nil {
		t.Fatal(err)
	}
	equal(t, "state", before, r.Replicas())
	equal(t, "known", 200, r.Scores(contextpilot.Request{Blocks: docs("x y")})[0].Match.Tokens)
}

func TestAddDown(t *testing.T) {
	r, _ := newRouter(t, loose, "a")
	if err := r.AddDown("b", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		equal(t, "replica", "a", route(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("x", i))}).Score.Replica)
	}
	if err := errors.Join(r.SetUp("b", true), r.SetUp("a", false)); err != nil {
		t.Fatal(err)
	}
	equal(t, "replica", "b", route(t, r, contextpilot.Request{Blocks: docs("y")}).Score.Replica)
}

// Requests under way on a replica that is removed end in peace, and leave no trace on one that takes its name.
func TestRemoveWithRequestsUnderWay(t *testing.T) {
	r, pilot := newRouter(t, loose, "a", "b")
	under := []*engines.Route{
		route(t, r, contextpilot.Request{Blocks: docs("x")}, "b"),
		route(t, r, contextpilot.Request{Blocks: docs("y")}, "b"),
		route(t, r, contextpilot.Request{Session: "s", Blocks: docs("z")}, "b"),
	}
	if err := errors.Join(r.Remove("a"), r.Add("a", nil)); err != nil {
		t.Fatal(err)
	}
	want := []engines.ReplicaState{{Name: "a", Up: true}, {Name: "b", Up: true}}
	equal(t, "state", want, r.Replicas())
	under[0].First()
	under[0].Done(engines.Usage{PromptTokens: 500, CachedKnown: true}, nil)
	under[1].Done(engines.Usage{}, engines.ErrUnreachable)
	under[2].First()
	under[2].Done(engines.Usage{}, engines.ErrInterrupted)
	equal(t, "state", want, r.Replicas())
	equal(t, "nothing is known", 0, r.Scores(contextpilot.Request{Blocks: docs("x")})[0].Match.Tokens)
	equal(t, "faults", int64(0), pilot.Stats().Faults())
}

// When a replica joins or comes back, it need not make up for what it had no part in: the others keep their conversations.
func TestNewReplicaIsNotFlooded(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{}, "a", "b")
	for i := range 600 {
		serve(t, r, contextpilot.Request{Blocks: docs(fmt.Sprintf("h%d g%d x%d", i%4, i%4, i))})
	}
	if err := r.Add("c", nil); err != nil {
		t.Fatal(err)
	}
	soon, later := 0, 0
	for i := range 600 {
		switch rt := serve(t, r, contextpilot.Request{Blocks: docs(fmt.Sprintf("h%d g%d y%d", i%4, i%4, i))}); {
		case rt.Score.Replica != "c":
		case i < 60:
			soon++
		default:
			later++
		}
	}
	if soon > 30 || later < 90 {
		t.Errorf("of the first 60 requests %d went to the new one, of 540 further ones %d", soon, later)
	}
}

// What a request really cost counts, once it is known.
func TestUsageCorrectsTheWindow(t *testing.T) {
	r, _ := newRouter(t, engines.RouterOptions{Window: 2, MaxShare: 100}, "a")
	prefill := func() int { return r.Replicas()[0].Prefill }
	one := route(t, r, contextpilot.Request{Blocks: docs("x y")})
	equal(t, "expected", 200, prefill())
	one.Done(engines.Usage{PromptTokens: 210, CachedTokens: 160, CachedKnown: true}, nil)
	equal(t, "reported", 50, prefill())
	two := route(t, r, contextpilot.Request{Blocks: docs("u v")})
	two.Done(engines.Usage{PromptTokens: 210}, nil)
	equal(t, "not reported", 250, prefill())
	three := route(t, r, contextpilot.Request{Blocks: docs("w")})
	equal(t, "the first has left the window", 300, prefill())
	three.Done(engines.Usage{}, context.Canceled)
	equal(t, "its caller has left", 200, prefill())
	four := route(t, r, contextpilot.Request{Blocks: docs("p q r")})
	route(t, r, contextpilot.Request{Blocks: docs("s")})
	route(t, r, contextpilot.Request{Blocks: docs("t")})
	four.Done(engines.Usage{PromptTokens: 1000, CachedKnown: true}, nil)
	equal(t, "too late to count", 200, prefill())
}

// A request that failed before its answer began is taken back, with its turn; one that broke off is not.
func TestDoneTakesBack(t *testing.T) {
	for name, c := range map[string]struct {
		begun bool
		err   error
		known bool
	}{
		"unreachable":            {false, engines.ErrUnreachable, false},
		"refused":                {false, engines.ErrRefused, false},
		"interrupted":            {true, engines.ErrInterrupted, true},
		"interrupted, unnoticed": {false, fmt.Errorf("engine: %w", engines.ErrInterrupted), true},
		"another error, begun":   {true, errors.New("broken"), true},
		"answered":               {true, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRouter(t, loose, "a")
			rt := route(t, r, contextpilot.Request{Session: "s", Blocks: docs("x")})
			if c.begun {
				rt.First()
			}
			rt.Done(engines.Usage{}, c.err)
			known := r.Scores(contextpilot.Request{Blocks: docs("x")})[0].Match.Tokens > 0
			equal(t, "the index has it", c.known, known)
		})
	}
}

// Scores rate as gateways do.
func TestScores(t *testing.T) {
	r, pilot := newRouter(t, loose, "a", "b", "c")
	serve(t, r, contextpilot.Request{Blocks: docs("w x y z")}, "b", "c")
	serve(t, r, contextpilot.Request{Blocks: docs("w x")}, "a", "c")
	plans := pilot.Stats().Plans
	scores := r.Scores(contextpilot.Request{Blocks: docs("z y x w")})
	var got []string
	for _, s := range scores {
		got = append(got, fmt.Sprintf("%s %d left, cost %.0f, rating %.2f, full %v", s.Replica, s.Match.Prompt-s.Match.Tokens, s.Cost,
			s.Rating, s.Full))
	}
	equal(t, "scores", []string{
		"a 0 left, cost 0, rating 1.00, full false",
		"b 200 left, cost 200, rating 0.50, full false",
		"c 400 left, cost 398, rating 0.00, full false", // a little cheaper: it has computed nothing
	}, got)
	equal(t, "plans", plans, pilot.Stats().Plans)

	r, _ = newRouter(t, engines.RouterOptions{Window: 10}, "a", "b")
	for i := range 10 {
		serve(t, r, contextpilot.Request{Blocks: docs(fmt.Sprint("n", i))}, "b") // as if b had been away
	}
	scores = r.Scores(contextpilot.Request{Blocks: docs("n1")})
	equal(t, "a is cheaper, and full", []any{true, true, 0.0, 1.0},
		[]any{scores[0].Cost < scores[1].Cost, scores[0].Full, scores[0].Rating, scores[1].Rating})
	equal(t, "Route agrees", "b", route(t, r, contextpilot.Request{Blocks: docs("n1")}).Score.Replica)
}

// Events of an engine find the scope in which their request was planned.
func TestEventsFindTheirScope(t *testing.T) {
	r, pilot := newRouter(t, loose)
	engine := sim.New(sim.Options{CapacityTokens: 600})
	if err := r.Add("a", engine); err != nil {
		t.Fatal(err)
	}
	send := func(tenant, list string) {
		req := contextpilot.Request{Scope: contextpilot.Scope{Model: "m", Tenant: tenant}, Blocks: longDocs(list)}
		if _, err := r.Do(t.Context(), req, ask, nil); err != nil {
			t.Fatal(err)
		}
	}
	send("red", "x")
	send("blue", "x")
	st := pilot.Stats()
	equal(t, "served, each in its scope", []int64{2, 0, 2}, []int64{st.Events, st.EventsUnknown, st.LiveRequests})
	for i := range 20 {
		send("blue", fmt.Sprint("y", i)) // and out goes what was there before
	}
	st = pilot.Stats()
	if st.EventsUnknown > 0 || st.LiveRequests > 10 || st.Events < 30 {
		t.Errorf("%+v", st)
	}
	equal(t, "red's is lost", 0, pilot.Match(contextpilot.Request{
		Scope:  contextpilot.Scope{Model: "m", Tenant: "red", Replica: "a"},
		Blocks: longDocs("x"),
	}).Tokens)
	if err := r.Observe("a", contextpilot.Event{Kind: contextpilot.Served, Request: "a stranger's"}); err != nil {
		t.Error(err)
	}
	equal(t, "an unknown request is not passed on", st.Events, pilot.Stats().Events)
	if err := r.Remove("a"); err != nil {
		t.Fatal(err)
	}
	before := pilot.Stats().Events
	if _, err := engine.Generate(t.Context(), engines.Request{ID: "x", Messages: []engines.Message{{Content: "hello"}}}, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, "after its removal", before, pilot.Stats().Events)
}

// longDocs makes blocks whose texts have about 100 tokens.
func longDocs(list string) []contextpilot.Block {
	var out []contextpilot.Block
	for id := range strings.FieldsSeq(list) {
		out = append(out, contextpilot.Block{ID: id, Text: strings.Repeat("words of "+id+" ", 30)})
	}
	return out
}

// ask makes the engine's request of a plan.
func ask(p *contextpilot.Plan) engines.Request {
	return engines.Request{ID: p.RequestID, Messages: []engines.Message{{Role: engines.User, Content: p.Prompt("Why?")}}}
}
