package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/lab/workload"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestRun(t *testing.T) {
	want, err := os.ReadFile("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil || out.String() != string(want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, &out, want)
	}
}

// answered returns the chain after all questions.
func answered(t *testing.T, questions []trace.Request, blocks *trace.Blocks, w way) *chain {
	t.Helper()
	c, err := newChain(readers)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if err := c.answer(t.Context(), q, blocks, w); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// saves checks how many times as much the readers compute without affinity. The manager's part is the same in any case.
func saves(t *testing.T, questions []trace.Request, blocks *trace.Blocks, least map[way]float64) {
	t.Helper()
	affinity := answered(t, questions, blocks, byAffinity)
	for w, want := range least {
		other := answered(t, questions, blocks, w)
		if other.prompt != affinity.prompt {
			t.Errorf("%s: %d prompt tokens, with affinity %d: not the same work", w, other.prompt, affinity.prompt)
		}
		got := float64(other.reading) / float64(affinity.reading)
		t.Logf("%s: %.3f × of the readers', %.3f × of all", w, got, float64(other.computed)/float64(affinity.computed))
		if got < want {
			t.Errorf("%s computes %.3f times as much as affinity, want %.2f", w, got, want)
		}
	}
}

func TestAffinity(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, tokens := range []int{100, 200, 400} {
		questions, blocks, err := workload.Generate(workload.Options{Seed: 2, Contexts: 150, K: readers, Zipf: 1, BlockTokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		saves(t, questions, blocks, map[way]float64{roundRobin: 2, byRank: 2})
	}
}

// Its documents are short, 127 tokens, and each reader computes the question besides.
func TestOpenTracesAffinity(t *testing.T) {
	testkit.NotUnderRace(t)
	dir := testkit.Shared(t, "traces", "multihop-2wiki")
	questions, blocks, err := trace.Load(dir+"/trace.jsonl", dir+"/blocks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	saves(t, questions, blocks, map[way]float64{roundRobin: 1.8, byRank: 1.7})
}

// Whoever reads: each document is read, and nobody reads two.
func TestShare(t *testing.T) {
	c, err := newChain(4)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		requests := make([]contextpilot.Request, 3+n%2)
		for _, w := range []way{byAffinity, roundRobin, byRank} {
			to, err := c.share(requests, w)
			if err != nil || len(to) != len(requests) {
				t.Fatal(to, err)
			}
			reads := map[int]bool{}
			for _, r := range to {
				if r < 0 || r > 3 || reads[r] {
					t.Fatalf("%s: %v", w, to)
				}
				reads[r] = true
			}
		}
	}
}
