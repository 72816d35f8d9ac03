package minilm

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The files of a model.
const (
	configFile        = "config.json"
	tokenizerFileName = "tokenizer.json"
	weightsFile       = "model.safetensors"
)

// maxTokenizerFile bounds the JSON files that are read whole, in bytes.
const maxTokenizerFile = 64 << 20

// config is what config.json says of a BERT encoder.
type config struct {
	ModelType         string  `json:"model_type"`
	Activation        string  `json:"hidden_act"`
	PositionEmbedding string  `json:"position_embedding_type"`
	Hidden            int     `json:"hidden_size"`
	Intermediate      int     `json:"intermediate_size"`
	Heads             int     `json:"num_attention_heads"`
	Layers            int     `json:"num_hidden_layers"`
	Positions         int     `json:"max_position_embeddings"`
	Types             int     `json:"type_vocab_size"`
	Vocabulary        int     `json:"vocab_size"`
	Epsilon           float64 `json:"layer_norm_eps"`
}

// parseConfig reads config.json. What it accepts, the forward pass computes as the reference does.
func parseConfig(data []byte) (config, error) {
	c := config{PositionEmbedding: "absolute"} // older files do not say it
	if err := json.Unmarshal(data, &c); err != nil {
		return config{}, err
	}
	return c, errors.Join(c.checkKind(), c.checkSizes())
}

func (c config) checkKind() error {
	for _, f := range []struct{ name, got, want string }{
		{"model_type", c.ModelType, "bert"},
		{"hidden_act", c.Activation, "gelu"},
		{"position_embedding_type", c.PositionEmbedding, "absolute"},
	} {
		if f.got != f.want {
			return fmt.Errorf("%s = %q, want %q", f.name, f.got, f.want)
		}
	}
	return nil
}

func (c config) checkSizes() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"hidden_size", c.Hidden, 4096},
		{"intermediate_size", c.Intermediate, 1 << 14},
		{"num_attention_heads", c.Heads, 256},
		{"num_hidden_layers", c.Layers, 64},
		{"max_position_embeddings", c.Positions, 1 << 16},
		{"type_vocab_size", c.Types, 16},
		{"vocab_size", c.Vocabulary, 1 << 20},
	} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("%s = %d, want 1 to %d", f.name, f.value, f.max)
		}
	}
	switch {
	case c.Hidden%c.Heads != 0:
		return fmt.Errorf("num_attention_heads = %d, and hidden_size = %d is not a multiple of it", c.Heads, c.Hidden)
	case c.Positions < 3:
		return fmt.Errorf("max_position_embeddings = %d, want 3 at least", c.Positions)
	case c.Epsilon <= 0 || c.Epsilon > 1e-3:
		return fmt.Errorf("layer_norm_eps = %g, want more than 0 and 0.001 at most", c.Epsilon)
	}
	return nil
}
