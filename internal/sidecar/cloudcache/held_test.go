package cloudcache_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// carry sends a conversation that carries names.
func (b *bench) carry(u cloudcache.Usage, names []string, texts ...string) {
	b.t.Helper()
	p := path
	if b.p.Base().Host == "api.openai.com" {
		p = chat
	}
	b.p.Answered(b.p.Sent("", p, b.p.Mark(p, conversation(texts...))).Carrying(names...), u)
}

func (b *bench) ended(what string, want ...string) {
	b.t.Helper()
	if got := b.p.Ended(); !slices.Equal(got, want) {
		b.t.Errorf("%s: ended %q, want %q", what, got, want)
	}
}

// What a prompt carries is held as long as somebody reads the prompt, and no longer.
func TestEnded(t *testing.T) {
	const ttl = 5 * time.Minute
	b := newBench(t, cloudcache.Options{Provider: "anthropic"})
	b.carry(cloudcache.Usage{Written: 2000}, []string{"x", "y"}, "a")
	b.now = b.now.Add(ttl - 1)
	b.ended("just before its time")
	b.carry(cloudcache.Usage{Read: 2000, Written: 300}, nil, "a", "b", "c") // the next turn
	b.now = b.now.Add(ttl - 1)
	b.ended("after it was read")
	b.now = b.now.Add(1)
	b.ended("in its time", "x", "y")
	b.ended("and once only")

	b.carry(cloudcache.Usage{}, []string{"short"}, "a")
	b.ended("too short to be cached", "short")

	b.carry(cloudcache.Usage{Written: 2000}, []string{"first"}, "a")
	b.carry(cloudcache.Usage{Read: 2000}, []string{"second"}, "a")
	b.ended("the same prompt again carries the same", "first")
	b.now = b.now.Add(time.Minute)
	b.carry(cloudcache.Usage{Read: 1000}, nil, "a", "b", "c")
	b.now = b.now.Add(ttl - time.Minute)
	b.ended("only a shorter beginning was read meanwhile", "second")

	b.p.Answered(cloudcache.Handle{}.Carrying("z"), cloudcache.Usage{Read: 5})
	b.ended("a body that was not understood", "z")
}

// An answer that says nothing of the cache may have filled it: OpenAI's streams say nothing unless they are asked to.
func TestEndedWithoutUsage(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "openai"})
	silent := cloudcache.Usage{Prompt: -1, Read: -1, Written: -1, Output: -1}
	b.carry(silent, []string{"x"}, "a")
	b.now = b.now.Add(time.Hour - 1)
	b.carry(silent, nil, "a", "b", "c")
	b.now = b.now.Add(time.Hour - 1)
	b.ended("read again, perhaps")
	b.now = b.now.Add(1)
	b.ended("in its time", "x")
}

func TestEndedIsBounded(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic", MaxEntries: 2})
	for i := range 4 {
		b.now = b.now.Add(time.Second)
		b.carry(cloudcache.Usage{Written: 2000}, []string{fmt.Sprint(i)}, fmt.Sprint("text ", i))
	}
	b.ended("more prompts than are remembered", "0", "1")
}

// Every name that was carried ends, once, and none before its time.
func TestEveryNameEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		p, err := cloudcache.New(
			cloudcache.Options{
				Provider: "anthropic", MaxEntries: rapid.IntRange(1, 5).Draw(t, "limit"), Now: func() time.Time { return now },
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		open := map[string]bool{}
		end := func(names []string) {
			for _, n := range names {
				if !open[n] {
					t.Fatalf("%s ends and was not held", n)
				}
				delete(open, n)
			}
		}
		for i := range rapid.IntRange(1, 20).Draw(t, "requests") {
			texts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 4).Draw(t, "texts")
			name := fmt.Sprint(i)
			open[name] = true
			h := p.Sent("", path, p.Mark(path, conversation(texts...))).Carrying(name)
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			p.Answered(
				h, cloudcache.Usage{
					Read: rapid.IntRange(-1, 3).Draw(t, "read") * 1000, Written: rapid.IntRange(0, 2).Draw(t, "written") * 1000,
				},
			)
			end(p.Ended())
		}
		now = now.Add(time.Hour)
		end(p.Ended())
		if len(open) > 0 {
			t.Fatalf("never ended: %v", open)
		}
	})
}
