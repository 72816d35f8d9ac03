package history_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/history"
)

// A chat in a small window. The third turn does not fit: the two before it are cut, and the manual, to which the third
// turn could have referred, is sent in full again.
func Example() {
	pilot, _ := contextpilot.New(contextpilot.Config{Tokenizer: exact{}})
	chat, err := history.New(pilot, history.Config{
		Session: "thread-7", System: "Answer from the documents.", Window: 200, Answer: 40,
		Summarize: func(_ context.Context, cut history.Cut) (string, error) {
			return fmt.Sprintf("%d messages about the pump.", len(cut.Messages)), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	manual := contextpilot.Block{ID: "manual", Text: "The pump feeds the boiler."}
	for _, question := range []string{"What does it do?", "Since when?", "Why?"} {
		turn, err := chat.Ask(context.Background(), question, manual)
		if err != nil {
			fmt.Println(err)
			return
		}
		last := turn.Messages[len(turn.Messages)-1].Text
		fmt.Printf("%d messages, %d tokens, cut: %t\n%s\n\n", len(turn.Messages), turn.Tokens, turn.Trim != nil, last)
		chat.Answer(strings.Repeat("It feeds the boiler. ", 8))
	}
	// Output:
	// 2 messages, 43 tokens, cut: false
	// <doc manual>
	// The pump feeds the boiler.
	// </doc>
	// What does it do?
	//
	// 4 messages, 111 tokens, cut: false
	// Please refer to [manual] in the previous conversation.
	// Since when?
	//
	// 2 messages, 47 tokens, cut: true
	// 4 messages about the pump.
	//
	// <doc manual>
	// The pump feeds the boiler.
	// </doc>
	// Why?
}

// A program that keeps all messages asks a Trimmer which of them to send.
func ExampleTrimmer() {
	trimmer, _ := history.NewTrimmer(exact{}, history.Config{Window: 120, Answer: 20, PerMessage: -1})
	messages := []history.Message{{Role: history.System, Text: "Be brief."}}
	for i := range 6 {
		messages = append(messages, history.Message{Role: history.User, Text: words(10, uint64(i))})
		got, err := trimmer.Trim(context.Background(), messages)
		fmt.Printf("turn %d: %d of %d messages are cut, %d tokens are sent, %v\n", i+1, got.Tail-got.Head, len(messages), got.Tokens, err)
		messages = append(messages, history.Message{Role: history.Assistant, Text: words(12, uint64(100+i))})
	}
	// Output:
	// turn 1: 0 of 2 messages are cut, 13 tokens are sent, <nil>
	// turn 2: 0 of 4 messages are cut, 35 tokens are sent, <nil>
	// turn 3: 0 of 6 messages are cut, 57 tokens are sent, <nil>
	// turn 4: 0 of 8 messages are cut, 79 tokens are sent, <nil>
	// turn 5: 4 of 10 messages are cut, 57 tokens are sent, <nil>
	// turn 6: 4 of 12 messages are cut, 79 tokens are sent, <nil>
}
