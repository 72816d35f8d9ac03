package holdback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
)

const second = time.Second

// text returns some n tokens that begin with a name.
func text(name string, n int) string { return (name + strings.Repeat(" and so on", n))[:4*n] }

// prompt returns a prompt of texts.
func prompt(texts ...string) holdback.Prompt {
	return holdback.Prompt{Chain: holdback.Chain("", texts...)}
}

var shared = text("shared", 2000)

func newGate(t testing.TB, o holdback.Options) *holdback.Gate {
	t.Helper()
	g, err := holdback.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func slots(n int) func() int { return func() int { return n } }

// run is a request of a test: it enters at a time, and its answer begins and ends so long after it was let go.
type run struct {
	at, first, end time.Duration
	prompt         holdback.Prompt
	fails          bool          // before its answer begins
	leaves         time.Duration // how long after it came its context ends; 0: never
}

// play plays requests in virtual time, and returns when each was let go, -1 if it was not.
func play(t *testing.T, g *holdback.Gate, runs ...run) []time.Duration {
	t.Helper()
	went := make([]time.Duration, len(runs))
	start := time.Now()
	done := make(chan struct{})
	for i, r := range runs {
		go func() {
			defer func() { done <- struct{}{} }()
			time.Sleep(r.at)
			ctx := context.Background()
			if r.leaves > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, r.leaves)
				defer cancel()
			}
			came := time.Now()
			pass, err := g.Enter(ctx, r.prompt)
			if waited := time.Since(came) > 0; err == nil && pass.Held() != waited {
				t.Errorf("request %d: held %v, waited %v", i, pass.Held(), waited)
			}
			if went[i] = time.Since(start); err != nil {
				went[i] = -1
				return
			}
			time.Sleep(r.first)
			if r.fails {
				pass.Done(false, -1)
				return
			}
			pass.First()
			time.Sleep(r.end)
			pass.Done(true, -1)
		}()
	}
	for range runs {
		<-done
	}
	return went
}

