package engines_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// What fails leaves nothing in the index, and the next request is warmed up as if it had not been.
func TestWarmFails(t *testing.T) {
	for name, fault := range map[string]error{"refused": engines.ErrRefused, "unreachable": engines.ErrUnreachable, "panic": errEngine} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
				x := w.begin(contextpilot.Request{})
				x.Guess(pages("a", "b"))
				w.engine.seen(t, 1)[0].reply <- fault
				w.engine.seen(t, 2)[1].reply <- fault
				w.live(0)
				w.stats(engines.WarmerStats{Sent: 2, Failed: 2})
				w.begin(contextpilot.Request{})
				w.engine.seen(t, 3)
				if w.pilot.Stats().Faults() != 0 {
					t.Error("the pilot has faults")
				}
			})
		})
	}
}

// The end of the request's context ends what is computed for it.
func TestWarmContextEnds(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		x := w.Begin(ctx, contextpilot.Request{}, w.build)
		w.engine.seen(t, 1)[0].reply <- nil
		x.Guess(pages("a", "b"))
		guess := w.engine.seen(t, 2)[1]
		time.Sleep(2 * time.Minute)
		if synctest.Wait(); guess.wanted() {
			t.Error("not cancelled")
		}
		w.live(0)
		w.stats(engines.WarmerStats{Sent: 2, Computed: 70, Cancelled: 1})
	})
}

// Close takes back what is under way.
func TestWarmClose(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.begin(contextpilot.Request{})
		x.Guess(pages("a", "b"))
		w.engine.seen(t, 1)
		w.Close()
		w.engine.seen(t, 1)
		w.live(0)
		x.Guess(pages("c", "d"))
		w.real(x, "c")
		w.engine.seen(t, 1)
		w.live(1)
	})
}

// A build that panics is the caller's fault, and leaves nothing behind.
func TestWarmBuildPanics(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		x := w.Begin(t.Context(), contextpilot.Request{}, func(p *contextpilot.Plan) engines.Request {
			if p.Len() > 1 {
				panic("build")
			}
			return w.build(p)
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			x.Guess(pages("a", "b"))
		}()
		w.live(0)
		w.real(x, "a")
	})
}

// Ready waits for what is right if the engine would compute it anew.
func TestUnshared(t *testing.T) {
	for _, unshared := range []bool{false, true} {
		testWarmer(t, engines.WarmerOptions{Unshared: unshared}, func(t *testing.T, w *warmUp) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			x := w.Begin(ctx, contextpilot.Request{}, w.build)
			head := w.engine.seen(t, 1)[0]
			ready := make(chan struct{})
			go func() {
				defer close(ready)
				w.real(x, "a")
			}()
			synctest.Wait()
			select {
			case <-ready:
				if unshared {
					t.Error("Ready has not waited")
				}
			default:
				if !unshared {
					t.Error("Ready waits")
				}
			}
			head.reply <- nil
			<-ready
			synctest.Wait()

			w.pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared})
			y := w.Begin(ctx, contextpilot.Request{}, w.build)
			w.engine.seen(t, 2)
			time.AfterFunc(time.Second, cancel) // or with the request
			w.real(y, "a")
		})
	}
}

func TestRetrieve(t *testing.T) {
	testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
		plan, err := w.Retrieve(t.Context(), contextpilot.Request{Query: how, Session: "s"}, w.build,
			func(_ context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error) {
				head := w.engine.seen(t, 1)[0]
				provisional(pages("b", "a"))
				head.reply <- nil
				w.engine.seen(t, 2)
				return pages("a", "b", "c"), nil
			})
		request := w.build(&plan)
		if err != nil || blocksOf(request) != "b a c a again" || plan.Session != "s" || plan.Turn != 1 {
			t.Errorf("%q, %v: %s", blocksOf(request), err, plan.Explain())
		}
		if guess := w.engine.seen(t, 2)[1]; !guess.wanted() {
			t.Error("what is right was cancelled")
		}
	})
}

// A retrieval that fails ends what was begun for it.
func TestRetrieveFails(t *testing.T) {
	fault := errors.New("no such index")
	for name, fail := range map[string]func() error{"error": func() error { return fault }, "panic": func() error { panic(fault) }} {
		t.Run(name, func(t *testing.T) {
			testWarmer(t, engines.WarmerOptions{}, func(t *testing.T, w *warmUp) {
				err := func() (err error) {
					defer func() {
						if r := recover(); r != nil {
							err = r.(error)
						}
					}()
					_, err = w.Retrieve(t.Context(), contextpilot.Request{}, w.build,
						func(_ context.Context, provisional func([]contextpilot.Block)) ([]contextpilot.Block, error) {
							provisional(pages("a", "b"))
							w.engine.seen(t, 1)
							return nil, fail()
						})
					return err
				}()
				if !errors.Is(err, fault) {
					t.Errorf("error %v", err)
				}
				if synctest.Wait(); w.engine.seen(t, 1)[0].wanted() {
					t.Error("the head is still computed")
				}
				w.live(0)
			})
		})
	}
}
