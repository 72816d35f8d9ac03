package frameworktest_test

import (
	"context"
	"fmt"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

// A framework's test gives a front end that wraps a model; conversationtest.Run plays the script over it.
func Example() {
	frontend := frameworktest.New("mine", func(*contextpilot.Pilot, contextpilot.Scope) frameworktest.Ask {
		return func(ctx context.Context, messages []conversationtest.Message) error {
			return frameworktest.Arrive(ctx, messages) // a wrapped model would be asked here
		}
	})
	fmt.Println(frontend != nil)
	// Output: true
}
