package weights_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// patched writes a tiny model whose value of a key of 4 bytes is another one, and opens it.
func patched(t *testing.T, key string, value uint32) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(key))
	if at < 0 {
		t.Fatalf("no key %q", key)
	}
	binary.LittleEndian.PutUint32(data[at+len(key)+4:], value)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(path)
	if err == nil {
		m.Close()
	}
	return err
}

func TestNumbersThatDoNotFit(t *testing.T) {
	cases := []struct {
		key   string
		value uint32
		want  string
	}{
		{"llama.block_count", 0, `key "llama.block_count": 0`},
		{"llama.block_count", 3, `tensor "blk.2.attn_k.weight": not there; want 32 rows of 64`},
		{"llama.block_count", 1, `tensor "blk.1.attn_k.weight"`},
		{"llama.block_count", math.MaxUint32, "4294967295"},
		{"llama.block_count", 1 << 30, `tensor "blk.2.attn_k.weight": not there`},
		{"llama.context_length", 1 << 28, "context of 268435456 tokens"},
		{"llama.embedding_length", 65, `tensor "output_norm.weight": 1 rows of 64, want 1 of 65`},
		{"llama.feed_forward_length", 1 << 30, `tensor "blk.0.ffn_down.weight": 64 rows of 128, want 64 of 1073741824`},
		{"llama.attention.head_count_kv", 3, "4 heads and 3 for keys and values"},
		{"llama.attention.key_length", 17, `key "llama.attention.value_length": 16`},
		{"llama.rope.dimension_count", 8, `key "llama.rope.dimension_count": 8`},
		{"llama.rope.freq_base", math.Float32bits(float32(math.NaN())), `key "llama.rope.freq_base": NaN`},
		{"llama.rope.freq_base", math.Float32bits(float32(math.Inf(1))), `key "llama.rope.freq_base": +Inf`},
		{"llama.attention.layer_norm_rms_epsilon", math.Float32bits(-1), "-1"},
		{"llama.vocab_size", 321, `tensor "token_embd.weight": 320 rows of 64, want 321 of 64`},
		{"llama.vocab_size", 319, "320 tokens for 319 rows"},
		{"tokenizer.ggml.bos_token_id", 320, `key "tokenizer.ggml.bos_token_id": 320 with 320 tokens`},
	}
	for _, c := range cases {
		if err := patched(t, c.key, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %d: the error is %v, want one with %s", c.key, c.value, err, c.want)
		}
	}
	if err := patched(t, "llama.embedding_length", 65); !errors.Is(err, weights.ErrShape) {
		t.Errorf("%v is no ErrShape", err)
	}
	if err := patched(t, "tokenizer.ggml.bos_token_id", math.MaxUint32); err != nil {
		t.Errorf("no BOS: %v", err)
	}
}

// A model of Llama 3.1 has its factors in a tensor; what is no tensor of the architecture is an error.
func TestTensorsBesideTheLayers(t *testing.T) {
	m := open(t, tinymodel.Options{RopeFactors: []float32{1, 1, 1, 2, 4, 8, 8, 8}})
	if len(m.RopeFactors) != 8 || m.RopeFactors[4] != 4 {
		t.Errorf("rope factors are %v", m.RopeFactors)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	for factors, want := range map[int]string{7: `tensor "rope_freqs.weight": 1 rows of 7, want 1 of 8`, 8: "rope factor 0 is 0"} {
		if err := tinymodel.Write(path, tinymodel.Options{RopeFactors: make([]float32, factors)}); err != nil {
			t.Fatal(err)
		}
		if _, err := weights.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d factors: %v", factors, err)
		}
	}
	// One with a bias that llama has none of.
	m.Tensors["blk.1.attn_output.bias"] = weights.Tensor{Rows: 1, Cols: 64}
	if err := m.Check(); err == nil ||
		!strings.Contains(err.Error(), `tensor "blk.1.attn_output.bias": architecture "llama" with 2 layers has none`) {
		t.Errorf("an unknown tensor: %v", err)
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	written := func(arch string, tensors ...gguf.Tensor) []byte {
		var file bytes.Buffer
		if err := gguf.Write(&file, []gguf.Pair{{Key: "general.architecture", Value: arch}}, tensors); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	experts := gguf.Tensor{Name: "blk.0.ffn_up_exps.weight", Dims: []int{8, 2, 2}, Data: make([]byte, 128)}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"experts": {written("qwen3moe", experts), `architecture "qwen3moe" is not supported (mixtures of experts); supported are [llama`},
		"window":  {written("gemma3"), `architecture "gemma3" is not supported (in some layers attention sees a window only)`},
		"hybrid":  {written("qwen35"), `architecture "qwen35" is not supported (some layers have a state in place of attention)`},
		"empty":   {nil, "not a GGUF file"}, "text": {[]byte("hello, this is text"), "not a GGUF file"}, "architecture": {written("rwkv"), `"rwkv" is not supported; supported are [llama qwen2 qwen3]`},
	} {
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := weights.Open(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := weights.Open(dir); err == nil || err.Error() != "weights: "+dir+": it is a folder; want a GGUF file" {
		t.Errorf("a folder: the error is %v", err)
	}
	if _, err := weights.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := tinymodel.Write(path, tinymodel.Options{Type: quant.Q4_K}); err == nil {
		t.Error("rows of 64 were written in Q4_K")
	}
}
