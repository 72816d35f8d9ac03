package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// exact counts as the simulator does.
type exact struct{}

func (exact) Count(text string) int { return tokens.Count(text) }

// tb is what a *testing.T, a *testing.B and a *rapid.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newPilot(t tb, cfg contextpilot.Config) *contextpilot.Pilot {
	t.Helper()
	if cfg.Tokenizer == nil {
		cfg.Tokenizer = exact{}
	}
	pilot, err := contextpilot.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return pilot
}

func newChat(t tb, pilot *contextpilot.Pilot, cfg history.Config) *history.Chat {
	t.Helper()
	return testkit.Must(history.New(pilot, cfg))(t)
}

// words returns n tokens, the same for the same seed and different ones for different seeds.
func words(n int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%04x ", r.Uint32()&0xffff)
	}
	return strings.TrimSpace(b.String())
}

// talk is a conversation to be had: what is asked, retrieved and answered.
type talk struct {
	system string
	turns  []said
}

type said struct {
	question, answer string
	blocks           []contextpilot.Block
}

// makeTalk returns a chat of 60 turns that take about so many tokens each: a quarter the question, the rest the answer. With
// blocks, each turn also retrieves so many of 100 tokens, mostly those of its neighbours.
func makeTalk(perTurn, blocks int) talk {
	const turns = 60
	t := talk{system: words(200, 1)}
	r := rand.New(rand.NewPCG(turns, uint64(perTurn)))
	for i := range turns {
		n := perTurn/2 + r.IntN(perTurn)
		s := said{question: words(n/4, uint64(1000+i)), answer: words(n-n/4, uint64(2000+i))}
		taken := map[int]bool{}
		for len(s.blocks) < blocks {
			d := i/8*4 + r.IntN(8)
			if !taken[d] {
				taken[d] = true
				s.blocks = append(s.blocks, contextpilot.Block{ID: fmt.Sprintf("doc%d", d), Text: words(100, uint64(3000+d))})
			}
		}
		t.turns = append(t.turns, s)
	}
	return t
}

// figures of one run.
type figures struct{ prompt, computed, longest, cuts, requests int }

func (f figures) mean() int { return f.prompt / f.requests }

