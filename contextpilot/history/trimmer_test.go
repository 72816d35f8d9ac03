package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot/history"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// apply returns what a history becomes.
func apply(messages []history.Message, t history.Trimmed) []history.Message {
	var out []history.Message
	for i, m := range messages {
		if i >= t.Head && i < t.Tail && i != t.Alone {
			continue
		}
		if len(out) == t.Head {
			m.Text = t.Summary + m.Text
		}
		out = append(out, m)
	}
	return out
}

// A history of any shape stays within its window at every call; its cuts stay where they are until the next one, and do not
// depend on earlier calls.
func TestTrimAnyHistory(t *testing.T) {
	prompts, cuts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := history.Config{
			Window: rapid.IntRange(120, 500).Draw(t, "window"), Pinned: rapid.IntRange(0, 2).Draw(t, "pinned"),
			Low: rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "low"), PerMessage: rapid.SampledFrom([]int{-1, 2}).Draw(t, "per message"),
		}
		if rapid.Bool().Draw(t, "summary") {
			cfg.SummaryTokens = 12
			cfg.Summarize = func(_ context.Context, c history.Cut) (string, error) {
				return fmt.Sprintf("%d messages cut; %s", len(c.Messages), c.Summary), nil
			}
		}
		trimmer := newTrimmer(t, cfg)
		var messages, last []history.Message
		if rapid.Bool().Draw(t, "system") {
			messages = append(messages, history.Message{Role: history.System, Text: "Be brief."})
		}
		say := func(role history.Role, most int, m history.Message) {
			m.Role = role
			m.Text = fmt.Sprintf("#%d %s", len(messages), strings.Repeat("word ", rapid.IntRange(1, most).Draw(t, string(role))))
			messages = append(messages, m)
		}
		tail := -1
		call := func() {
			got, err := trimmer.Trim(context.Background(), messages)
			fresh, err2 := newTrimmer(t, cfg).Trim(context.Background(), messages)
			if diff := cmp.Diff(got, fresh); diff != "" || (err == nil) != (err2 == nil) {
				t.Fatalf("depends on earlier calls: %v, %v\n%s", err, err2, diff)
			}
			if err != nil {
				if !errors.Is(err, history.ErrTooLong) {
					t.Fatal(err)
				}
				last = nil
				return
			}
			sent := apply(messages, got)
			n := max(cfg.PerMessage, 0)
			for _, m := range sent {
				n += tokens.Count(m.Text) + max(cfg.PerMessage, 0)
			}
			if most := cfg.Window - cfg.Window/8; n > most || n > got.Tokens {
				t.Fatalf("%d tokens, counted as %d, want at most %d", n, got.Tokens, most)
			}
			pairs(t, sent)
			if !strings.HasSuffix(sent[len(sent)-1].Text, messages[len(messages)-1].Text) {
				t.Fatal("the last message was cut")
			}
			if got.Tail < tail {
				t.Fatalf("the cut moved back from %d to %d", tail, got.Tail)
			}
			if got.Tail == tail && last != nil && cmp.Diff(last, sent[:min(len(last), len(sent))]) != "" {
				t.Fatalf("the prompt does not begin as the one before, without a cut:\n%s", cmp.Diff(last, sent))
			}
			if got.Tail > tail && tail >= 0 {
				cuts++
			}
			tail, last = got.Tail, sent
			prompts++
		}
		for range rapid.IntRange(1, 15).Draw(t, "turns") {
			say(history.User, 20, history.Message{})
			call()
			for range rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(t, "steps") {
				say(history.Assistant, 5, history.Message{Calls: []string{"x"}})
				say(history.Tool, 20, history.Message{Answers: []string{"x"}})
				call()
			}
			say(history.Assistant, 20, history.Message{})
		}
	})
	t.Logf("%d prompts, %d cuts", prompts, cuts)
	if cuts < prompts/20 {
		t.Errorf("only %d cuts in %d prompts", cuts, prompts)
	}
}

func newTrimmer(t tb, cfg history.Config) *history.Trimmer {
	t.Helper()
	return testkit.Must(history.NewTrimmer(exact{}, cfg))(t)
}

