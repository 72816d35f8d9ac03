package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/internal/nn/mmap"
	"github.com/ragpilot/ragpilot/internal/nn/safetensors"
)

// openFolder loads a folder as Hugging Face's libraries write it.
func openFolder(dir string) (*Model, error) {
	m := &Model{BOS: -1, Tensors: map[string]Tensor{}}
	if err := m.configure(dir); err != nil {
		return nil, err
	}
	files, err := shards(dir)
	if err != nil {
		return nil, err
	}
	var open []*mmap.File
	m.close = func() error {
		errs := make([]error, len(open))
		for i, f := range open {
			errs[i] = f.Close()
		}
		return errors.Join(errs...)
	}
	for _, name := range files {
		f, err := mmap.Open(filepath.Join(dir, name))
		if err != nil {
			m.Close()
			return nil, err
		}
		open = append(open, f)
		if err := m.add(f.Bytes()); err != nil {
			m.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if m.TiedOutput {
		delete(m.Tensors, output)
	}
	return m, nil
}

// configure reads everything but the weights.
func (m *Model) configure(dir string) error {
	raw, err := readFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	var kind struct {
		Type string `json:"model_type"`
	}
	if err := json.Unmarshal(raw, &kind); err == nil {
		if err := supported(kind.Type); err != nil { // before what such a model has besides
			return fmt.Errorf("config.json: %w", err)
		}
	}
	c, err := safetensors.ParseConfig(raw)
	if err != nil {
		return err
	}
	if m.Params, err = paramsOf(c); err != nil {
		return err
	}
	if window := c.Window(); window > 0 && window < m.Context {
		m.Warnings = append(m.Warnings, fmt.Sprintf("the context is cut from %d to the attention window of %d tokens", m.Context, window))
		m.Context = window
	}
	if raw, err = readFile(filepath.Join(dir, "tokenizer.json")); err != nil {
		return err
	}
	if m.Tokenizer, err = bpe.FromJSON(raw); err != nil {
		return err
	}
	if err := m.begins(c); err != nil {
		return err
	}
	ends := []int32(c.EOS)
	var generation safetensors.Config // only its ids are read
	if raw, err := readFile(filepath.Join(dir, "generation_config.json")); err == nil && json.Unmarshal(raw, &generation) == nil {
		ends = append(ends, generation.EOS...)
	}
	m.stop(ends...)
	m.recognize(templateOf(dir))
	return nil
}

// begins finds the token that begins texts.
func (m *Model) begins(c *safetensors.Config) error {
	if len(c.BOS) > 0 {
		if m.BOS = c.BOS[0]; m.BOS < 0 || int(m.BOS) >= m.Vocab {
			return fmt.Errorf("config.json: bos_token_id %d with %d tokens", m.BOS, m.Vocab)
		}
	}
	if id, ok := m.Tokenizer.First(); ok {
		m.BOS, m.AddBOS = id, true
	}
	return nil
}

func paramsOf(c *safetensors.Config) (Params, error) {
	factors, err := c.RopeFactors()
	if err != nil {
		return Params{}, err
	}
	for name, n := range map[string]int{
		"num_hidden_layers": c.Layers, "hidden_size": c.Hidden, "num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads,
		"head_dim": c.HeadDim, "intermediate_size": c.FFN, "vocab_size": c.Vocab, "max_position_embeddings": c.Context,
	} {
		if n < 1 || n > most {
			return Params{}, fmt.Errorf("config.json: %s %d: want a number from 1 to %d", name, n, most)
		}
	}
	return Params{
		Architecture: c.ModelType, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, FFN: c.FFN,
		Vocab: c.Vocab, Context: c.Context, RopeBase: c.RopeTheta, RopeFactors: factors, Eps: float32(c.Eps), TiedOutput: c.Tied,
	}, nil
}

// readFile reads one of the JSON files, which have at most some MiB.
func readFile(path string) ([]byte, error) { return mmap.ReadFile(path, 1<<30) }

// shards returns the names of the weight files.
func shards(dir string) ([]string, error) {
	raw, err := readFile(filepath.Join(dir, "model.safetensors.index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"model.safetensors"}, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("model.safetensors.index.json: %w", err)
	}
	var names []string
	for tensor, name := range index.Files {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("model.safetensors.index.json: tensor %q: %q is not the name of a file beside it", tensor, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// templateOf returns the chat template of a folder: chat_template.jinja, or that of tokenizer_config.json, where several
// may be listed by name.
func templateOf(dir string) string {
	if raw, err := readFile(filepath.Join(dir, "chat_template.jinja")); err == nil {
		return string(raw)
	}
	raw, err := readFile(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return ""
	}
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return ""
	}
	var one string
	if json.Unmarshal(c.Template, &one) == nil {
		return one
	}
	var several []struct{ Name, Template string }
	if json.Unmarshal(c.Template, &several) == nil {
		for _, t := range several {
			if t.Name == "default" {
				return t.Template
			}
		}
	}
	return ""
}
