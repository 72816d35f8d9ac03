package runner_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// layout is a prompt: a head, blocks with some tokens between them, and a question.
type layout struct {
	prompt []int32
	head   int
	blocks []runner.Extent
}

func layOut(head int, lengths []int, seeds ...int) layout {
	l := layout{prompt: prompt(3, head), head: head}
	for i, n := range lengths {
		from := len(l.prompt)
		l.prompt = append(l.prompt, prompt(100+17*seeds[i%len(seeds)], n)...)
		l.blocks = append(l.blocks, runner.Extent{From: from, To: from + n})
		if i%2 == 1 {
			l.prompt = append(l.prompt, 5, 6) // between blocks
		}
	}
	l.prompt = append(l.prompt, prompt(777, 21)...)
	return l
}

var forced = prompt(55, 9)

// warm computes blocks behind the head.
func (l layout) warm(r *runner.Runner, salt string, which ...int) {
	for _, i := range which {
		tokens := append(runner.BlockTokens(l.prompt, l.head, l.blocks[i]), 0)
		r.Submit(runner.Request{Prompt: tokens, Forced: []int32{}, OnLogits: func([]float32) {}, Salt: salt}).Wait()
	}
}

// logits scores the answer.
func logits(t testing.TB, r *runner.Runner, prompt []int32, salt string, reuse *runner.Reuse) (rows [][]float32, cached int) {
	t.Helper()
	x := r.Submit(
		runner.Request{
			Prompt:   prompt,
			Salt:     salt,
			Reuse:    reuse,
			Forced:   forced,
			OnLogits: func(l []float32) { rows = append(rows, slices.Clone(l)) },
		},
	)
	x.Wait()
	if len(rows) != len(forced)+1 {
		t.Fatalf("%d rows of logits", len(rows))
	}
	return rows, x.Result().Cached
}

func equal(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(a, b []float32) bool { return slices.Equal(a, b) })
}

var everything = []int{0, 1, 2, 3}

func newLayout() layout { return layOut(37, []int{40, 33, 16, 50}, 1, 2, 3, 4) }

func (l layout) reuse(share float64, s runner.Selector) *runner.Reuse {
	return &runner.Reuse{Blocks: l.blocks, Head: l.head, Exact: l.head, Share: share, Selector: s}
}

// TestAllComputedAgain: with a share of 1 every selector gives the bits of a full prefill, in steps of any size, on any threads.
func TestAllComputedAgain(t *testing.T) {
	l := newLayout()
	want, _ := logits(t, newRunner(t, runner.Config{Pages: 100, Running: 2, Step: 64}), l.prompt, "", nil)
	for _, config := range []runner.Config{{Step: 16}, {Step: 37, Threads: 3}, {Step: 512}} {
		config.Pages, config.Running = 100, 2
		r := newRunner(t, config)
		l.warm(r, "", everything...)
		for i, name := range runner.SelectorNames {
			if s := runner.Selector(i); s != runner.None {
				if got, _ := logits(t, r, l.prompt, "", l.reuse(1, s)); !equal(got, want) {
					t.Errorf("step %d, %s: other logits", config.Step, name)
				}
			}
		}
	}
}

// TestNothingComputedAgain: without it the logits are those of the blocks' own keys and values, turned to their places.
func TestNothingComputedAgain(t *testing.T) {
	l := newLayout()
	config := runner.Config{Pages: 100, Running: 2, Step: 64}
	r := newRunner(t, config)
	l.warm(r, "", everything...)
	got, cached := logits(t, r, l.prompt, "", l.reuse(0, runner.Prophet))
	if none, n := logits(t, r, l.prompt, "", l.reuse(0.5, runner.None)); !equal(got, none) || n != cached {
		t.Error("a share of 0 and no selector give other logits")
	}
	if want := l.naive(t); !equal(got, want) {
		t.Error("other logits than those of the blocks in their places")
	}
	if want := len(l.prompt) - 21 - 4; cached != want { // all but the question and what stands behind two blocks
		t.Errorf("%d tokens are cached, want %d", cached, want)
	}
}

