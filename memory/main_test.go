package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/nn/defaultembed"
	"github.com/ragpilot/ragpilot/memory"
)

// Tests and examples run without the sentence model, which is the default of a memory.Config.
func TestMain(m *testing.M) {
	defaultembed.Replace(memory.Lexical)
	goleak.VerifyTestMain(m)
}
