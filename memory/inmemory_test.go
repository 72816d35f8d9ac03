package memory_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/memorytest"
)

func TestInMemory(t *testing.T) {
	memorytest.RunBackend(t, func(*testing.T) memory.Backend { return memory.NewInMemory() })
}
