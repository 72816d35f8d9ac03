package runner_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
)

// A request that is sent again after it was cancelled is not late by the first one's clock.
func TestLoadedForTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, config := stored(t, runner.Config{Pages: 60, Running: 2, Step: 32}, 1)
		files.read = func(n int) error {
			if n == 3 {
				time.Sleep(245 * time.Millisecond)
			}
			time.Sleep(15 * time.Millisecond)
			return nil
		}
		r := newRunner(t, config)
		gone := r.Submit(runner.Request{Prompt: prompt(1, 400), Max: 8, Sample: greedy})
		time.Sleep(200 * time.Millisecond)
		gone.Cancel(errors.New("the client has gone"))
		if _, cached := answer(t, r, prompt(1, 400), ""); cached != 384 {
			t.Errorf("%d tokens were loaded, want 384", cached)
		}
	})
}

// Two prompts whose pages are loaded one after the other have the time that computing both takes.
func TestTwoPromptsAreLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, config := stored(t, runner.Config{Pages: 60, Running: 2, Step: 32}, 1, 2)
		files.read = func(int) error { time.Sleep(15 * time.Millisecond); return nil }
		r := newRunner(t, config)
		one := r.Submit(runner.Request{Prompt: prompt(1, 400), Max: 8, Sample: greedy})
		two := r.Submit(runner.Request{Prompt: prompt(2, 400), Max: 8, Sample: greedy})
		all(t, one)
		all(t, two)
		if a, b := one.Result().Cached, two.Result().Cached; a != 384 || b != 384 {
			t.Errorf("%d and %d tokens were loaded, want 384 of each", a, b)
		}
	})
}
