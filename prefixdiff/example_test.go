package prefixdiff_test

import (
	"fmt"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// A clock in front of the instructions keeps a conversation from being found in the cache.
func Example() {
	index, err := prefixdiff.New(prefixdiff.Config{})
	if err != nil {
		panic(err)
	}
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"system","content":"It is 04:14. You sell plums and pears. Be brief."},
			{"role":"user","content":"Hello"}]}`,
		`{"model":"m","messages":[{"role":"system","content":"It is 04:15. You sell plums and pears. Be brief."},
			{"role":"user","content":"Hello"},{"role":"assistant","content":"Good day!"},{"role":"user","content":"What do you sell?"}]}`,
	} {
		prompt, err := prefixdiff.Parse([]byte(body))
		if err != nil {
			panic(err)
		}
		if f, ok := index.Add(prompt); ok {
			fmt.Printf("%s at %s, token %d: %d tokens lost\n", f.Cause, f.Path, f.Token, f.LostTokens)
		}
	}
	// Output: clock at messages[0].content, token 2: 12 tokens lost
}
