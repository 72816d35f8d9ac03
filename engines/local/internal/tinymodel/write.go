package tinymodel

import (
	"bytes"
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

// Write writes a model as a GGUF file. It is an error if a format does not fit the shape.
func Write(path string, o Options) error {
	var buf bytes.Buffer
	o = o.filled()
	tensors, err := o.pack()
	if err == nil {
		err = gguf.Write(&buf, o.metadata(), tensors)
	}
	if err == nil {
		err = os.WriteFile(path, buf.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("tinymodel: %w", err)
	}
	return nil
}

// pack returns the tensors as a GGUF file has them.
func (o Options) pack() ([]gguf.Tensor, error) {
	var list []gguf.Tensor
	for i, t := range o.tensors() {
		if o.Architecture == "llama" && t.heads > 0 {
			t = t.interleave()
		}
		format, dims := o.Type, []int{t.cols, t.rows}
		if other, ok := o.Types[t.name]; ok {
			format = other
		}
		if t.rows == 0 {
			format, dims = quant.F32, dims[:1]
		}
		if _, err := format.Bytes(t.cols); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.name, err)
		}
		data, err := packed(format, t.data)
		if err != nil { // the format can only be read
			data = quanttest.Random(format, len(t.data), t.spread, o.Seed+uint64(i))
		}
		list = append(list, gguf.Tensor{Name: t.name, Type: format, Dims: dims, Data: data})
	}
	if o.RopeFactors != nil {
		data, err := packed(quant.F32, o.RopeFactors)
		if err != nil {
			return nil, err
		}
		list = append(list, gguf.Tensor{Name: "rope_freqs.weight", Type: quant.F32, Dims: []int{len(o.RopeFactors)}, Data: data})
	}
	return list, nil
}

func packed(t quant.Type, data []float32) ([]byte, error) {
	size, err := t.Bytes(len(data))
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	return out, quant.Quantize(t, out, data)
}

func (o Options) metadata() []gguf.Pair {
	a := o.Architecture + "."
	v := o.vocabulary()
	pairs := []gguf.Pair{
		{Key: "general.architecture", Value: o.Architecture},
		{Key: "general.name", Value: "tiny " + o.Architecture},
		{Key: a + "block_count", Value: uint32(o.Layers)},
		{Key: a + "context_length", Value: uint32(o.Context)},
		{Key: a + "embedding_length", Value: uint32(o.Hidden)},
		{Key: a + "feed_forward_length", Value: uint32(o.FFN)},
		{Key: a + "attention.head_count", Value: uint32(o.Heads)},
		{Key: a + "attention.head_count_kv", Value: uint32(o.KVHeads)},
		{Key: a + "attention.key_length", Value: uint32(o.HeadDim)},
		{Key: a + "attention.value_length", Value: uint32(o.HeadDim)},
		{Key: a + "attention.layer_norm_rms_epsilon", Value: float32(eps)},
		{Key: a + "rope.freq_base", Value: float32(ropeBase)},
		{Key: a + "rope.dimension_count", Value: uint32(o.HeadDim)},
		{Key: a + "vocab_size", Value: uint32(len(v.Tokens))},
		{Key: "tokenizer.ggml.tokens", Value: v.Tokens},
		{Key: "tokenizer.ggml.token_type", Value: v.Types},
	}
	if o.SentencePiece {
		return append(pairs, []gguf.Pair{
			{Key: "tokenizer.ggml.model", Value: "llama"},
			{Key: "tokenizer.ggml.scores", Value: v.Scores},
			{Key: "tokenizer.chat_template", Value: zephyr},
		}...)
	}
	split := "smollm"
	if o.Architecture != "llama" {
		split = "qwen2"
	}
	template := chatML
	if o.Thinking {
		template = "{% set content = content.split('</think>')[-1] %}" + template
	}
	return append(pairs, []gguf.Pair{
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: split},
		{Key: "tokenizer.ggml.merges", Value: v.Merges},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
		{Key: "tokenizer.ggml.add_bos_token", Value: o.AddBOS},
		{Key: "tokenizer.chat_template", Value: template},
	}...)
}
