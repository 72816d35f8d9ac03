package framework_test

import (
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation"
	"github.com/ragpilot/ragpilot/framework"
)

// A wrapper of a model: it hands the messages over, applies the replacements, and says what became of the call.
func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	turns := framework.NewCalls(pilot, framework.Options{ToolResults: true})
	file := strings.Repeat("A line of a file that an agent reads.\n", 8)
	result := func(call string) framework.Message {
		return framework.Message{Role: conversation.Tool, Texts: []conversation.Text{{Value: file, Role: conversation.Tool, Call: call}}}
	}
	call := turns.Begin("", []framework.Message{
		{Role: conversation.Assistant, Calls: []conversation.Call{{ID: "call_1", Tool: "read_file"}}},
		result("call_1"),
		{Role: conversation.Assistant, Calls: []conversation.Call{{ID: "call_2", Tool: "read_file"}}},
		result("call_2"),
	})
	for _, r := range call.Replacements {
		fmt.Printf("message %d: %s\n", r.Message, r.With)
	}
	call.End(framework.Outcome(true, 0, 20))
	// Output: message 3: [Duplicate content — identical to a previous tool result (call_1). Refer to the earlier result above.]
}