// naive assembles by hand.
func (l layout) naive(t *testing.T) (rows [][]float32) {
	m := newModel(t)
	tokens := append(slices.Clone(l.prompt), forced...)
	memory, w := modeltest.Pages(t, m, len(tokens)), modeltest.NewWorker(t, m, 1)
	w.Forward([]llama.Span{{Tokens: tokens[:l.head], Pages: memory}})
	gaps := []llama.Span{}
	for i, b := range l.blocks {
		own := modeltest.Pages(t, m, l.head+b.To-b.From)
		w.Forward([]llama.Span{{Tokens: append(slices.Clone(tokens[:l.head]), tokens[b.From:b.To]...), Pages: own}})
		w.Copy(memory, b.From, own, l.head, b.To-b.From)
		if i+1 < len(l.blocks) && b.To < l.blocks[i+1].From {
			gaps = append(gaps, llama.Span{Tokens: tokens[b.To:l.blocks[i+1].From], Position: b.To, Pages: memory})
		}
	}
	tail := l.blocks[len(l.blocks)-1].To
	w.Forward(gaps)
	flat := w.Forward([]llama.Span{{Tokens: tokens[tail:], Position: tail, Pages: memory, Logits: len(forced) + 1}})
	for ; len(flat) > 0; flat = flat[m.Vocab:] {
		rows = append(rows, slices.Clone(flat[:m.Vocab]))
	}
	return rows
}

// TestStepsDoNotMatter: what is chosen, and the logits, do not depend on steps and threads. What is missing is computed.
func TestStepsDoNotMatter(t *testing.T) {
	testkit.NotUnderRace(t)
	l := newLayout()
	for _, warmed := range [][]int{everything, {1, 3}, {0}, {}} {
		for i, name := range runner.SelectorNames {
			var want [][]float32
			for _, config := range []runner.Config{{Step: 512}, {Step: 16}, {Step: 45, Threads: 3}} {
				config.Pages, config.Running = 100, 2
				r := newRunner(t, config)
				l.warm(r, "", warmed...)
				got, _ := logits(t, r, l.prompt, "", l.reuse(0.3, runner.Selector(i)))
				if want == nil {
					want = got
				}
				if !equal(got, want) {
					t.Errorf("blocks %v, %s, step %d: other logits", warmed, name, config.Step)
				}
			}
			if exact, _ := logits(t, newRunner(t, runner.Config{Pages: 100, Running: 2, Step: 64}), l.prompt, "", nil); len(warmed) == 0 &&
				!equal(want, exact) {
				t.Errorf("%s: without any block the logits are not those of a prefill", name)
			}
		}
	}
}

// TestShare: the more is computed again, the nearer the answer is to that of a prefill, and the fewer tokens are cached.
func TestShare(t *testing.T) {
	l := newLayout()
	r := newRunner(t, runner.Config{Pages: 200, Running: 2, Step: 64})
	want, _ := logits(t, r, l.prompt, "apart", nil)
	l.warm(r, "", everything...)
	before, most := math.Inf(1), len(l.prompt)
	for _, share := range []float64{0, 0.2, 0.6, 1} {
		got, cached := logits(t, r, l.prompt, "", l.reuse(share, runner.Ideal))
		distance := 0.0
		for i := range got {
			for j := range got[i] {
				distance += math.Abs(float64(got[i][j] - want[i][j]))
			}
		}
		if distance > before || cached > most || share == 1 && distance > 0 {
			t.Errorf("share %g: %g from a prefill, %g before; %d tokens cached", share, distance, before, cached)
		}
		before, most = distance, cached
	}
}

// TestTenantsShareNoBlocks: a block that another salt's request computed is not there.
func TestTenantsShareNoBlocks(t *testing.T) {
	l := newLayout()
	config := runner.Config{Pages: 200, Running: 2, Step: 64}
	want, _ := logits(t, newRunner(t, config), l.prompt, "", nil)
	for _, c := range [][2]string{{"a", ""}, {"a", "b"}, {"", "a"}} {
		r := newRunner(t, config)
		l.warm(r, c[0], everything...)
		if got, cached := logits(t, r, l.prompt, c[1], l.reuse(0, runner.None)); !equal(got, want) || cached > 0 {
			t.Errorf("salt %q after %q: %d tokens are cached", c[1], c[0], cached)
		}
	}
}

// TestTheAnswerChoosesNothing: which tokens are computed again does not depend on an answer that is scored.
func TestTheAnswerChoosesNothing(t *testing.T) {
	l := newLayout()
	r := newRunner(t, runner.Config{Pages: 200, Running: 2, Step: 64})
	l.warm(r, "", everything...)
	var want []float32
	for i := range 8 {
		var first []float32
		x := r.Submit(
			runner.Request{Prompt: l.prompt, Reuse: l.reuse(0.1, runner.Prophet), Forced: prompt(31*i, 1+40*i), OnLogits: func(l []float32) {
				if first == nil {
					first = slices.Clone(l)
				}
			}},
		)
		if x.Wait(); want == nil {
			want = first
		}
		if !slices.Equal(first, want) {
			t.Errorf("answer %d: other logits in front of it", i)
		}
	}
}

