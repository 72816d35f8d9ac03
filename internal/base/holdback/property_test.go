package holdback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
)

// story is a request of a random load.
type story struct {
	at, first, end, leaves time.Duration
	chain                  []uint64
	fate                   string         // answered, fails, breaks (in the answer) or leaves (its context ends)
	makes                  func([]uint64) // is given what it was sent to compute; nil: not called
}

func drawStory(t *rapid.T) story {
	ms := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
	}
	s := story{
		at: ms("at", 5000), first: ms("first", 4000), end: ms("end", 4000), leaves: ms("leaves", 3000) + 1,
		fate: rapid.SampledFrom([]string{"answered", "answered", "fails", "breaks", "leaves"}).Draw(t, "fate"),
	}
	texts := make([]string, rapid.IntRange(0, 4).Draw(t, "texts"))
	for i := range texts {
		texts[i] = text(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "text"), 200)
	}
	s.chain = holdback.Chain("", texts...)
	return s
}

// ask sends one request, and returns how long it was held.
func (s *story) ask(t *rapid.T, g *holdback.Gate) time.Duration {
	time.Sleep(s.at)
	ctx := context.Background()
	if s.fate == "leaves" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.leaves)
		defer cancel()
	}
	start := time.Now()
	pass, err := g.Enter(ctx, holdback.Prompt{Chain: s.chain})
	held := time.Since(start)
	if err != nil {
		if !errors.Is(err, holdback.ErrReset) && (s.fate != "leaves" || held != s.leaves) {
			t.Errorf("after %v: %v", held, err)
		}
		return held
	}
	if s.makes != nil {
		s.makes(pass.Makes())
	}
	time.Sleep(s.first)
	if s.fate == "fails" {
		pass.Done(false, -1)
		return held
	}
	pass.First()
	time.Sleep(s.end)
	pass.Done(s.fate == "answered", int(s.end.Milliseconds()))
	return held
}

// No request is held longer than the bound, whatever happens to the others, and in the end none is held.
func TestHeldRequestsGoOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stories := rapid.SliceOfN(rapid.Custom(drawStory), 1, 30).Draw(rt, "requests")
		resets := rapid.SliceOfN(rapid.IntRange(0, 9000), 0, 3).Draw(rt, "resets at")
		n := rapid.IntRange(0, 5).Draw(rt, "slots") // 0: paged
		longest := time.Duration(rapid.IntRange(1, 3000).Draw(rt, "longest")) * time.Millisecond
		synctest.Test(t, func(*testing.T) {
			o := holdback.Options{Longest: longest}
			if n > 0 {
				o.Slots = slots(n)
			}
			g, err := holdback.New(o)
			if err != nil {
				rt.Fatal(err)
			}
			for _, ms := range resets {
				time.AfterFunc(time.Duration(ms)*time.Millisecond, g.Reset)
			}
			held := make(chan time.Duration)
			for _, s := range stories {
				go func() { held <- s.ask(rt, g) }()
			}
			sum := time.Duration(0)
			for range stories {
				d := <-held
				if sum += d; d > longest {
					rt.Errorf("held for %v, the bound is %v", d, longest)
				}
			}
			time.Sleep(10 * time.Second) // what resets are left
			s := g.Stats()
			if s.Waiting != 0 || s.Held != s.Served+s.Late+s.Gone+s.Reset || s.Waited != sum {
				rt.Errorf("stats %+v, held for %v", s, sum)
			}
		})
	})
}

// If none fails and none reaches the bound, every prefix is computed once in front of a paged cache, but for what is too short to wait for.
func TestComputedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stories := rapid.SliceOfN(rapid.Custom(drawStory), 1, 20).Draw(rt, "requests")
		synctest.Test(t, func(*testing.T) {
			g, err := holdback.New(holdback.Options{Tokens: 1, Longest: time.Hour})
			if err != nil {
				rt.Fatal(err)
			}
			done := make(chan struct{})
			var mu sync.Mutex
			made := map[uint64]int{}
			for _, s := range stories {
				s.fate = "answered"
				s.makes = func(chain []uint64) {
					mu.Lock()
					defer mu.Unlock()
					for _, h := range chain {
						made[h]++
					}
				}
				go func() {
					s.ask(rt, g)
					done <- struct{}{}
				}()
			}
			for range stories {
				<-done
			}
			for _, n := range made {
				if n > 1 {
					rt.Fatalf("a prefix was computed %d times", n)
				}
			}
		})
	})
}

// Chains have as many elements in common as their texts have pieces, however the texts are cut.
func TestChain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"abc", "abd", text("x", 50), ""}), 0, 12).Draw(rt, name), "")
		}
		a, b := draw("a"), draw("b")
		same := 0
		for same < min(len(a), len(b)) && a[same] == b[same] {
			same++
		}
		cut := rapid.IntRange(0, len(a)).Draw(rt, "cut")
		ca, cb := holdback.Chain("k", a[:cut], a[cut:]), holdback.Chain("k", b)
		if len(ca) != len(a)/128 || len(cb) != len(b)/128 {
			rt.Fatalf("%d and %d elements of %d and %d bytes", len(ca), len(cb), len(a), len(b))
		}
		n := 0
		for n < min(len(ca), len(cb)) && ca[n] == cb[n] {
			n++
		}
		if n != same/128 {
			rt.Errorf("%d elements in common of texts with %d bytes", n, same)
		}
		if other := holdback.Chain("another kind", a); len(other) > 0 && other[0] == ca[0] {
			rt.Error("another kind has the same chain")
		}
	})
	if n := len(holdback.Chain("", strings.Repeat("x", 1<<20))); n != 2048 {
		t.Errorf("%d elements of 1 MiB", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	for _, tokens := range []int{500, 8000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			g, err := holdback.New(holdback.Options{})
			if err != nil {
				b.Fatal(err)
			}
			t := text("prompt", tokens)
			b.ReportAllocs()
			for b.Loop() {
				pass, err := g.Enter(b.Context(), holdback.Prompt{Chain: holdback.Chain("model", t)})
				if err != nil {
					b.Fatal(err)
				}
				pass.First()
				pass.Done(true, -1)
			}
		})
	}
}
