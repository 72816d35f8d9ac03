package stabilise_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/stabilise"
)

// A line with the time leaves the system text. When the conversation goes on, the earlier turn has the line that it had.
func Example() {
	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Tools: true, Volatile: true}})
	if err != nil {
		panic(err)
	}
	for _, body := range []string{
		`{"messages":[{"role":"system","content":"Be brief.\nCurrent time: 04:14"},{"role":"user","content":"Hi"}]}`,
		`{"messages":[{"role":"system","content":"Be brief.\nCurrent time: 04:15"},{"role":"user","content":"Hi"},` +
			`{"role":"assistant","content":"Hello"},{"role":"user","content":"Tell me a story"}]}`,
	} {
		sent := s.Body(stabilise.Chat, stabilise.Conversation{Name: "thread-7"}, []byte(body))
		fmt.Printf("%s\n", sent.Body)
	}
	// Output:
	// {"messages":[{"role":"system","content":"Be brief.\n"},{"role":"user","content":"Hi"},{"role":"system","content":"Current time: 04:14"}]}
	// {"messages":[{"role":"system","content":"Be brief.\n"},{"role":"user","content":"Hi"},{"role":"system","content":"Current time: 04:14"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Tell me a story"},{"role":"system","content":"Current time: 04:15"}]}
}