// TestReusePreempted: a run that loses its pages gets its blocks once more, and goes on with the same tokens.
func TestReusePreempted(t *testing.T) {
	l := newLayout()
	generate := func(r *runner.Runner, reuse *runner.Reuse) *runner.Run {
		return r.Submit(runner.Request{Prompt: l.prompt, Reuse: reuse, Max: 120, Sample: greedy})
	}
	r := newRunner(t, runner.Config{Pages: 100, Running: 4, Step: 32})
	l.warm(r, "", everything...)
	want := all(t, generate(r, l.reuse(0.2, runner.Prophet)))
	tight := newRunner(t, runner.Config{Pages: 44, Running: 4, Step: 32})
	l.warm(tight, "", everything...)
	var others []*runner.Run
	for i := range 2 { // that grow, and were there before
		others = append(others, tight.Submit(runner.Request{Prompt: prompt(1+i, 100), Max: 150, Sample: greedy}))
	}
	if got := all(t, generate(tight, l.reuse(0.2, runner.Prophet))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, x := range others {
		x.Wait()
	}
	if tight.Stats().Preemptions == 0 {
		t.Error("none was preempted")
	}
	if s := tight.Stats(); s.Used != 0 || s.Running != 0 {
		t.Errorf("pages are left: %+v", s)
	}
}

// TestReuseInLittleRoom: a cache with room for the prompt, but not for the blocks beside it, computes it.
func TestReuseInLittleRoom(t *testing.T) {
	l := newLayout()
	pages := (len(l.prompt)+len(forced))/16 + 1
	r := newRunner(t, runner.Config{Pages: pages, Running: 2, Step: 64})
	l.warm(r, "", everything...)
	if _, cached := logits(t, r, l.prompt, "", l.reuse(0, runner.None)); cached > len(l.prompt)/2 {
		t.Errorf("%d tokens are cached", cached)
	}
	x := r.Submit(runner.Request{Prompt: l.prompt, Reuse: l.reuse(0.1, runner.Prophet), Max: 5, Sample: greedy})
	x.Cancel(errors.New("enough"))
	x.Wait()
	if s := r.Stats(); s.Used != 0 {
		t.Errorf("pages are left: %+v", s)
	}
}

// TestExactAmongReuse: whatever runs beside them and before them, exact requests get the bits of a fresh engine, and so do requests that
// compute everything again.
func TestExactAmongReuse(t *testing.T) {
	fresh := map[string][][]float32{}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRunner(
			t,
			runner.Config{Pages: rapid.IntRange(30, 80).Draw(rt, "pages"), Running: 3, Step: rapid.IntRange(16, 80).Draw(rt, "step")},
		)
		type scored struct {
			run  *runner.Run
			want [][]float32
			got  [][]float32
		}
		var runs []*scored
		for range rapid.IntRange(1, 6).Draw(rt, "requests") {
			l := layOut(
				rapid.SampledFrom([]int{16, 37}).Draw(rt, "head"),
				[]int{40, 33},
				rapid.IntRange(0, 2).Draw(rt, "first"),
				rapid.IntRange(0, 2).Draw(rt, "second"),
			)
			salt := rapid.SampledFrom([]string{"", "a"}).Draw(rt, "salt")
			for i := range l.blocks {
				if rapid.Bool().Draw(rt, "warm") {
					l.warm(r, salt, i)
				}
			}
			var reuse *runner.Reuse
			share := rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(rt, "share")
			if kind := rapid.IntRange(0, 2).Draw(rt, "kind"); kind > 0 {
				reuse = l.reuse(share, runner.Prophet)
				if kind == 2 {
					reuse.Exact = len(l.prompt)
				}
			}
			s := &scored{}
			if key := fmt.Sprint(l.prompt); reuse == nil || share == 1 {
				if fresh[key] == nil {
					fresh[key], _ = logits(t, newRunner(t, runner.Config{Pages: 50, Running: 2, Step: 64}), l.prompt, "", nil)
				}
				s.want = fresh[key]
			}
			s.run = r.Submit(
				runner.Request{
					Prompt:   l.prompt,
					Salt:     salt,
					Reuse:    reuse,
					Forced:   forced,
					OnLogits: func(l []float32) { s.got = append(s.got, slices.Clone(l)) },
				},
			)
			runs = append(runs, s)
		}
		for i, s := range runs {
			if s.run.Wait(); s.want != nil && !equal(s.got, s.want) {
				rt.Fatalf("request %d: other logits than a fresh engine's", i)
			}
		}
		if s := r.Stats(); s.Used != 0 {
			rt.Fatalf("pages are left: %+v", s)
		}
	})
}
