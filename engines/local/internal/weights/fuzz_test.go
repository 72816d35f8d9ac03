package weights_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Whatever a file says, it is a model or an error. A model is one that can be used: every tensor has its bytes.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	for i, o := range []tinymodel.Options{
		{Layers: 1, Hidden: 32, Heads: 2, KVHeads: 1, FFN: 32, Type: quant.Q4_1},
		{Architecture: "qwen2", Layers: 1, Hidden: 8, Heads: 1, KVHeads: 1, HeadDim: 2, FFN: 2},
		{Architecture: "qwen3", Layers: 1, Hidden: 8, Heads: 1, KVHeads: 1, HeadDim: 2, FFN: 2, Untied: true},
		{Layers: 1, Hidden: 8, Heads: 1, KVHeads: 1, HeadDim: 2, FFN: 2, SentencePiece: true},
		{Layers: 1, Hidden: 32, Heads: 2, KVHeads: 1, FFN: 256, Type: quant.Q5_0, Types: map[string]quant.Type{
			"blk.0.attn_q.weight": quant.Q5_1, "blk.0.attn_k.weight": quant.IQ4_NL, "blk.0.ffn_down.weight": quant.Q3_K,
		}},
	} {
		path := filepath.Join(dir, string(rune('a'+i)))
		if err := tinymodel.Write(path, o); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzzed.gguf")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := weights.Open(path)
		if err != nil {
			return
		}
		defer m.Close()
		for name, tensor := range m.Tensors {
			if len(tensor.Float32()) != tensor.Rows*tensor.Cols {
				t.Fatalf("%q has not %d weights", name, tensor.Rows*tensor.Cols)
			}
		}
		for _, id := range append(m.Text("the end <|im_end|>"), m.Stop...) {
			if id < 0 || int(id) >= m.Vocab {
				t.Fatalf("id %d of %d", id, m.Vocab)
			}
		}
		m.Output()
	})
}
