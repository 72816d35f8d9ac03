package weights_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/safetensors"
)

// folder writes the model that tinymodel.Write writes as a folder of config.json, tokenizer.json, tokenizer_config.json and
// model.safetensors, all tensors in the format, which must be F32, F16 or BF16.
func folder(t testing.TB, o tinymodel.Options) string {
	t.Helper()
	o = o.Filled()
	files := map[string][]byte{"model.safetensors": safetensorsFile(t, tensorsOf(t, o))}
	for name, value := range map[string]any{
		"config.json": configOf(o), "tokenizer.json": tokenizerOf(o),
		"tokenizer_config.json": map[string]string{"chat_template": tinymodel.Template},
	} {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tensorsOf returns the tensors by the names and with the pairing of Hugging Face's files.
func tensorsOf(t testing.TB, o tinymodel.Options) (list []safetensors.Tensor) {
	t.Helper()
	names := strings.NewReplacer("blk.", "model.layers.", "attn_q_norm", "self_attn.q_norm", "attn_k_norm", "self_attn.k_norm",
		"attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj", "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj",
		"ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj",
		"attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm",
		"token_embd", "model.embed_tokens", "output_norm", "model.norm", "output.", "lm_head.")
	for _, x := range o.Tensors() {
		shape := []int{x.Rows, x.Cols}
		if x.Rows == 0 {
			shape = shape[1:]
		}
		_, width := o.Type.Block()
		data := make([]byte, width*len(x.Data))
		if err := quant.Quantize(o.Type, data, x.Data); err != nil {
			t.Fatal(err)
		}
		list = append(list, safetensors.Tensor{Name: names.Replace(x.Name), DType: o.Type.String(), Shape: shape, Data: data})
	}
	return list
}

func configOf(o tinymodel.Options) map[string]any {
	return map[string]any{
		"model_type": o.Architecture, "num_hidden_layers": o.Layers, "hidden_size": o.Hidden, "num_attention_heads": o.Heads,
		"num_key_value_heads": o.KVHeads, "head_dim": o.HeadDim, "intermediate_size": o.FFN, "vocab_size": len(o.Vocabulary().Tokens),
		"max_position_embeddings": o.Context, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": !o.Untied,
		"hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2,
	}
}

func tokenizerOf(o tinymodel.Options) map[string]any {
	v := o.Vocabulary()
	vocab, names := map[string]int{}, []map[string]any{}
	for id, spelling := range v.Tokens {
		switch v.Types[id] {
		case 1:
			vocab[spelling] = id
		case 3:
			names = append(names, map[string]any{"id": id, "content": spelling, "special": true})
		}
	}
	bytelevel := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
	split, normalizer := any(map[string]any{"type": "Digits", "individual_digits": true}), any(nil)
	if o.Architecture != "llama" {
		bytelevel["use_regex"] = false
		split = map[string]any{
			"type": "Split", "behavior": "Isolated", "invert": false,
			"pattern": map[string]string{
				"Regex": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
			},
		}
		normalizer = map[string]string{"type": "NFC"}
	}
	return map[string]any{
		"added_tokens": names, "normalizer": normalizer, "decoder": map[string]string{"type": "ByteLevel"},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{split, bytelevel}},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": v.Merges},
	}
}

// safetensorsFile is a file with the tensors' data in the order of the list.
func safetensorsFile(t testing.TB, tensors []safetensors.Tensor) []byte {
	t.Helper()
	header, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, 0
	var data []byte
	for _, x := range tensors {
		header[x.Name] = map[string]any{"dtype": x.DType, "shape": x.Shape, "data_offsets": []int{at, at + len(x.Data)}}
		at += len(x.Data)
		data = append(data, x.Data...)
	}
	raw, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	for len(raw)%8 != 0 { // data begin at a multiple of 8
		raw = append(raw, ' ')
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw, data)
}
