package llamacpp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/enginetest"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
)

func TestConformance(t *testing.T) {
	for name, traits := range map[string]traits{
		"this release":    {slots: 2},
		"earlier release": {slots: 1, noMarker: true, noDetails: true, noSlotsPage: true},
		"no template":     {slots: 2, noTemplate: true},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T) engines.Engine {
				engine, _ := startFake(t, traits).engine(nil)
				return engine
			})
		})
	}
}

func question(id, text string) engines.Request {
	return engines.Request{ID: id, Messages: []engines.Message{{Role: engines.User, Content: text}}}
}

// What a request asks beside its messages: one slot, the token IDs, the slot's length. The caller's members stay.
func TestBody(t *testing.T) {
	f := startFake(t, traits{slots: 2})
	engine, l := f.engine(func(c *llamacpp.Config) {
		c.Server.Extra = map[string]json.RawMessage{"seed": json.RawMessage("7")}
	})
	req := question("a", "one two")
	req.Extra = map[string]json.RawMessage{"id_slot": json.RawMessage("1"), "n_probs": json.RawMessage("5")}
	ask(t.Context(), t, engine, req)
	var body map[string]json.RawMessage
	if err := json.Unmarshal(f.bodies[0], &body); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"id_slot": "1", "n_probs": "5", "seed": "7", "verbose": "true", "timings_per_token": "true",
		"response_fields": `["id_slot","tokens_cached"]`,
	} {
		if got := string(body[name]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if p := l.of("a"); p.Slot != 1 || p.Prompt != 4 {
		t.Errorf("predicted %+v", p)
	}
}

// Requests that the server cannot be asked about are sent all the same.
func TestBlind(t *testing.T) {
	t.Run("the server is loading its model", func(t *testing.T) {
		f := startFake(t, traits{slots: 2})
		engine, l := f.engine(nil)
		f.down = 2 // the question and the first attempt
		ask(t.Context(), t, engine, question("a", "one two three"))
		if p := l.of("a"); p.Slot != -1 || p.Exact || p.Cached != 0 {
			t.Errorf("predicted %+v", p)
		}
		if stats := engine.Stats(); stats.Blind != 1 {
			t.Errorf("stats %+v", stats)
		}
		// The slot on which it ran is not known; the next ones are right again.
		for _, id := range []string{"b", "c", "d"} {
			response := ask(t.Context(), t, engine, question(id, "one two three"))
			if p := l.of(id); p.Cached > response.Usage.CachedTokens || p.Exact && p.Cached != response.Usage.CachedTokens {
				t.Errorf("predicted %+v, usage %+v", p, response.Usage)
			}
		}
		if p := l.of("d"); !p.Exact || p.Cached == 0 {
			t.Errorf("predicted %+v", p)
		}
	})
	t.Run("no templates", func(t *testing.T) {
		f := startFake(t, traits{slots: 2, noTemplate: true})
		engine, l := f.engine(nil)
		for _, id := range []string{"a", "b"} {
			ask(t.Context(), t, engine, question(id, "one two three"))
			if p := l.of(id); p.Prompt != 0 || p.Exact {
				t.Errorf("predicted %+v", p)
			}
		}
		if _, err := engine.Predict(t.Context(), question("c", "one")); !errors.Is(err, engines.ErrRefused) {
			t.Errorf("Predict without templates: %v", err)
		}
	})
	t.Run("prompts of another length", func(t *testing.T) {
		f := startFake(t, traits{slots: 1, longerPrompt: 3})
		engine, _ := f.engine(nil)
		for _, id := range []string{"a", "b"} {
			ask(t.Context(), t, engine, question(id, "one two three"))
		}
		if stats := engine.Stats(); stats.Odd != 2 {
			t.Errorf("stats %+v", stats)
		}
		if slot := engine.Slots()[0]; slot.Tokens != 0 || slot.Requests != 0 {
			t.Errorf("slot %+v", slot)
		}
	})
}

func TestUnreachable(t *testing.T) {
	f := startFake(t, traits{slots: 1})
	engine, _ := f.engine(nil)
	f.stop()
	ctx := t.Context()
	if _, err := engine.Generate(ctx, question("a", "one"), nil); !errors.Is(err, engines.ErrUnreachable) {
		t.Errorf("Generate: %v", err)
	}
	_, infoErr := engine.Info(ctx)
	_, predictErr := engine.Predict(ctx, question("a", "one"))
	_, metricsErr := engine.Metrics(ctx)
	for name, err := range map[string]error{"Health": engine.Health(ctx), "Info": infoErr, "Predict": predictErr, "Metrics": metricsErr} {
		if !errors.Is(err, engines.ErrUnreachable) || !strings.Contains(err.Error(), f.URL) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request that waits for a slot can be given up; the next one gets it.
func TestCancelledWhileWaiting(t *testing.T) {
	f := startFake(t, traits{slots: 1})
	engine, _ := f.engine(nil)
	ask(t.Context(), t, engine, question("before", "zero"))
	var wait sync.WaitGroup
	held := f.hold(t, engine, question("long", "one"), &wait, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no patience")
	wait.Go(func() {
		_, err := engine.Generate(ctx, question("waiting", "two"), nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
			t.Errorf("error %v", err)
		}
	})
	for f.count("/tokenize") < 3 { // until its tokens are asked for
		runtime.Gosched()
	}
	cancel(reason)
	wait.Go(func() {
		if _, err := engine.Generate(t.Context(), question("next", "three"), nil); err != nil {
			t.Error(err)
		}
	})
	close(held)
	wait.Wait()
	if slot := engine.Slots()[0]; slot.Busy {
		t.Errorf("slot %+v", slot)
	}
}

// Many at once, while the server restarts now and then: nothing is lost but answers, and no prediction is above its report
// unless the server went away under it.
func TestManyAtOnce(t *testing.T) {
	f := startFake(t, traits{slots: 3})
	engine, l := f.engine(nil)
	var wait sync.WaitGroup
	for user := range 10 {
		wait.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("u%d-%d", user, i)
				response, err := engine.Generate(t.Context(), question(id, fmt.Sprintf("head %d %d %d", user%3, i%4, i)), nil)
				if err != nil {
					t.Errorf("%s: %v", id, err)
				} else if p := l.of(id); p.Exact && p.Cached != response.Usage.CachedTokens {
					t.Errorf("%s: predicted %+v, usage %+v", id, p, response.Usage)
				}
			}
		})
	}
	wait.Wait()
	if stats := engine.Stats(); stats.Equal != 200 {
		t.Errorf("stats %+v", stats)
	}
}

// TestPatienceOfMany: to wait for those that ask the server is part of the patience: of many at once the first ask in vain, and the
// others do not begin to ask when these have given up.
func TestPatienceOfMany(t *testing.T) {
	f := startFake(t, traits{slots: 3, noTokens: true})
	engine, _ := f.engine(func(c *llamacpp.Config) { c.Patience = 300 * time.Millisecond })
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			if _, err := engine.Predict(t.Context(), question(fmt.Sprint(i), "one")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wait.Wait()
	if n := f.count("/tokenize"); n > 20 {
		t.Errorf("tokens were asked for %d times", n)
	}
}

// A callback that panics does not keep the slot.
func TestPanickingCallback(t *testing.T) {
	f := startFake(t, traits{slots: 1})
	engine, _ := f.engine(nil)
	func() {
		defer func() { _ = recover() }()
		_, _ = engine.Generate(t.Context(), question("a", "one"), func(string) error { panic("oops") })
	}()
	if slot := engine.Slots()[0]; slot.Busy {
		t.Errorf("slot %+v", slot)
	}
}

// Beyond MaxRequests the oldest requests are reported gone, and only they.
func TestMaxRequests(t *testing.T) {
	f := startFake(t, traits{slots: 2})
	engine, l := f.engine(func(c *llamacpp.Config) { c.MaxRequests = 3 })
	var messages []engines.Message
	for i := range 8 {
		messages = append(messages, engines.Message{Role: engines.User, Content: fmt.Sprint("turn ", i)})
		response := ask(t.Context(), t, engine, engines.Request{ID: fmt.Sprint(i), Messages: messages})
		messages = append(messages, engines.Message{Role: engines.Assistant, Content: response.Text})
	}
	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(l.lost, want) || l.count(contextpilot.Gone) != 5 {
		t.Errorf("lost %v, want %v; events %v", l.lost, want, l.kinds)
	}
}

// The host cache's part: what is overwritten is moved there, if the server saves it.
func TestMovedToHostCache(t *testing.T) {
	f := startFake(t, traits{slots: 1})
	engine, l := f.engine(func(c *llamacpp.Config) { c.HostCache = true })
	var moved []contextpilot.Event
	engine.Subscribe(func(events ...contextpilot.Event) {
		for _, e := range events {
			if e.Kind == contextpilot.Moved {
				moved = append(moved, e)
			}
		}
	})
	ask(t.Context(), t, engine, question("a", "one two three four five six seven eight"))
	ask(t.Context(), t, engine, question("b", "one two three four five six seven nine")) // keeps more than half
	ask(t.Context(), t, engine, question("c", "other words"))
	want := []contextpilot.Event{
		{Kind: contextpilot.Moved, Request: "a", Tokens: 1, Tier: llamacpp.HostTier, Prompt: 10},
		{Kind: contextpilot.Moved, Request: "b", Tokens: 1, Tier: llamacpp.HostTier, Prompt: 10},
	}
	if !slices.Equal(moved, want) || l.count(contextpilot.Shrunk) != 1 {
		t.Errorf("moved %+v, want %+v; events %v", moved, want, l.kinds)
	}
}

func TestConfigErrors(t *testing.T) {
	for want, config := range map[string]llamacpp.Config{
		"BaseURL":     {},
		"Similarity":  {Similarity: 1},
		"MaxRequests": {MaxRequests: -1},
		"Patience":    {Patience: -1},
	} {
		if _, err := llamacpp.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v does not name %s", config, err, want)
		}
	}
}

// A request waits for the slot of one that the server's restart breaks off. It finds out that the server is another one.
func TestRestartWhileWaiting(t *testing.T) {
	f := startFake(t, traits{slots: 1})
	engine, l := f.engine(func(c *llamacpp.Config) {
		c.Server.Retries, c.Server.RetryWait, c.Server.MaxRetryWait = 1000, time.Millisecond, time.Millisecond
	})
	ask(t.Context(), t, engine, question("before", "one two three"))
	var wait sync.WaitGroup
	defer close(f.hold(t, engine, question("broken", "one two"), &wait, engines.ErrInterrupted))
	for i := range 3 {
		wait.Go(func() {
			id := fmt.Sprint("waiting-", i)
			response, err := engine.Generate(t.Context(), question(id, "one two three"), nil)
			if err != nil {
				t.Error(err)
			} else if p := l.of(id); p.Cached > response.Usage.CachedTokens || p.Exact && p.Cached != response.Usage.CachedTokens {
				t.Errorf("%s: predicted %+v, usage %+v", id, p, response.Usage)
			}
		})
	}
	for f.count("/tokenize") < 5 {
		runtime.Gosched()
	}
	f.mu.Lock()
	f.held = nil
	f.mu.Unlock()
	f.restart()
	if _, err := engine.Predict(t.Context(), question("look", "one")); err != nil { // sees the new process
		t.Error(err)
	}
	wait.Wait()
	if l.count(contextpilot.Cleared) != 1 {
		t.Errorf("events %v", l.kinds)
	}
}

// When one answer shows that another client uses the server, the other slots are looked at before they are believed.
func TestOtherClient(t *testing.T) {
	f := startFake(t, traits{slots: 2})
	engine, l := f.engine(nil)
	ask(t.Context(), t, engine, question("a", "one two three"))
	ask(t.Context(), t, engine, question("b", "four five six"))
	f.mu.Lock()
	for i := range f.slots {
		f.slots[i].tokens = f.tokenize("something else of another client")
	}
	f.mu.Unlock()
	ask(t.Context(), t, engine, question("a again", "one two three"))
	if stats := engine.Stats(); stats.Below != 1 {
		t.Errorf("stats %+v", stats)
	}
	response := ask(t.Context(), t, engine, question("b again", "four five six"))
	if p := l.of("b again"); p.Cached > response.Usage.CachedTokens {
		t.Errorf("predicted %+v, usage %+v", p, response.Usage)
	}
	if want := []string{"a", "b"}; !slices.Contains(l.lost, "b") {
		t.Errorf("lost %v, want %v", l.lost, want)
	}
}

// A request that the server refuses leaves no doubt of the slot it was meant for, also when it begins with what lies there.
func TestRefusedLeavesNoDoubt(t *testing.T) {
	engine, l := startFake(t, traits{slots: 1}).engine(nil)
	text := strings.Repeat("word ", 40)
	ask(t.Context(), t, engine, question("short", text))
	if _, err := engine.Generate(t.Context(), question("long", strings.Repeat(text, 200)), nil); !errors.Is(err, engines.ErrRefused) {
		t.Fatalf("error %v", err)
	}
	response := ask(t.Context(), t, engine, question("again", text))
	if p := l.of("again"); !p.Exact || p.Cached != response.Usage.CachedTokens || p.Cached == 0 {
		t.Errorf("predicted %+v, usage %+v", p, response.Usage)
	}
}

// hold sends a request whose answer begins and goes on once the returned channel is closed. want is how it ends.
func (f *fake) hold(t *testing.T, engine *llamacpp.Engine, req engines.Request, wait *sync.WaitGroup, want error) chan struct{} {
	held, begun := make(chan struct{}), make(chan struct{})
	f.mu.Lock()
	f.held = held
	f.mu.Unlock()
	wait.Go(func() {
		once := sync.OnceFunc(func() { close(begun) })
		if _, err := engine.Generate(t.Context(), req, func(string) error { once(); return nil }); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	})
	<-begun
	return held
}