// Who is let go when, in front of both kinds of engines.
func TestWhoWaits(t *testing.T) {
	leader := run{first: 2 * second, end: second, prompt: prompt(shared, text("a", 100))}
	later := func(at time.Duration, texts ...string) run {
		return run{at: at, first: second / 10, end: second, prompt: prompt(texts...)}
	}
	found := later(second, shared, text("b", 100))
	found.prompt.Found, found.prompt.Left = 2000, 100
	failing, gone := leader, later(second, shared)
	failing.fails, gone.leaves = true, second/2
	endless := leader
	endless.first = time.Hour
	for _, c := range []struct {
		name         string
		paged, slots []time.Duration // when each is let go
		runs         []run
	}{
		{"alone", []time.Duration{0}, []time.Duration{0}, []run{leader}},
		{"the same beginning", []time.Duration{0, 2 * second}, []time.Duration{0, 3 * second}, []run{leader, later(second, shared, "b")}},
		{"others go on", []time.Duration{0, second}, []time.Duration{0, second}, []run{leader, later(second, text("other", 2000))}},
		{
			"one after the other",
			[]time.Duration{0, 2 * second, 2 * second},
			[]time.Duration{0, 3 * second, 4100 * time.Millisecond},
			[]run{leader, later(second, shared, "b"), later(second+1, shared, "c")},
		},
		{"too little", []time.Duration{0, second}, []time.Duration{0, second}, []run{leader, later(second, shared[:4*90])}},
		{
			"just enough", // of 2100 tokens, which take 2 s; on a slot it waits no longer than these take after the first piece
			[]time.Duration{0, 2 * second},
			[]time.Duration{0, 2*second + 2*second*4/65},
			[]run{leader, later(second, shared[:4*128])},
		},
		{"an index knows it", []time.Duration{0, second}, []time.Duration{0, 3 * second}, []run{leader, found}},
		{"computed before", []time.Duration{0, 5 * second}, []time.Duration{0, 5 * second}, []run{leader, later(5*second, shared, "b")}},
		{"the leader fails", []time.Duration{0, 2 * second}, []time.Duration{0, 2 * second}, []run{failing, later(second, shared)}},
		{"the leader hangs", []time.Duration{0, 61 * second}, []time.Duration{0, 61 * second}, []run{endless, later(second, shared)}},
		{
			"prompts are known to take longer than the bound",
			[]time.Duration{0, 80 * second, 81 * second},
			[]time.Duration{0, 80 * second, 81 * second},
			[]run{
				{first: 70 * second, prompt: prompt(text("other", 2100))},
				{at: 80 * second, first: 70 * second, prompt: prompt(shared, text("a", 100))},
				later(81*second, shared, "b"),
			},
		},
		{"gone", []time.Duration{0, -1}, []time.Duration{0, -1}, []run{leader, gone}},
	} {
		for kind, want := range map[string][]time.Duration{"paged": c.paged, "slots": c.slots} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := holdback.Options{}
					if kind == "slots" {
						o.Slots = slots(4)
					}
					if diff := cmp.Diff(want, play(t, newGate(t, o), c.runs...)); diff != "" {
						t.Errorf("let go (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// With one slot, or none, nothing is held.
func TestOneSlot(t *testing.T) {
	for _, n := range []int{0, 1} {
		g := newGate(t, holdback.Options{Slots: slots(n)})
		if g.On() {
			t.Errorf("%d slots: requests may be held", n)
		}
		for range 2 {
			if _, err := g.Enter(t.Context(), prompt(shared)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A prefix that all slots have, because as many requests have computed it, is waited for no more.
func TestAllSlotsHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, holdback.Options{Slots: slots(2), Longest: second})
		r := run{first: 5 * second, end: 5 * second, prompt: prompt(shared)}
		late := r
		late.at = second / 2
		third := r
		third.at = 60 * second
		fourth, fifth := third, third
		fourth.at, fifth.at = 61*second, 62*second
		got := play(t, g, r, late, third, fourth, fifth)
		want := []time.Duration{0, 1500 * time.Millisecond, 60 * second, 61 * second, 62 * second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("let go (-want +got):\n%s", diff)
		}
	})
}

// A copy that the engine says not to have had is forgotten: the next ones wait for the one that computes it.
func TestCacheHasLostIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cached, want := range map[int]int{-1: 0, 2000: 0, 1900: 0, 0: 1} {
			g := newGate(t, holdback.Options{Slots: slots(4), Longest: second})
			enter := func() *holdback.Pass {
				p, err := g.Enter(t.Context(), prompt(shared))
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			a := enter()
			b := enter() // late
			a.First()
			a.Done(true, -1)
			b.Done(true, -1)
			enter().Done(true, cached) // two copies, as far as is known
			before := g.Stats().Held
			x := enter()
			y := enter()
			if got := int(g.Stats().Held - before); got != want {
				t.Errorf("%d tokens cached: %d held, want %d", cached, got, want)
			}
			x.Done(true, -1)
			y.Done(true, -1)
		}
	})
}

// Answers on slots are not waited for longer than computing the prefix takes, and not at all once they are known to take longer.
func TestLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, holdback.Options{Slots: slots(4)})
		r := run{first: second, end: 30 * second, prompt: prompt(shared)}
		other := r
		got := play(t, g, r, other)
		if got[0]+got[1] != 2*second {
			t.Errorf("let go after %v, want 0 and 2 s: computing takes one second", got)
		}
		a, b := r, r
		a.prompt, b.prompt = prompt(text("new", 2000)), prompt(text("new", 2000))
		if got := play(t, g, a, b); got[0]+got[1] != 0 {
			t.Errorf("let go after %v, although answers take 30 s", got)
		}
		if s := g.Stats(); s.Held != 1 || s.Late != 1 || s.Served != 0 || s.Waited != 2*second || s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A reset lets all go with an error, and forgets what was computed.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, holdback.Options{})
		leader, err := g.Enter(t.Context(), prompt(shared))
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, err := g.Enter(t.Context(), prompt(shared))
			failed <- err
		}()
		synctest.Wait()
		g.Reset()
		if err := <-failed; !errors.Is(err, holdback.ErrReset) {
			t.Errorf("error %v", err)
		}
		leader.First()
		leader.Done(true, 0)
		second, err := g.Enter(t.Context(), prompt(shared))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			pass, err := g.Enter(t.Context(), prompt(shared))
			pass.Done(true, 0)
			failed <- err
		}()
		synctest.Wait()
		if s := g.Stats(); s.Waiting != 1 || s.Held != 2 || s.Reset != 1 {
			t.Errorf("after the reset the prefix counts as computed: %+v", s)
		}
		second.First()
		if err := <-failed; err != nil {
			t.Error(err)
		}
	})
}

