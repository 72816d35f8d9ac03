//go:build cuda

package emulator

import (
	"testing"

	"gorgonia.org/cu"
)

func TestVersion(t *testing.T) {
	t.Log(cu.Version())
}
