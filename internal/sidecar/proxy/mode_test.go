package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// settings are those that change while a proxy runs.
type settings struct {
	shadow  bool
	holdOut float64
}

// changing is a proxy whose settings change, and which has sent a prompt that others are ordered after.
func changing(t *testing.T, first settings, change func(*proxy.Options)) (a *asked, now *atomic.Pointer[settings]) {
	t.Helper()
	now = new(atomic.Pointer[settings])
	now.Store(&settings{})
	a = ask(t, func(o *proxy.Options) {
		o.Live = func() (bool, float64) { s := now.Load(); return s.shadow, s.holdOut }
		if change != nil {
			change(o)
		}
	})
	a.send(passagesOf("a", "b", "c"), "before")
	now.Store(&first)
	return a, now
}

// turnOf is a turn of a conversation whose system text and tool results are changed when they are planned.
func turnOf(question string, n int) string {
	results := []string{docs("k k", "l l"), docs("l l", "m m"), docs("m m", "k k", "n n"), docs("n n", "o o")}
	return chat(passagesOf("c", "b", "a"), question, results[:n]...)
}

// Whatever the settings become, a conversation goes on as it began, and another one begins by the present settings.
func TestOldBytesNeverChangeOverAReload(t *testing.T) {
	plain, shadow, held := settings{}, settings{shadow: true}, settings{holdOut: 1}
	for name, steps := range map[string][]settings{
		"shadow, live":           {shadow, plain, plain},
		"live, shadow":           {plain, shadow, shadow},
		"live, held out":         {plain, held, held},
		"held out, live":         {held, plain, plain},
		"held out, shadow":       {held, shadow, shadow},
		"shadow, held out":       {shadow, held, held},
		"held out, shadow, live": {held, shadow, plain},
		"there and back":         {plain, shadow, plain},
		"back and there":         {shadow, plain, shadow},
	} {
		for _, header := range [][]string{nil, {proxy.SessionHeader, "one"}} {
			t.Run(fmt.Sprint(name, header), func(t *testing.T) {
				a, now := changing(t, steps[0], nil)
				var before []string
				for n, s := range append([]settings{steps[0]}, steps...) {
					now.Store(&s)
					post(a.Proxy, chatPath, "", turnOf("q", n), header...)
					r := a.reports.wait(t)
					got := contents(t, a.engine.last())
					if n > 0 {
						if diff := cmp.Diff(before, got[:len(before)]); diff != "" {
							t.Fatalf("turn %d: earlier messages changed (-before +now):\n%s", n, diff)
						}
					}
					changed := a.engine.last() != turnOf("q", n)
					if want := steps[0] == plain; changed != want {
						t.Errorf("turn %d: planned and changed: %v, want %v", n, changed, want)
					}
					if r.Carried != (s != plain && steps[0] == plain || s == plain && steps[0] != plain) {
						t.Errorf("turn %d: carried %v", n, r.Carried)
					}
					before = got
				}
				last := steps[len(steps)-1]
				post(a.Proxy, chatPath, "", turnOf("another question", 0))
				if changed := a.engine.last() != turnOf("another question", 0); changed != (last == plain) {
					t.Errorf("a conversation that begins: changed %v", changed)
				}
				if r := a.reports.wait(t); r.Carried || r.Shadow != last.shadow || r.HeldOut != (last.holdOut > 0) {
					t.Errorf("a conversation that begins: %+v", r)
				}
			})
		}
	}
}

// A conversation that is held out does not make another one with the same messages so, nor the other way round.
func TestGroupsWithTheSameMessages(t *testing.T) {
	a, now := changing(t, settings{}, nil)
	for n := range 4 {
		for _, c := range []struct {
			session string
			holdOut float64
		}{{"held", 1}, {"planned", 0}} {
			now.Store(&settings{holdOut: c.holdOut})
			post(a.Proxy, chatPath, "", turnOf("q", n), proxy.SessionHeader, c.session)
			a.reports.wait(t)
			if changed := a.engine.last() != turnOf("q", n); changed != (c.session == "planned") {
				t.Errorf("turn %d of %s: changed %v", n, c.session, changed)
			}
		}
	}
}

// noted counts what a journal is given.
type noted struct{ planned, gone atomic.Int64 }

func (n *noted) Planned(contextpilot.Request, []int) { n.planned.Add(1) }
func (n *noted) Gone(contextpilot.Scope, string)     { n.gone.Add(1) }
func (n *noted) Cleared([]string)                    {}

// Shadow mode says what would have been done, and leaves what was sent, in the index, on disk and elsewhere, alone.
func TestShadowIsApart(t *testing.T) {
	log := &noted{}
	mem := orders.NewMemory(0, 0)
	a, now := changing(t, settings{shadow: true}, func(o *proxy.Options) { o.Orders, o.Journal = mem, log })
	puts, plans := mem.Len(""), log.planned.Load()
	var live contextpilot.Scope
	for _, s := range a.pilot.Scopes() {
		live = s
	}
	for n := range 4 {
		post(a.Proxy, chatPath, "", turnOf("q", n))
		r := a.reports.wait(t)
		if !r.Shadow || !r.Planned || n > 1 && r.LeftOut == 0 {
			t.Errorf("turn %d: %+v", n, r)
		}
	}
	first := a.send(passagesOf("d", "a"), "q") // predicted from what shadow mode would have sent
	if second := a.send(passagesOf("e", "a", "d"), "q"); first.Predicted != 0 || second.Predicted < 300 || len(second.Orders) != 1 {
		t.Errorf("predicted %d, then %d, ordered %v", first.Predicted, second.Predicted, second.Orders)
	}
	a.engine.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	a.send(passagesOf("f", "g"), "q")
	if mem.Len("") != puts || log.planned.Load() != plans || log.gone.Load() != 0 {
		t.Errorf("%d orders were put, %d prompts noted, %d gone", mem.Len("")-puts, log.planned.Load()-plans, log.gone.Load())
	}
	if n := a.prompts(live); n != 1 {
		t.Errorf("the index of what was sent holds %d prompts, want 1", n)
	}
	now.Store(&settings{})
	body := chat("s", "another", docs("l l", "k k"))
	if post(a.Proxy, chatPath, "", body); a.engine.last() != body {
		t.Errorf("tool results are ordered after those of shadow mode: %s", a.engine.last())
	}
}

// What was asked in shadow mode and is asked again begins by the present settings, and goes on so.
func TestTheSameQuestionBeginsAnew(t *testing.T) {
	a, now := changing(t, settings{shadow: true}, nil)
	post(a.Proxy, chatPath, "", turnOf("q", 0))
	now.Store(&settings{})
	for n := range 3 {
		if post(a.Proxy, chatPath, "", turnOf("q", n)); a.engine.last() == turnOf("q", n) {
			t.Errorf("turn %d is forwarded as it came", n)
		}
	}
}

// Examples that stand in front of every conversation are none of its turns.
func TestExamplesAreNoTurns(t *testing.T) {
	a, now := changing(t, settings{shadow: true}, nil)
	with := func(question string) string {
		body := chat(passagesOf("c", "b", "a"), "an example", "its result")
		return strings.TrimSuffix(body, `],"model":"m"}`) + fmt.Sprintf(`,{"role":"user","content":%q}],"model":"m"}`, question)
	}
	post(a.Proxy, chatPath, "", with("q1"))
	now.Store(&settings{})
	if post(a.Proxy, chatPath, "", with("q2")); a.engine.last() == with("q2") || !strings.Contains(a.engine.last(), "q2") {
		t.Errorf("a new conversation is forwarded as it came: %.200s", a.engine.last())
	}
}