// A Trimmer computes what a Chat does, within what a reference is shorter than a block.
func TestTrimmerOnTheSimulator(t *testing.T) {
	talk := makeTalk(200, 0)
	trimmer, engine := newTrimmer(t, history.Config{Window: 4096, Answer: 640, PerMessage: -1}), engineOf(talk)
	messages := []history.Message{{Role: history.System, Text: talk.system}}
	var f figures
	for _, s := range talk.turns {
		messages = append(messages, history.Message{Role: history.User, Text: s.question})
		got, err := trimmer.Trim(context.Background(), messages)
		if err != nil {
			t.Fatal(err)
		}
		f.ask(t, engine, "", wire(apply(messages, got)))
		messages = append(messages, history.Message{Role: history.Assistant, Text: s.answer})
	}
	chat := stepped(t, talk, history.Config{Window: 4096, Answer: 640})
	t.Logf("trimmer %+v, chat %+v", f, chat)
	if f.longest > 4096-640 || float64(f.computed) > 1.1*float64(chat.computed) {
		t.Errorf("computed %d, longest prompt %d; the chat computed %d", f.computed, f.longest, chat.computed)
	}
}

func TestSummaries(t *testing.T) {
	asked := 0
	fails := true
	trimmer := newTrimmer(t, history.Config{
		Window: 100, Answer: 20, SummaryTokens: 5, PerMessage: -1,
		Summarize: func(_ context.Context, c history.Cut) (string, error) {
			asked++
			if fails {
				return "", errBroken
			}
			return fmt.Sprintf("Said %d things, and more than fits", len(c.Messages)), nil
		},
	})
	var messages []history.Message
	for i := range 9 {
		messages = append(messages, history.Message{Role: []history.Role{history.User, history.Assistant}[i%2], Text: words(10, uint64(i))})
	}
	got, err := trimmer.Trim(context.Background(), messages)
	if err != nil || !errors.Is(got.SummaryErr, errBroken) || got.Summary != "" || got.Tail == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	fails = false
	asked = 0
	for range 3 {
		got, err = trimmer.Trim(context.Background(), messages)
	}
	if err != nil || asked != 1 || !strings.HasPrefix(got.Summary, "Said ") || !strings.HasSuffix(got.Summary, "\n\n") ||
		tokens.Count(got.Summary) > 5 {
		t.Errorf("asked %d times: %+v, %v", asked, got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	trimmer = newTrimmer(t, history.Config{Window: 100, Summarize: func(ctx context.Context, _ history.Cut) (string, error) {
		return "",
			ctx.Err()
	}})
	if _, err := trimmer.Trim(ctx, messages); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

// Each message is sent, or was given to one summary, whatever the cuts: also a user's message that stood alone in front of what
// was left of its turn. The messages of a summary are in order.
func TestNothingIsLostBetweenSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cut [][]history.Message
		trimmer := newTrimmer(t, history.Config{
			Window: rapid.IntRange(120, 300).Draw(t, "window"), SummaryTokens: 12, PerMessage: -1,
			Summarize: func(_ context.Context, c history.Cut) (string, error) {
				cut = append(cut, c.Messages)
				return "Much.", nil
			},
		})
		var messages []history.Message
		say := func(role history.Role, most int, m history.Message) {
			m.Role = role
			m.Text = fmt.Sprintf("%d %s", len(messages), strings.Repeat("word ", rapid.IntRange(1, most).Draw(t, string(role))))
			messages = append(messages, m)
		}
		for range rapid.IntRange(1, 8).Draw(t, "turns") {
			say(history.User, 20, history.Message{})
			for range rapid.SampledFrom([]int{0, 1, 4, 9}).Draw(t, "steps") {
				say(history.Assistant, 5, history.Message{Calls: []string{"x"}})
				say(history.Tool, 20, history.Message{Answers: []string{"x"}})
			}
			say(history.Assistant, 10, history.Message{})
		}
		say(history.User, 5, history.Message{})
		got, err := trimmer.Trim(context.Background(), messages)
		if err != nil {
			t.Skip(err)
		}
		seen := make([]int, len(messages))
		for i := range messages {
			if i < got.Head || i >= got.Tail || i == got.Alone {
				seen[i]++
			}
		}
		for _, c := range cut {
			last := -1
			for _, m := range c {
				var i int
				if _, err := fmt.Sscan(m.Text, &i); err != nil {
					t.Fatal(err)
				}
				seen[i]++
				if i <= last {
					t.Fatalf("message %d is summarized behind message %d", i, last)
				}
				last = i
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("message %d of %d, %s, was sent or summarized %d times; sent: %+v", i, len(messages), messages[i].Role, n, got)
			}
		}
	})
}