func (f *figures) ask(t tb, engine *sim.Engine, id string, messages []engines.Message) {
	t.Helper()
	r, err := engine.Generate(context.Background(), engines.Request{ID: id, Messages: messages}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.requests++
	f.prompt += r.Usage.PromptTokens
	f.computed += r.Usage.PromptTokens - r.Usage.CachedTokens
	f.longest = max(f.longest, r.Usage.PromptTokens)
}

func wire(messages []history.Message) []engines.Message {
	out := make([]engines.Message, len(messages))
	for i, m := range messages {
		out[i] = engines.Message{Role: engines.Role(m.Role), Content: m.Text}
	}
	return out
}

// engineOf returns a simulator that gives the talk's answers.
func engineOf(t talk) *sim.Engine {
	at := 0
	return sim.New(sim.Options{Reply: func(engines.Request) string { at++; return t.turns[at-1].answer }})
}

// stepped has the talk with history cut in steps.
func stepped(t tb, talk talk, cfg history.Config) (f figures) {
	t.Helper()
	pilot, engine := newPilot(t, contextpilot.Config{}), engineOf(talk)
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	cfg.System, cfg.Session, cfg.PerMessage = talk.system, "s", -1
	chat := newChat(t, pilot, cfg)
	for _, s := range talk.turns {
		turn, err := chat.Ask(context.Background(), s.question, s.blocks...)
		if err != nil {
			t.Fatal(err)
		}
		if turn.Trim != nil {
			f.cuts++
		}
		f.ask(t, engine, turn.Plan.RequestID, wire(turn.Messages))
		chat.Answer(s.answer)
	}
	return f
}

// sliding has the talk with the newest turns that fit limit, as a buffer with a token limit does.
// Without an engine, only lengths are counted.
func sliding(t tb, talk talk, limit int, engine *sim.Engine) (f figures) {
	t.Helper()
	var past []engines.Message
	size := 0
	for _, s := range talk.turns {
		var context strings.Builder
		for _, b := range s.blocks {
			fmt.Fprintf(&context, "<doc %s>\n%s\n</doc>\n", b.ID, b.Text)
		}
		question := engines.Message{Role: engines.User, Content: context.String() + s.question}
		now := tokens.Count(talk.system) + tokens.Count(question.Content)
		for len(past) > 0 && now+size > limit {
			size -= tokens.Count(past[0].Content) + tokens.Count(past[1].Content)
			past = past[2:]
		}
		if engine != nil {
			messages := append([]engines.Message{{Role: engines.System, Content: talk.system}}, past...)
			f.ask(t, engine, "", append(messages, question))
		} else {
			f.prompt, f.requests = f.prompt+now+size, f.requests+1
		}
		past = append(past, question, engines.Message{Role: engines.Assistant, Content: s.answer})
		size += tokens.Count(question.Content) + tokens.Count(s.answer)
	}
	return f
}

// slidingAs finds the sliding window with the longest mean prompt that is not longer than mean: the one that compares
// best.
func slidingAs(t tb, talk talk, mean int) figures {
	t.Helper()
	low, high := 0, 1<<16
	for low+1 < high {
		if mid := (low + high) / 2; sliding(t, talk, mid, nil).mean() <= mean {
			low = mid
		} else {
			high = mid
		}
	}
	return sliding(t, talk, low, engineOf(talk))
}

// A 60-turn chat in a window of 4,096 tokens computes at most 0.35 of what a sliding window of the same mean length does.
func TestStepsAgainstSlidingWindow(t *testing.T) {
	for _, tt := range []struct {
		name            string
		perTurn, blocks int
		most            float64
	}{
		{"short turns", 100, 0, 0.35},
		{"turns of 200 tokens", 200, 0, 0.35},
		{"turns of 400 tokens", 400, 0, 0.35},
		{"with three documents a turn", 100, 3, 0.35},
	} {
		t.Run(tt.name, func(t *testing.T) {
			talk := makeTalk(tt.perTurn, tt.blocks)
			ours := stepped(t, talk, history.Config{Window: 4096, Answer: 640})
			window := slidingAs(t, talk, ours.mean())
			ratio := float64(ours.computed) / float64(window.computed)
			t.Logf("steps: mean %d, longest %d, computed %d, %d cuts; sliding: mean %d, computed %d; ratio %.3f",
				ours.mean(), ours.longest, ours.computed, ours.cuts, window.mean(), window.computed, ratio)
			if ratio > tt.most {
				t.Errorf("computes %.2f of a sliding window, want at most %.2f", ratio, tt.most)
			}
			if ours.longest > 4096-640 || ours.cuts == 0 {
				t.Errorf("longest prompt %d, %d cuts", ours.longest, ours.cuts)
			}
		})
	}
}

// The more a cut leaves, the more is computed: the table in docs/history.md, which -v prints.
func TestLowMarks(t *testing.T) {
	for _, perTurn := range []int{100, 200, 400} {
		talk := makeTalk(perTurn, 0)
		last := 0
		for _, low := range []int{800, 0, 2800, 3300} {
			f := stepped(t, talk, history.Config{Window: 4096, Answer: 640, Low: low})
			window := slidingAs(t, talk, f.mean())
			t.Logf("turns of %d, low %d: %d cuts, mean %d, computed %d a turn; sliding mean %d, computed %d a turn; ratio %.2f",
				perTurn, low, f.cuts, f.mean(), f.computed/60, window.mean(), window.computed/60, float64(f.computed)/float64(window.computed))
			if f.computed <= last || f.computed >= window.computed {
				t.Errorf("turns of %d, low %d: computed %d, with a lower mark %d, with a sliding window %d", perTurn, low, f.computed, last,
					window.computed)
			}
			last = f.computed
		}
	}
}

// What the pilot expects in the cache is there, also right after a cut: the head, and not what stood behind it.
func TestExpectedAfterACut(t *testing.T) {
	talk := makeTalk(200, 3)
	pilot, engine := newPilot(t, contextpilot.Config{}), engineOf(talk)
	defer engine.Subscribe(pilot.Sink(contextpilot.Scope{}))()
	chat := newChat(t, pilot, history.Config{Session: "s", System: talk.system, Window: 4096, Pinned: 2, PerMessage: -1})
	cuts, forgotten := 0, 0
	for i, s := range talk.turns {
		turn, err := chat.Ask(context.Background(), s.question, s.blocks...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := engine.Generate(context.Background(), engines.Request{ID: turn.Plan.RequestID, Messages: wire(turn.Messages)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		expected, cached := turn.Plan.Prefix.Tokens, r.Usage.CachedTokens
		// The index counts texts without their markup, and may not see the last of an answer.
		if expected > cached+16 || expected < cached*7/10-16 {
			t.Errorf("turn %d, cut %t: %d tokens expected, %d found", i+1, turn.Trim != nil, expected, cached)
		}
		if turn.Trim != nil {
			cuts, forgotten = cuts+1, forgotten+turn.Trim.Forgotten
		}
		chat.Answer(r.Text)
	}
	if cuts < 3 || forgotten < 10 {
		t.Errorf("%d cuts, %d blocks forgotten", cuts, forgotten)
	}
}
