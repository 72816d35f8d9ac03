package history_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
)

func TestBadConfig(t *testing.T) {
	for _, tt := range []struct {
		cfg  history.Config
		says string
	}{
		{history.Config{}, "Window 0"},
		{history.Config{Window: -1}, "Window -1"},
		{history.Config{Window: 100, Answer: 100}, "Answer 100 leaves nothing of Window 100"},
		{history.Config{Window: 100, Answer: -1}, "Answer -1 is negative"},
		{history.Config{Window: 100, High: 90}, "High 90 exceeds Window 100 − Answer 12"},
		{history.Config{Window: 100, Low: 89}, "Low 89 exceeds High 88"},
		{history.Config{Window: 100, Pinned: -2}, "Pinned -2 is negative"},
		{history.Config{Window: 100, SummaryTokens: -3}, "SummaryTokens -3 is negative"},
		{history.Config{Window: 100, Blocks: -4}, "Blocks -4 is negative"},
	} {
		_, err := history.New(newPilot(t, contextpilot.Config{}), tt.cfg)
		_, err2 := history.NewTrimmer(nil, tt.cfg)
		for _, err := range []error{err, err2} {
			if !errors.Is(err, history.ErrBadConfig) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v: %v, want %q", tt.cfg, err, tt.says)
			}
		}
	}
	if _, err := history.New(nil, history.Config{Window: 100}); !errors.Is(err, history.ErrBadConfig) {
		t.Error(err)
	}
	_, err := history.New(newPilot(t, contextpilot.Config{}), history.Config{Window: 100, System: words(200, 1)})
	if !errors.Is(err, history.ErrTooLong) {
		t.Error(err)
	}
}

// A question that cannot be sent, or a summary that is cancelled, leaves the conversation and the pilot as they were.
func TestFailedTurn(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	chat := newChat(t, pilot, history.Config{
		Session: "s", Window: 200, PerMessage: -1,
		Summarize: func(ctx context.Context, _ history.Cut) (string, error) { cancel(); return "", ctx.Err() },
	})
	block := contextpilot.Block{ID: "a", Text: words(40, 1)}
	if _, err := chat.Ask(context.Background(), "What?", block); err != nil {
		t.Fatal(err)
	}
	chat.Answer(words(60, 2))
	before := chat.Tokens()
	if _, err := chat.Ask(context.Background(), words(300, 3)); !errors.Is(err, history.ErrTooLong) {
		t.Error(err)
	}
	if _, err := chat.Ask(ctx, words(80, 4), block); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := chat.Ask(context.Background(), "And?", block); err != nil {
		t.Error(err)
	}
	chat.Drop()
	if err := chat.Add(history.Message{Role: history.System, Text: "x"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if st := pilot.Stats(); chat.Tokens() != before || len(chat.Messages()) != 2 || st.LiveRequests != 1 || st.Plans != 1 {
		t.Errorf("%d tokens, were %d; %d messages, %d live requests of %d plans", chat.Tokens(), before, len(chat.Messages()), st.LiveRequests,
			st.Plans)
	}
	turn, err := chat.Ask(context.Background(), "And?", block)
	if err != nil || len(turn.Plan.Items) != 1 || turn.Plan.Items[0].Ref == nil || turn.Plan.Turn != 2 {
		t.Errorf("%v: %s", err, turn.Plan.Explain())
	}
}

// A block that never fits is left out, and no reason to forget what was said.
func TestBlockThatNeverFits(t *testing.T) {
	chat := newChat(t, newPilot(t, contextpilot.Config{}), history.Config{Window: 2000})
	for i := range uint64(3) {
		turn, err := chat.Ask(context.Background(), words(20, i), contextpilot.Block{ID: "giant", Text: words(10_000, 99)},
			contextpilot.Block{ID: "small", Text: words(30, 10+i)})
		if err != nil || turn.Trim != nil || len(turn.Messages) != int(2*i+1) || len(turn.Plan.Items) != 1 || len(turn.Plan.LeftOut) != 1 {
			t.Fatalf("turn %d: %v, trim %+v, %d messages, %s", i, err, turn.Trim, len(turn.Messages), turn.Plan.Explain())
		}
		chat.Answer(words(20, 20+i))
	}
}

// TestLateSummary: a context that ends while a summary is being made leaves the conversation as it was, even if the summary
// came.
func TestLateSummary(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	chat := newChat(t, newPilot(t, contextpilot.Config{}), history.Config{
		Session: "s", Window: 200, PerMessage: -1,
		Summarize: func(context.Context, history.Cut) (string, error) { cancel(); return "Much was said.", nil },
	})
	if _, err := chat.Ask(context.Background(), "What?"); err != nil {
		t.Fatal(err)
	}
	chat.Answer(words(60, 2))
	before, tokens := chat.Messages(), chat.Tokens()
	if _, err := chat.Ask(ctx, words(150, 4)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if diff := cmp.Diff(before, chat.Messages()); diff != "" || chat.Tokens() != tokens || chat.Summary() != "" {
		t.Errorf("%d tokens, were %d; summary %q; messages (-before +after):\n%s", chat.Tokens(), tokens, chat.Summary(), diff)
	}
}

func TestTrimmerConcurrently(t *testing.T) {
	trimmer := newTrimmer(t, history.Config{
		Window: 200, Summarize: func(context.Context, history.Cut) (string, error) { return "Much was said.", nil },
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var messages []history.Message
			for turn := range 20 {
				messages = append(messages, history.Message{Role: history.User, Text: words(15, uint64(i%4*100+turn))})
				if _, err := trimmer.Trim(context.Background(), messages); err != nil {
					t.Error(err)
				}
				messages = append(messages, history.Message{Role: history.Assistant, Text: words(15, uint64(i%4*100+turn))})
			}
		})
	}
	wg.Wait()
}

// A thousand messages of which most are cut.
func BenchmarkTrim(b *testing.B) {
	trimmer := newTrimmer(b, history.Config{Window: 4096})
	var messages []history.Message
	for i := range 1001 {
		messages = append(messages, history.Message{Role: []history.Role{history.User, history.Assistant}[i%2], Text: words(100, uint64(i))})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := trimmer.Trim(context.Background(), messages); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAsk(b *testing.B) {
	talk := makeTalk(200, 3)
	b.ReportAllocs()
	for b.Loop() {
		chat := newChat(b, newPilot(b, contextpilot.Config{}), history.Config{Session: "s", Window: 4096})
		for _, s := range talk.turns {
			if _, err := chat.Ask(context.Background(), s.question, s.blocks...); err != nil {
				b.Fatal(err)
			}
			chat.Answer(s.answer)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(talk.turns)), "µs/turn")
}
