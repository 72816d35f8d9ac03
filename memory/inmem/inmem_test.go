package inmem_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
	"github.com/ragpilot/ragpilot/memory/memorytest"
)

func TestConformance(t *testing.T) {
	memorytest.RunBackend(t, func(*testing.T) memory.Backend { return inmem.New() })
}
