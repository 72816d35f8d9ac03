package weights

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/safetensors"
)

// outerNames and layerNames translate the names of Hugging Face's files.
var (
	outerNames = map[string]string{
		"model.embed_tokens.weight": embedding,
		"model.norm.weight":         norm,
		"lm_head.weight":            output,
	}
	layerNames = map[string]string{
		"self_attn.q_proj":         "attn_q",
		"self_attn.k_proj":         "attn_k",
		"self_attn.v_proj":         "attn_v",
		"self_attn.o_proj":         "attn_output",
		"self_attn.q_norm":         "attn_q_norm",
		"self_attn.k_norm":         "attn_k_norm",
		"mlp.gate_proj":            "ffn_gate",
		"mlp.up_proj":              "ffn_up",
		"mlp.down_proj":            "ffn_down",
		"input_layernorm":          "attn_norm",
		"post_attention_layernorm": "ffn_norm",
	}
)

// translate returns a tensor's name in GGUF files; a name that is not known stays.
func translate(name string) string {
	if known, ok := outerNames[name]; ok {
		return known
	}
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, rest, found := strings.Cut(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || !found || dot < 0 {
		return name
	}
	short, ok := layerNames[rest[:dot]]
	if !ok {
		return name
	}
	return "blk." + number + "." + short + rest[dot:]
}

// add adds the tensors of one safetensors file.
func (m *Model) add(data []byte) error {
	list, err := safetensors.Parse(data)
	if err != nil {
		return err
	}
	for _, t := range list {
		if strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") { // what the parameters say too
			continue
		}
		tensor, err := fromSafetensor(t)
		if err != nil {
			return err
		}
		if _, twice := m.Tensors[tensor.Name]; twice {
			return fmt.Errorf("tensor %q: twice", t.Name)
		}
		m.Tensors[tensor.Name] = tensor
	}
	return nil
}

func fromSafetensor(t safetensors.Tensor) (Tensor, error) {
	out := Tensor{Name: translate(t.Name), Rows: 1, Data: t.Data}
	switch t.DType {
	case "F32":
		out.Type = quant.F32
	case "F16":
		out.Type = quant.F16
	case "BF16":
		out.Type = quant.BF16
	default:
		return out, fmt.Errorf("tensor %q: type %s is not read; want F32, F16 or BF16", t.Name, t.DType)
	}
	switch len(t.Shape) {
	case 1:
		out.Cols = t.Shape[0]
	case 2:
		out.Rows, out.Cols = t.Shape[0], t.Shape[1]
	default:
		return out, fmt.Errorf("tensor %q: shape %v, want one or two sizes", t.Name, t.Shape)
	}
	// The format does not promise alignment, though files in use have it. Memory that is made for it is aligned.
	if _, width := out.Type.Block(); t.Offset%width != 0 {
		out.Data = bytes.Clone(t.Data)
	}
	return out, nil
}
