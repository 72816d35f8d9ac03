package conversation_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// messages are a Source that holds its messages as they are.
type messages []conversation.Message

func (m messages) Len() int                     { return len(m) }
func (m messages) Role(i int) conversation.Role { return m[i].Role }
func (m messages) Sum(i int) conversation.Sum   { return xxh3.HashString128(fmt.Sprint(m[i])) }
func (m messages) Load(i int, to *conversation.Message) {
	to.Role = m[i].Role
	to.Texts = append(to.Texts, m[i].Texts...)
	to.Calls = append(to.Calls, m[i].Calls...)
}

// An agent reads a file twice: the second copy becomes a note.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	engine, err := conversation.New(pilot, conversation.Options{})
	if err != nil {
		panic(err)
	}
	file := strings.Repeat("A line of a file that an agent reads.\n", 8)
	result := func(call string) conversation.Message {
		return conversation.Message{Role: conversation.Tool, Texts: []conversation.Text{{Value: file, Role: conversation.Tool, Call: call}}}
	}
	calls := func(id string) conversation.Message {
		return conversation.Message{Role: conversation.Assistant, Calls: []conversation.Call{{ID: id, Tool: "read_file"}}}
	}
	sent := messages{calls("call_1"), result("call_1"), calls("call_2"), result("call_2")}

	turn, err := engine.Begin(context.Background(), conversation.Conversation{Model: "m", Look: conversation.Look{Tools: true}}, sent)
	if err != nil {
		panic(err)
	}
	for _, e := range turn.Edits {
		fmt.Printf("message %d: %s\n", e.Message, e.With)
	}
	turn.Done(conversation.Outcome{Prompt: 100, Cached: -1, Output: 20})
	// Output: message 3: [Duplicate content — identical to a previous tool result (call_1). Refer to the earlier result above.]
}

// A program that keeps all messages asks a Trimmer which of them to send.
func ExampleTrimmer() {
	trimmer, _ := conversation.NewTrimmer(counter(tokens.Count), conversation.TrimOptions{Window: 120, Answer: 20, PerMessage: -1})
	history := []conversation.Message{said(conversation.System, "Be brief.")}
	for i := range 6 {
		history = append(history, said(conversation.User, words(10, uint64(i))))
		got, err := trimmer.Trim(context.Background(), history)
		fmt.Printf("turn %d: %d of %d messages are cut, %d tokens are sent, %v\n", i+1, got.Tail-got.Head, len(history), got.Tokens, err)
		history = append(history, said(conversation.Assistant, words(12, uint64(100+i))))
	}
	// Output:
	// turn 1: 0 of 2 messages are cut, 13 tokens are sent, <nil>
	// turn 2: 0 of 4 messages are cut, 35 tokens are sent, <nil>
	// turn 3: 0 of 6 messages are cut, 57 tokens are sent, <nil>
	// turn 4: 0 of 8 messages are cut, 79 tokens are sent, <nil>
	// turn 5: 4 of 10 messages are cut, 57 tokens are sent, <nil>
	// turn 6: 4 of 12 messages are cut, 79 tokens are sent, <nil>
}
