package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

func saying(text string) func(engines.Request) string {
	return func(engines.Request) string { return text }
}

func TestPieces(t *testing.T) {
	tests := []struct {
		name, answer string
		limit        int
		pieces       []string
		output       int
		finish       string
	}{
		{"words", " Yes, it  is.\n", 0, []string{" Yes", ",", " it", "  is", ".\n"}, 5, "stop"},
		{"one long word", "abcdefghi", 0, []string{"abcdef", "ghi"}, 2, "stop"},
		{"nothing", "", 0, nil, 0, "stop"},
		{"white space only", " \n", 0, []string{" \n"}, 0, "stop"},
		{"cut short", "one two three ", 2, []string{"one", " two"}, 2, "length"},
		{"just long enough", "one two ", 2, []string{"one", " two "}, 2, "stop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := sim.New(sim.Options{Reply: saying(tt.answer)})
			var pieces []string
			response, err := e.Generate(t.Context(), engines.Request{ID: "q", MaxTokens: tt.limit}, func(p string) error {
				pieces = append(pieces, p)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.pieces, pieces); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
			want := engines.Response{
				ID: "q", Text: strings.Join(tt.pieces, ""), Finish: tt.finish,
				Usage: engines.Usage{OutputTokens: tt.output, CachedKnown: true},
			}
			if diff := cmp.Diff(want, response); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	e := sim.New(sim.Options{
		BlockTokens: 2, Reply: saying("x y z"),
		Cost: sim.Cost{Base: time.Second, PerToken: time.Millisecond, PerOutput: time.Minute},
	})
	req := engines.Request{Messages: []engines.Message{{Content: "a b c d e"}}}
	for _, computed := range []int{5, 1} {
		response, err := e.Generate(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		ttft := time.Second + time.Duration(computed)*time.Millisecond
		if response.TTFT != ttft || response.Total != ttft+3*time.Minute {
			t.Errorf("%d computed tokens: TTFT %v, Total %v", computed, response.TTFT, response.Total)
		}
	}
	response, err := sim.New(sim.Options{}).Generate(t.Context(), req, nil)
	if err != nil || response.TTFT != 5*68*time.Microsecond || response.Total != response.TTFT {
		t.Errorf("default cost: TTFT %v, Total %v, %v", response.TTFT, response.Total, err)
	}
}

func TestName(t *testing.T) {
	for capacity, want := range map[int]string{0: "simulator (unlimited cache)", 500: "simulator (cache of 500 tokens)"} {
		if got := sim.New(sim.Options{CapacityTokens: capacity}).Name(); got != want {
			t.Errorf("Name = %q, want %q", got, want)
		}
	}
}

func TestFault(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name     string
		fault    sim.Fault
		text     string
		is       []error
		resident bool
	}{
		{"before the cache", sim.Fault{Err: boom}, "", []error{boom}, false},
		{"before the cache, default", sim.Fault{}, "", []error{engines.ErrUnreachable}, false},
		{"after two pieces", sim.Fault{After: 2, Err: boom}, "one two", []error{boom, engines.ErrInterrupted}, true},
		{"after two pieces, default", sim.Fault{After: 2}, "one two", []error{engines.ErrInterrupted}, true},
		{"after the last piece", sim.Fault{After: 9, Err: boom}, "one two three", []error{boom, engines.ErrInterrupted}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := sim.New(sim.Options{
				BlockTokens: 2, CapacityTokens: 100, Reply: saying("one two three"),
				Fault: func(req engines.Request) *sim.Fault {
					if req.ID == "bad" {
						return &tt.fault
					}
					return nil
				},
			})
			req := engines.Request{ID: "bad", Messages: []engines.Message{{Content: "a b c d e"}}}
			heard := ""
			response, err := e.Generate(t.Context(), req, func(p string) error { heard += p; return nil })
			for _, want := range tt.is {
				if !errors.Is(err, want) {
					t.Errorf("error %v does not wrap %v", err, want)
				}
			}
			if response.ID != "bad" || response.Text != tt.text || heard != tt.text || response.Finish != "" {
				t.Errorf("heard %q, response %+v", heard, response)
			}
			if got := e.Resident(req) > 0; got != tt.resident {
				t.Errorf("prompt resident: %v, want %v", got, tt.resident)
			}
			// What was said before the break is in the cache, but for its last token.
			req.Messages = append(req.Messages, engines.Message{Content: tt.text + " more more more"})
			want := 0
			if tt.resident {
				want = (5 + response.Usage.OutputTokens - 1) / 2 * 2
			}
			if got := e.Resident(req); got != want {
				t.Errorf("%d tokens of the conversation are resident, want %d", got, want)
			}
			if s := e.Stats(); s.Running != 0 {
				t.Errorf("%+v after the request failed", s)
			}
		})
	}
}

func TestPanicInCallbackGivesBlocksBack(t *testing.T) {
	e := sim.New(sim.Options{CapacityTokens: 64})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		_, _ = e.Generate(t.Context(), numbered("a", 2), func(string) error { panic("callback") })
	}()
	if s := e.Stats(); s.Running != 0 {
		t.Errorf("%+v", s)
	}
}

// hold runs req until let is closed, and returns the channel that gets its error.
func hold(ctx context.Context, e *sim.Engine, req engines.Request, let <-chan struct{}) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := e.Generate(ctx, req, func(string) error { <-let; return nil })
		done <- err
	}()
	return done
}

func TestWaitsForFreeBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := sim.New(sim.Options{CapacityTokens: 4 * block, Reply: saying("yes")})
		let := make(chan struct{})
		first := hold(t.Context(), e, numbered("a", 2), let) // pins three blocks
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := hold(ctx, e, numbered("b", 2), let)
		synctest.Wait()
		third := hold(t.Context(), e, numbered("c", 0), let) // would fit, but is not to overtake
		synctest.Wait()
		if s := e.Stats(); s.Running != 1 || s.Waiting != 2 || s.Requests != 1 {
			t.Fatalf("%+v, want one running and two waiting", s)
		}
		// Too large for the empty cache: waiting would not help.
		if _, err := e.Generate(t.Context(), numbered("d", 9), nil); err != nil || e.Stats().Oversize != 1 {
			t.Errorf("oversize request: %v, %+v", err, e.Stats())
		}
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) || errors.Is(err, engines.ErrInterrupted) {
			t.Errorf("the cancelled request: %v", err)
		}
		synctest.Wait()
		if s := e.Stats(); s.Running != 2 || s.Waiting != 0 {
			t.Fatalf("%+v, want the third running beside the first", s)
		}
		close(let)
		if err := errors.Join(<-first, <-third); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Running != 0 || s.Waiting != 0 || s.Requests != 3 {
			t.Errorf("%+v in the end", s)
		}
	})
}

func TestRunningRequestsShareAndPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := sim.New(sim.Options{CapacityTokens: 5 * block, Reply: saying("yes")})
		let := make(chan struct{})
		first := hold(t.Context(), e, numbered("a", 2), let)
		synctest.Wait()
		// The second reads blocks that the first still uses, and takes one more.
		second := hold(t.Context(), e, numbered("a", 2), let)
		synctest.Wait()
		if s := e.Stats(); s.Running != 2 || s.HitTokens != 2*block {
			t.Fatalf("%+v, want two running that share two blocks", s)
		}
		// One block is free: evicting the others' is not allowed.
		third := hold(t.Context(), e, numbered("b", 1), let)
		synctest.Wait()
		if s := e.Stats(); s.Waiting != 1 || s.EvictedBlocks != 0 {
			t.Fatalf("%+v, want one waiting", s)
		}
		e.Reset() // while they run
		close(let)
		if err := errors.Join(<-first, <-second, <-third); err != nil {
			t.Error(err)
		}
		if err := e.CheckIdle(); err != nil {
			t.Error(err)
		}
		if got := e.Resident(numbered("a", 2)); got != 0 {
			t.Errorf("%d tokens of requests overtaken by Reset are resident", got)
		}
		if got := e.Resident(numbered("b", 1)); got != block {
			t.Errorf("%d tokens of the request admitted later are resident, want %d", got, block)
		}
	})
}
