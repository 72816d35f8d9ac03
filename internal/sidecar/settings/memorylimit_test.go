package settings_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// The runtime's memory limit follows the settings, unless the environment has one.
func TestLimitMemory(t *testing.T) {
	for given, want := range map[string]int64{"": 128<<20 + 400<<20 + 2<<30, "1GiB": 0, "off": 0} {
		var said bytes.Buffer
		set := int64(0)
		lookup := func(name string) (string, bool) { return given, name == "GOMEMLIMIT" && given != "" }
		settings.Default().LimitMemory(lookup, func(n int64) int64 { set = n; return 0 }, slog.New(slog.NewTextHandler(&said, nil)))
		if set != want || !strings.Contains(said.String(), "memory limit") {
			t.Errorf("GOMEMLIMIT %q: %d, want %d; log %q", given, set, want, said.String())
		}
	}
}

// The sentence model has room of its own, where there is one.
func TestMemoryLimitOfTheModel(t *testing.T) {
	base := settings.Default().MemoryLimit()
	for embedder, want := range map[string]int64{"auto": 128 << 20, "minilm:/models": 128 << 20, "lexical": 0, "http://host": 0} {
		c := settings.Default()
		c.Memory.Dir, c.Memory.Embedder = "memories", embedder
		if got := c.MemoryLimit() - base; got != want {
			t.Errorf("%s: %d bytes more, want %d", embedder, got, want)
		}
	}
}
