package kvevents_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The fake engine's PUB socket, the library's, never ends the goroutine that sends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/go-zeromq/zmq4.(*pubMWriter).run"))
}