// Of several that are let go together, those that load and those that compute take turns, the first come first.
func TestTakeTurns(t *testing.T) {
	for _, c := range []struct{ kinds, want string }{
		{"LLLCCC", "LCLCLC"}, {"CLLL", "CLLL"}, {"LLCL", "LCLL"}, {"??L?C", "??LC?"}, {"LLL", "LLL"}, {"CCLLC", "CLCLC"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, holdback.Options{Tokens: 500})
			leader, err := g.Enter(t.Context(), prompt(shared))
			if err != nil {
				t.Fatal(err)
			}
			order := g.Order()
			for i, kind := range c.kinds {
				p := prompt(shared, text(fmt.Sprint(i), 50))
				switch kind {
				case 'L':
					p.Found, p.Left = 1200, 900
				case 'C':
					p.Found, p.Left = 100, 2000
				}
				go func() {
					pass, err := g.Enter(t.Context(), p)
					if err != nil {
						t.Error(err)
					}
					pass.Done(true, -1)
				}()
				synctest.Wait()
			}
			leader.First()
			synctest.Wait()
			got := ""
			for _, p := range *order {
				switch {
				case p.Found > p.Left:
					got += "L"
				case p.Left > 0:
					got += "C"
				default:
					got += "?"
				}
			}
			if got != c.want {
				t.Errorf("%s: let go in the order %s, want %s", c.kinds, got, c.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    holdback.Options
		want string
	}{
		{holdback.Options{Tokens: -1}, "holdback: Options.Tokens -1: want at least 0"},
		{holdback.Options{Longest: -second}, "holdback: Options.Longest -1s: want at least 0s"},
	} {
		if _, err := holdback.New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

// What is known, and who waits, has an upper bound.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, holdback.Options{})
		for i := range 100 {
			pass, err := g.Enter(t.Context(), prompt(text(fmt.Sprint("prompt ", i), 64<<10)))
			if err != nil {
				t.Fatal(err)
			}
			pass.First()
			pass.Done(true, 0)
		}
		if n := g.Known(); n > 1<<16 {
			t.Errorf("%d prefixes are known", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 300 {
			go func() { _, _ = g.Enter(ctx, prompt(text("the same", 1000))) }()
		}
		synctest.Wait()
		if s := g.Stats(); s.Waiting != 256 {
			t.Errorf("%d are held", s.Waiting)
		}
		cancel()
		synctest.Wait()
		if s := g.Stats(); s.Waiting != 0 || s.Gone != 256 {
			t.Errorf("after all have gone: %+v", s)
		}
	})
}

// What a request that failed was to compute is not there: the next one computes it, and the one behind waits for that.
func TestFailedLeaderComputedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 4} {
			o := holdback.Options{}
			if n > 0 {
				o.Slots = slots(n)
			}
			r := run{first: second, prompt: prompt(shared)}
			failing, next, behind := r, r, r
			failing.fails, next.at, behind.at = true, 1100*time.Millisecond, 1200*time.Millisecond
			want := []time.Duration{0, next.at, next.at + second}
			if diff := cmp.Diff(want, play(t, newGate(t, o), failing, next, behind)); diff != "" {
				t.Errorf("%d slots: let go (-want +got):\n%s", n, diff)
			}
		}
	})
}

// A request whose context ends at the moment when it is let go leaves nothing behind that others wait for.
func TestGoneWhenLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			g := newGate(t, holdback.Options{})
			leader, err := g.Enter(t.Context(), prompt(shared))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if pass, err := g.Enter(ctx, prompt(shared, text("more", 500))); err == nil {
					pass.Done(false, -1)
				}
			}()
			synctest.Wait()
			cancel() // the other goroutine is awake, and has not looked at the gate yet
			leader.First()
			synctest.Wait()
			if _, err := g.Enter(t.Context(), prompt(shared, text("more", 500))); err != nil {
				t.Fatal(err)
			}
			if s := g.Stats(); s.Held > 1 {
				t.Fatalf("another request was held: %+v", s)
			}
		}
	})
}

// Answers that come in one piece do not say what computing the prompt took. Once one has ended, in front of slots none is held.
func TestAnswersInOnePiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, holdback.Options{Slots: slots(4)})
		for burst, want := range []time.Duration{60 * second, 30 * second, 30 * second} {
			start, ends := time.Now(), make(chan struct{})
			for i := range 4 {
				go func() {
					pass, err := g.Enter(t.Context(), prompt(text(fmt.Sprint("burst ", burst), 2000), fmt.Sprint(i)))
					if err != nil {
						t.Error(err)
					}
					time.Sleep(30 * second)
					pass.Done(true, -1)
					ends <- struct{}{}
				}()
			}
			for range 4 {
				<-ends
			}
			if got := time.Since(start); got != want {
				t.Errorf("burst %d took %v, want %v", burst, got, want)
			}
		}
	})
}
