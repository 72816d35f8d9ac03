package safetensors

import (
	"encoding/json"
	"fmt"
	"math"
)

// Config is a model's config.json, as far as it is read. Numbers that are not there are 0.
type Config struct {
	ModelType string `json:"model_type"`

	Layers  int `json:"num_hidden_layers"`
	Hidden  int `json:"hidden_size"`
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
	HeadDim int `json:"head_dim"`
	FFN     int `json:"intermediate_size"`
	Vocab   int `json:"vocab_size"`
	Context int `json:"max_position_embeddings"`

	Eps       float64 `json:"rms_norm_eps"`
	Tied      bool    `json:"tie_word_embeddings"`
	RopeTheta float64 `json:"rope_theta"`
	// Scaling of the rotary frequencies: newer files say "rope_parameters", older ones "rope_scaling".
	Scaling    *Scaling `json:"rope_scaling"`
	Parameters *Scaling `json:"rope_parameters"`

	Activation  string `json:"hidden_act"`
	UsesSliding bool   `json:"use_sliding_window"`
	Sliding     *int   `json:"sliding_window"`

	BOS IDs `json:"bos_token_id"`
	EOS IDs `json:"eos_token_id"`
}

// Scaling is how the rotary frequencies are scaled.
type Scaling struct {
	Type     string  `json:"rope_type"`
	Older    string  `json:"type"`
	Theta    float64 `json:"rope_theta"`
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original float64 `json:"original_max_position_embeddings"`
}

// IDs is one id, several, or null.
type IDs []int32

// UnmarshalJSON reads a number, an array of numbers, or null.
func (i *IDs) UnmarshalJSON(raw []byte) error {
	var one int32
	if err := json.Unmarshal(raw, &one); err == nil {
		if string(raw) != "null" {
			*i = IDs{one}
		}
		return nil
	}
	var several []int32
	if err := json.Unmarshal(raw, &several); err != nil {
		return err
	}
	*i = several
	return nil
}

// ParseConfig reads a config.json and fills in what it may leave out.
func ParseConfig(raw []byte) (*Config, error) {
	c := &Config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("safetensors: config.json: %w", err)
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if c.Eps == 0 {
		c.Eps = 1e-6
	}
	if c.Scaling == nil {
		c.Scaling = c.Parameters
	}
	if c.RopeTheta == 0 && c.Scaling != nil {
		c.RopeTheta = c.Scaling.Theta
	}
	if c.RopeTheta == 0 {
		c.RopeTheta = 10000
	}
	if c.Activation != "" && c.Activation != "silu" {
		return nil, fmt.Errorf("safetensors: config.json: hidden_act %q is not supported; want silu", c.Activation)
	}
	return c, nil
}

// maxHead bounds what RopeFactors allocates.
const maxHead = 1 << 16

// RopeFactors returns what the rotary frequencies are divided by, HeadDim/2 numbers, or nil for none.
//
// Of Llama 3.1: with wavelengths 2π/θ, those up to Original/High keep their frequency, those from Original/Low on are
// divided by Factor, and between the frequency changes linearly with Original/wavelength.
func (c *Config) RopeFactors() ([]float32, error) {
	s := c.Scaling
	if s == nil {
		return nil, nil
	}
	kind := s.Type
	if kind == "" {
		kind = s.Older
	}
	if kind == "" || kind == "default" {
		return nil, nil
	}
	if c.HeadDim < 2 || c.HeadDim > maxHead || !(s.Factor > 0) {
		return nil, fmt.Errorf("safetensors: config.json: rope_scaling factor %v for heads of %d", s.Factor, c.HeadDim)
	}
	factors := make([]float32, c.HeadDim/2)
	switch kind {
	case "linear":
		for j := range factors {
			factors[j] = float32(s.Factor)
		}
		return factors, nil
	case "llama3":
		if !(s.Low > 0) || !(s.High > s.Low) || !(s.Original > 0) {
			return nil, fmt.Errorf("safetensors: config.json: rope_scaling llama3: factors %v and %v, length %v", s.Low, s.High, s.Original)
		}
		for j := range factors {
			factors[j] = float32(s.llama3(math.Pow(c.RopeTheta, -2*float64(j)/float64(c.HeadDim))))
		}
		return factors, nil
	}
	return nil, fmt.Errorf("safetensors: config.json: rope_scaling %q is not supported", kind)
}

func (s *Scaling) llama3(frequency float64) float64 {
	turns := s.Original * frequency / (2 * math.Pi) // in the original length
	switch {
	case turns > s.High:
		return 1
	case turns < s.Low:
		return s.Factor
	}
	smooth := (turns - s.Low) / (s.High - s.Low)
	return 1 / ((1-smooth)/s.Factor + smooth)
}

// Window returns how many tokens attention looks back, 0 for all.
func (c *Config) Window() int {
	// Qwen's files name a window and say whether it is used; others name it only if it is.
	if c.Sliding == nil || !c.UsesSliding && c.ModelType != "llama" {
		return 0
	}
	return max(0, *c.Sliding)
}
