package defaultembed_test

import (
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/nn/defaultembed"
	"github.com/ragpilot/ragpilot/embed/minilm"
)

func TestEmbedder(t *testing.T) {
	if defaultembed.Embedder() != embed.Embedder(minilm.Default()) {
		t.Errorf("the default is %v", defaultembed.Embedder())
	}
	other := embed.NewHashed(8)
	defaultembed.Replace(other)
	if defaultembed.Embedder() != embed.Embedder(other) {
		t.Errorf("replaced: %v", defaultembed.Embedder())
	}
}
