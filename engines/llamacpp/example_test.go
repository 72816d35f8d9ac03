package llamacpp_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// An engine for a llama-server says beforehand what a request will find in the cache, and afterwards whose prefix it cost.
func Example() {
	url, stop := exampleServer()
	defer stop()
	engine, err := llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: url}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer engine.Close()
	engine.Subscribe(func(events ...contextpilot.Event) {
		for _, e := range events {
			fmt.Println(e.Kind, e.Request, e.Tokens)
		}
	})
	for _, question := range []string{"the first question", "the first question again", "another"} {
		req := engines.Request{ID: question, Messages: []engines.Message{{Role: engines.User, Content: question}}}
		p, err := engine.Predict(context.Background(), req)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Printf("%q: %d of %d tokens are cached\n", question, p.Cached, p.Prompt)
		if _, err := engine.Generate(context.Background(), req, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
	// Output:
	// "the first question": 0 of 5 tokens are cached
	// served the first question 0
	// "the first question again": 4 of 6 tokens are cached
	// shrunk the first question 4
	// served the first question again 4
	// "another": 1 of 3 tokens are cached
	// shrunk the first question 1
	// shrunk the first question again 1
	// served another 1
}

// exampleServer starts a stand-in with one slot, whose tokens are words.
func exampleServer() (url string, stop func()) {
	t := new(testing.T)
	f := startFake(cleaning{t}, traits{slots: 1})
	return f.URL, f.stop
}

// cleaning is a test without an end.
type cleaning struct{ testing.TB }

func (cleaning) Cleanup(func()) {}
func (cleaning) Helper()        {}
