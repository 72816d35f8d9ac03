package weights_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/safetensors"
)

// A folder is the same model as the GGUF file, but for the pairing of rotated elements.
func TestFolderIsTheSameModel(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		for _, format := range []quant.Type{quant.F32, quant.F16, quant.BF16} {
			t.Run(arch+" "+format.String(), func(t *testing.T) {
				o := tinymodel.Options{Architecture: arch, Type: format, Untied: arch == "qwen3", Seed: 5}
				want := open(t, o)
				got, err := weights.Open(folder(t, o))
				if err != nil {
					t.Fatal(err)
				}
				defer got.Close()
				params := want.Params
				params.RopeInterleaved = false
				if diff := cmp.Diff(params, got.Params); diff != "" {
					t.Error(diff)
				}
				if len(got.Tensors) != len(want.Tensors) {
					t.Errorf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
				}
				for name, w := range want.Tensors {
					g := got.Tensors[name]
					if g.Name != name || g.Rows != w.Rows || g.Cols != w.Cols {
						t.Fatalf("%s is %q, %d rows of %d, want %d of %d", name, g.Name, g.Rows, g.Cols, w.Rows, w.Cols)
					}
					if !slices.Equal(g.Float32(), paired(w, want.HeadDim, arch == "llama")) && (w.Rows > 1 || format == quant.F32) {
						t.Errorf("%s has other weights", name)
					}
				}
				const text = "The end, in 2026: naïve 東京 <|im_end|>"
				if a, b := want.Tokenizer.Encode(text, true), got.Tokenizer.Encode(text, true); !slices.Equal(a, b) {
					t.Errorf("tokens are %v, want %v", b, a)
				}
				if got.Template != want.Template || !slices.Equal(got.Stop, want.Stop) || got.BOS != want.BOS || got.AddBOS != want.AddBOS {
					t.Errorf("template %+v, stop %v, BOS %d %v", got.Template, got.Stop, got.BOS, got.AddBOS)
				}
			})
		}
	}
}

// paired returns weights with elements j and j+size/2 of a head paired, from those with 2j and 2j+1.
func paired(t weights.Tensor, size int, interleaved bool) []float32 {
	all := t.Float32()
	if !interleaved || !strings.Contains(t.Name, "attn_q.") && !strings.Contains(t.Name, "attn_k.") {
		return all
	}
	out := make([]float32, 0, len(all))
	for row := range t.Rows {
		head, i := row/size, row%size
		from := head*size + i%(size/2)*2 + i/(size/2)
		out = append(out, all[from*t.Cols:(from+1)*t.Cols]...)
	}
	return out
}

func TestFolderInShards(t *testing.T) {
	dir := folder(t, tinymodel.Options{Seed: 1})
	whole := filepath.Join(dir, "model.safetensors")
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	all, err := safetensors.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	index := map[string]string{}
	for i, part := range [][]safetensors.Tensor{all[:5], all[5:]} {
		name := []string{"a.safetensors", "b.safetensors"}[i]
		if err := os.WriteFile(filepath.Join(dir, name), safetensorsFile(t, part), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, tensor := range part {
			index[tensor.Name] = name
		}
	}
	write := func() {
		t.Helper()
		raw, _ := json.Marshal(map[string]any{"weight_map": index})
		if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if err := os.Remove(whole); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	index["x"] = "../b.safetensors"
	write()
	if _, err := weights.Open(dir); err == nil || !strings.Contains(err.Error(), `"../b.safetensors"`) {
		t.Errorf("a shard outside of the folder: %v", err)
	}
}

func TestFolderErrors(t *testing.T) {
	cases := map[string]struct {
		file, old, new string
		want           string
	}{
		"architecture": {"config.json", `"model_type":"llama"`, `"model_type":"gpt9"`, `"gpt9"`},
		"window": {
			"config.json",
			`"model_type":"llama"`,
			`"model_type":"gemma2","hidden_act":"gelu"`,
			`"gemma2" is not supported (in some layers attention sees a window only)`,
		},
		"layers":       {"config.json", `"num_hidden_layers":2`, `"num_hidden_layers":3`, `"blk.2.attn_k.weight"`},
		"fewer layers": {"config.json", `"num_hidden_layers":2`, `"num_hidden_layers":1`, `"blk.1.attn_k.weight"`},
		"hidden":       {"config.json", `"hidden_size":64`, `"hidden_size":96`, `"output_norm.weight": 1 rows of 64, want 1 of 96`},
		"zero":         {"config.json", `"hidden_size":64`, `"hidden_size":0`, `hidden_size 0`},
		"activation":   {"config.json", `"silu"`, `"gelu"`, `"gelu"`},
		"untied":       {"config.json", `"tie_word_embeddings":true`, `"tie_word_embeddings":false`, `"output.weight"`},
		"rope":         {"config.json", `"rope_theta":10000`, `"rope_scaling":{"type":"yarn","factor":2}`, `"yarn"`},
		"bos":          {"config.json", `"bos_token_id":1`, `"bos_token_id":320`, `320`},
		"tokenizer":    {"tokenizer.json", `"BPE"`, `"Unigram"`, `"Unigram"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, tinymodel.Options{})
			path := filepath.Join(dir, c.file)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(raw), c.old, c.new, 1)
			if changed == string(raw) {
				t.Fatalf("%s has no %s", c.file, c.old)
			}
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := weights.Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %s", err, c.want)
			}
		})
	}
	for _, file := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		dir := folder(t, tinymodel.Options{})
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := weights.Open(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", file, err)
		}
	}
}
