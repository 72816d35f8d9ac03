package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/memory"
)

// Tests and examples run without the sentence model, which is the default of a memory.Config.
func TestMain(m *testing.M) {
	memory.SetDefaultEmbedder(memory.Lexical)
	goleak.VerifyTestMain(m)
}
