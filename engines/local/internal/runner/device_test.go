package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// failing is the CPU, made to fail where a card would: a fake.
type failing struct {
	gpu.CPU
	syncs atomic.Int64 // until one fails; 0 and less: none does
}

type failingStream struct {
	gpu.Stream
	device *failing
}

func (d *failing) NewStream(threads int) (gpu.Stream, error) {
	s, err := d.CPU.NewStream(threads)
	return failingStream{s, d}, err
}

func (s failingStream) Sync() error {
	if s.device.syncs.Add(-1) == 0 {
		return &gpu.Error{Device: "cuda:0", Operation: "attend", What: "queries", Err: gpu.ErrMemory}
	}
	return s.Stream.Sync()
}

// failingRunner returns a runner whose device can be made to fail.
func failingRunner(t *testing.T, config runner.Config) (*failing, *runner.Runner) {
	t.Helper()
	file, _ := modeltest.Tiny(t, tinymodel.Options{Seed: 1})
	device := &failing{}
	model, err := llama.New(file, device)
	if err != nil {
		t.Fatal(err)
	}
	config.Model, config.Threads = model, 1
	r, err := runner.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return device, r
}

// A device that fails in a step ends the requests of the step with its error. The next requests are answered as ever, also one that waited
// for pages of those, and no page is lost.
func TestFailedStep(t *testing.T) {
	want := answered(t, newRunner(t, runner.Config{Pages: 40, Running: 4, Step: 32}), prompt(1, 70))
	for fails := range 6 {
		device, r := failingRunner(t, runner.Config{Pages: 40, Running: 4, Step: 32})
		device.syncs.Store(int64(fails) + 1)
		request := runner.Request{Prompt: prompt(1, 70), Max: 8, Sample: modeltest.Greedy}
		first, second := r.Submit(request), r.Submit(request) // the second waits for the first one's pages
		failed := 0
		for _, run := range []*runner.Run{first, second} {
			tokens, err := outcome(run)
			switch {
			case err == nil && !slices.Equal(tokens, want):
				t.Errorf("step %d fails: tokens %v, want %v", fails, tokens, want)
			case err != nil:
				failed++
				if !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "cuda:0: attend of queries: out of memory") {
					t.Errorf("step %d fails: %v", fails, err)
				}
			}
		}
		if failed == 0 {
			t.Errorf("step %d fails, and no request does", fails)
		}
		if n := r.Prefix(prompt(1, 70), ""); failed == 2 && n != 0 {
			t.Errorf("step %d fails: %d tokens are still found", fails, n)
		}
		if got := answered(t, r, prompt(1, 70)); !slices.Equal(got, want) {
			t.Errorf("after step %d failed: tokens %v, want %v", fails, got, want)
		}
		r.Clear()
		if s := r.Stats(); s.Used != 0 || s.Cached != 0 || s.Running != 0 || s.Waiting != 0 {
			t.Errorf("after step %d failed: %+v", fails, s)
		}
	}
}

func outcome(run *runner.Run) (tokens []int32, err error) {
	for {
		more, done, err := run.Next(context.Background())
		tokens = append(tokens, more...)
		if done || err != nil {
			return tokens, err
		}
	}
}

func answered(t *testing.T, r *runner.Runner, prompt []int32) []int32 {
	t.Helper()
	tokens, err := outcome(r.Submit(runner.Request{Prompt: prompt, Max: 8, Sample: modeltest.Greedy}))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// A device without room for all pages is refused at the start, not in the middle of an answer.
func TestNoRoomForPages(t *testing.T) {
	file, _ := modeltest.Tiny(t, tinymodel.Options{Seed: 1})
	device := &small{pages: 30}
	model, err := llama.New(file, device)
	if err != nil {
		t.Fatal(err)
	}
	for pages, want := range map[int]string{40: "40 blocks", 500: "500 blocks"} {
		r, err := runner.New(runner.Config{Model: model, Threads: 1, Pages: pages, Running: 4, Step: 32})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Reserve(); !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
		r.Close()
		if device.pages != 30 {
			t.Errorf("%d of 30 pages were given back", device.pages)
		}
	}
	r, err := runner.New(runner.Config{Model: model, Threads: 1, Pages: 30, Running: 4, Step: 32})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reserve(); err != nil {
		t.Fatal(err)
	}
	if len(answered(t, r, prompt(1, 29*kvstore.PageTokens))) == 0 {
		t.Error("no answer")
	}
	r.Close()
	if device.pages != 30 {
		t.Errorf("%d of 30 pages were given back", device.pages)
	}
}

// small is the CPU with room for a number of pages: a fake.
type small struct {
	failing
	pages int
}

type smallPool struct {
	gpu.Pool
	left *int
}

func (d *small) NewPool(heads compute.Heads, layers int) gpu.Pool {
	return smallPool{d.CPU.NewPool(heads, layers), &d.pages}
}

func (d *small) NewStream(threads int) (gpu.Stream, error) {
	s, err := d.CPU.NewStream(threads)
	return smallStream{s}, err
}

func (p smallPool) New() (gpu.Page, error) {
	if *p.left == 0 {
		return gpu.Page{}, &gpu.Error{Device: "cuda:0", Operation: "allocate", What: "page", Err: gpu.ErrMemory}
	}
	*p.left--
	return p.Pool.New()
}

func (p smallPool) Free(gpu.Page) { *p.left++ }

type smallStream struct{ gpu.Stream }

func (s smallStream) Batch(kind int, pool gpu.Pool, runs []gpu.Run) gpu.Batch {
	return s.Stream.Batch(kind, pool.(smallPool).Pool, runs)
}

// What was in the cache when a device failed is not used again: the operation that failed may have written it. A request that was not in the
// step begins again, and has its answer.
func TestNothingIsTrustedAfterAFailure(t *testing.T) {
	device, r := failingRunner(t, runner.Config{Pages: 60, Running: 2, Step: 16})
	want := answered(t, r, prompt(2, 90))
	answered(t, r, prompt(3, 90))
	if r.Prefix(prompt(2, 90), "") == 0 || r.Prefix(prompt(3, 90), "") == 0 {
		t.Fatal("nothing is cached")
	}
	// The second prompt has its prefix, and waits for its part of a step until the first one is computed.
	device.syncs.Store(3)
	first := r.Submit(runner.Request{Prompt: prompt(1, 90), Max: 8, Sample: modeltest.Greedy})
	second := r.Submit(runner.Request{Prompt: append(prompt(2, 90), prompt(7, 40)...), Max: 8, Sample: modeltest.Greedy})
	if _, err := outcome(first); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("the first request: %v", err)
	}
	got, err := outcome(second)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Prefix(prompt(3, 90), ""); n != 0 {
		t.Errorf("%d tokens of a prompt from before the failure are found", n)
	}
	if again := answered(t, r, append(prompt(2, 90), prompt(7, 40)...)); !slices.Equal(got, again) {
		t.Errorf("the second request: tokens %v, want %v", got, again)
	}
	if again := answered(t, r, prompt(2, 90)); !slices.Equal(again, want) {
		t.Errorf("after the failure: tokens %v, want %v", again, want)
	}
}
