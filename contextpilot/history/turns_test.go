package history_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
)

// ask has a turn with an answer of 40 tokens, and reports it.
func ask(t *testing.T, pilot *contextpilot.Pilot, chat *history.Chat, seed uint64, blocks ...contextpilot.Block) history.Turn {
	t.Helper()
	turn, err := chat.Ask(context.Background(), words(20, seed), blocks...)
	if err != nil {
		t.Fatal(err)
	}
	pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: turn.Plan.RequestID, Output: 40})
	chat.Answer(words(40, seed+100))
	return turn
}

func block(id string, seed uint64) contextpilot.Block {
	return contextpilot.Block{ID: id, Text: words(60, seed)}
}

// Behind a cut a turn refers to what the kept turns show, by their numbers, and sends in full what has left. A session needs no name.
func TestReferencesAfterACut(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{BlockSize: 1})
	chat := newChat(t, pilot, history.Config{Window: 600, Answer: 50, Low: 330, PerMessage: -1})
	a, b, c := block("a", 1), block("b", 2), block("c", 3)
	ask(t, pilot, chat, 11, a)
	second := ask(t, pilot, chat, 12, b)
	third := ask(t, pilot, chat, 13, c, a, b)
	if len(third.Plan.Items) != 3 || third.Plan.Items[1].Ref == nil || third.Plan.Items[2].Ref == nil {
		t.Fatal(third.Plan.Explain())
	}
	for i := uint64(14); ; i++ {
		turn := ask(t, pilot, chat, i, a, b, c)
		if turn.Trim == nil {
			continue
		}
		shown := shows(turn.Messages[:len(turn.Messages)-1])
		for _, it := range turn.Plan.Items {
			if was := shown[shownBlock(turn.Plan.Block(it.Index))]; was != (it.Ref != nil) {
				t.Errorf("%s: shown %v, reference %v", it.Label, was, it.Ref)
			}
			if it.Ref != nil && (it.Ref.Turn <= second.Plan.Turn || it.Ref.Turn >= turn.Plan.Turn) {
				t.Errorf("%s is shown in turn %d, which was cut", it.Label, it.Ref.Turn)
			}
		}
		if len(shown) == 0 || turn.Trim.Forgotten+len(shown) != 3 || turn.Plan.Turn != int(i)-10 {
			t.Errorf("turn %d: %d blocks forgotten, %d still shown", turn.Plan.Turn, turn.Trim.Forgotten, len(shown))
		}
		return
	}
}

func shownBlock(b contextpilot.Block) shown { return shown{b.ID, b.Text} }

// Two chats whose kept messages are equal behind different summaries share what stands in front of these, and no more.
func TestSummariesDiffer(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{BlockSize: 1})
	var chats []*history.Chat
	for i := range 2 {
		chats = append(chats, newChat(t, pilot, history.Config{
			System: words(30, 9), Window: 400, Answer: 50, PerMessage: -1,
			Summarize: func(context.Context, history.Cut) (string, error) { return fmt.Sprint("Summary number ", i), nil },
		}))
	}
	for i := uint64(11); ; i++ {
		first := ask(t, pilot, chats[0], i)
		second := ask(t, pilot, chats[1], i)
		if first.Trim == nil {
			continue
		}
		if second.Trim == nil || second.Plan.Prefix.Tokens != 30 || len(second.Messages) < 4 {
			t.Errorf("%d messages, %d tokens are expected, the system prompt has 30: trim %+v", len(second.Messages), second.Plan.Prefix.Tokens,
				second.Trim)
		}
		return
	}
}

// Answers, tool calls and their results count as what the engine has to hold, though it has lost them once.
func TestAnswersAreExpected(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{BlockSize: 1})
	chat := newChat(t, pilot, history.Config{Window: 4000, PerMessage: -1})
	if _, err := chat.Ask(context.Background(), "Why?", block("a", 1)); err != nil {
		t.Fatal(err)
	}
	err := chat.Add(
		history.Message{Role: history.Assistant, Text: words(200, 2), Calls: []string{"x"}, Extra: 50},
		history.Message{Role: history.Tool, Text: words(300, 3), Answers: []string{"x"}},
		history.Message{Role: history.Assistant, Text: words(100, 4)},
	)
	if err != nil {
		t.Fatal(err)
	}
	pilot.Observe(contextpilot.Event{Kind: contextpilot.Cleared})
	ask(t, pilot, chat, 5)
	before := chat.Tokens()
	turn := ask(t, pilot, chat, 6)
	if got := turn.Plan.Prefix.Tokens; got < before-20 || got > before {
		t.Errorf("%d tokens are expected behind messages of %d", got, before)
	}
}

// A conversation that was saved goes on: a block that one of its users' messages shows is referred to, and one that a tool has shown is
// not.
func TestAddedMessagesShowBlocks(t *testing.T) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for role, refs := range map[history.Role]bool{history.User: true, history.Tool: false, history.Assistant: false} {
		chat, err := history.New(pilot, history.Config{Window: 4000})
		if err != nil {
			t.Fatal(err)
		}
		if err := chat.Add(history.Message{Role: role, Text: "<doc a>\nText of a.\n</doc>\nWhat?"}, history.Message{
			Role: history.Assistant,
			Text: "That.",
		}); err != nil {
			t.Fatal(err)
		}
		turn, err := chat.Ask(t.Context(), "And?", contextpilot.Block{ID: "a", Text: "Text of a."})
		if err != nil {
			t.Fatal(err)
		}
		if got := turn.Plan.Items[0].Ref != nil; got != refs {
			t.Errorf("%s: a reference: %v", role, got)
		}
	}
}
