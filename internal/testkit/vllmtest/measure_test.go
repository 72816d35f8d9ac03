//go:build unix

package vllmtest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// What the figures are made with is checked here, without a server.

func TestShare(t *testing.T) {
	const block = 32
	var s share
	for _, o := range []outcome{
		{Predicted: 64, Cached: 64},
		{Predicted: 64, Cached: 96},
		{Predicted: 96, Cached: 64},
		{Predicted: 0, Cached: 64},
	} {
		s.add(o, block)
	}
	if s.Requests != 4 || s.Exact != 1 || s.Within != 3 || s.WorstOff != 64 {
		t.Errorf("%+v, want 1 of 4 exact, 3 within a block, 64 off at worst", s)
	}
}

func TestFit(t *testing.T) {
	var a arm
	for _, tokens := range []int{100, 500, 900} {
		a.took = append(a.took, sample{Prompt: 1000, Cached: 1000 - tokens, TTFT: 50*time.Millisecond + time.Duration(tokens)*2*time.Millisecond})
	}
	if request, token := a.fit(); math.Abs(request-50) > 1e-6 || math.Abs(token-2) > 1e-9 {
		t.Errorf("%f ms a request and %f ms a token, want 50 and 2", request, token)
	}
	if ttft, computed := a.mean([]int{0, 2}); math.Abs(ttft-1050) > 1e-6 || computed != 500 {
		t.Errorf("mean of two: %f ms and %f tokens, want 1050 and 500", ttft, computed)
	}
}

func TestMostWanted(t *testing.T) {
	request := func(ids ...string) (q contextpilot.Request) {
		for _, id := range ids {
			q.Blocks = append(q.Blocks, contextpilot.Block{ID: id})
		}
		return q
	}
	blocks, times := wanted([]contextpilot.Request{request("a", "b"), request("c", "d"), request("a", "c"), request("a")})
	if !slices.Equal(blocks, []int{1, 1, 2, 1}) || !slices.Equal(times, []int{2, 1, 3, 2}) {
		t.Errorf("%v blocks of others, wanted %v times", blocks, times)
	}
	if got := top([]int{0, 1, 2, 3}, blocks, times); !slices.Equal(got, []int{2, 0, 3, 1}) {
		t.Errorf("order %v", got)
	}
}

func TestCut(t *testing.T) {
	for n, want := range map[int]string{1: "one ", 2: "one two", 3: "one two, ", 9: "one two, six"} {
		if got := cut("one two, six", n); got != want {
			t.Errorf("the first %d tokens are %q, want %q", n, got, want)
		}
	}
}
