package weights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Architectures that are read.
var architectures = []string{"llama", "qwen2", "qwen3"}

// Families that are not read, by what their layers have that is not computed here.
var others = map[string][]string{
	"in some layers attention sees a window only": {
		"gemma2", "gemma3", "gemma3n", "gemma4", "gemma-embedding", "cohere2", "gpt-oss", "exaone4", "mimo2", "step35", "smallthinker",
	},
	"some layers have a state in place of attention": {
		"qwen3next", "qwen35", "qwen35moe", "jamba", "falcon-h1", "granitehybrid", "nemotron_h", "nemotron_h_moe", "lfm2", "lfm2moe", "plamo2",
		"kimi-linear",
	},
	"the layers have a state in place of attention": {"mamba", "mamba2", "rwkv6", "rwkv7"},
	"mixtures of experts":                           {"qwen2moe", "qwen3moe", "granitemoe", "olmoe", "deepseek2", "llama4"},
}

// supported returns an error that names an architecture which is not read, with the reason where it is known.
func supported(arch string) error {
	if slices.Contains(architectures, arch) {
		return nil
	}
	reason := ""
	for why, names := range others {
		if slices.Contains(names, arch) {
			reason = " (" + why + ")"
		}
	}
	return fmt.Errorf("architecture %q is not supported%s; supported are %v", arch, reason, architectures)
}

// Names of tensors outside of layers.
const (
	embedding = "token_embd.weight"
	norm      = "output_norm.weight"
	output    = "output.weight"
)

// ErrShape is wrapped by errors of tensors that have another shape than the architecture's.
var ErrShape = errors.New("wrong shape")

// shapeError says which shape a tensor has and should have.
func (t Tensor) shapeError(rows, cols int) error {
	return fmt.Errorf("tensor %q: %d rows of %d, want %d of %d: %w", t.Name, t.Rows, t.Cols, rows, cols, ErrShape)
}

// shape is what a tensor must have.
type shape struct {
	rows, cols int
	optional   bool
}

// outer are the tensors outside of layers, layer those of one, without the "blk.N." in front.
func (p Params) outer() map[string]shape {
	s := map[string]shape{embedding: {p.Vocab, p.Hidden, false}, norm: {1, p.Hidden, false}}
	if !p.TiedOutput {
		s[output] = shape{p.Vocab, p.Hidden, false}
	}
	return s
}

func (p Params) layer() map[string]shape {
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	bias := p.Architecture != "qwen2" // which has them always
	s := map[string]shape{
		"attn_norm.weight":   {1, p.Hidden, false},
		"attn_q.weight":      {q, p.Hidden, false},
		"attn_k.weight":      {kv, p.Hidden, false},
		"attn_v.weight":      {kv, p.Hidden, false},
		"attn_output.weight": {p.Hidden, q, false},
		"ffn_norm.weight":    {1, p.Hidden, false},
		"ffn_gate.weight":    {p.FFN, p.Hidden, false},
		"ffn_up.weight":      {p.FFN, p.Hidden, false},
		"ffn_down.weight":    {p.Hidden, p.FFN, false},
		"attn_q.bias":        {1, q, bias},
		"attn_k.bias":        {1, kv, bias},
		"attn_v.bias":        {1, kv, bias},
	}
	if p.Architecture == "qwen3" {
		s["attn_q_norm.weight"] = shape{1, p.HeadDim, false}
		s["attn_k_norm.weight"] = shape{1, p.HeadDim, false}
	}
	return s
}

// Check returns an error unless every tensor that the architecture needs is there with the right shape, there is none
// that it does not know (leaving it out would change the answers), and the numbers fit together. Open has checked.
func (m *Model) Check() error {
	if err := m.check(); err != nil {
		return err
	}
	if n := m.Tokenizer.Vocab(); n > m.Vocab {
		return fmt.Errorf("%d tokens for %d rows of %q", n, m.Vocab, embedding)
	}
	known := make(map[string]bool, len(m.Tensors))
	take := func(prefix string, shapes map[string]shape) error {
		for _, name := range slices.Sorted(maps.Keys(shapes)) {
			want := shapes[name]
			t, ok := m.Tensors[prefix+name]
			switch {
			case !ok && !want.optional:
				return fmt.Errorf("tensor %q: not there; want %d rows of %d", prefix+name, want.rows, want.cols)
			case !ok:
				continue
			case t.Rows != want.rows || t.Cols != want.cols:
				return t.shapeError(want.rows, want.cols)
			}
			known[prefix+name] = true
		}
		return nil
	}
	if err := take("", m.outer()); err != nil {
		return err
	}
	layer := m.layer()
	for i := range m.Layers {
		if err := take(fmt.Sprintf("blk.%d.", i), layer); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		if !known[name] {
			return fmt.Errorf("tensor %q: architecture %q with %d layers has none of this name", name, m.Architecture, m.Layers)
		}
	}
	return nil
}

// Far above what models have: a bound for what is allocated by these numbers.
const (
	maxHead = 1 << 16
	longest = 1 << 24
)

func (p Params) check() error {
	if err := supported(p.Architecture); err != nil {
		return err
	}
	switch {
	case p.Layers < 1 || p.Hidden < 1 || p.FFN < 1 || p.Vocab < 1 || p.Heads < 1 || p.KVHeads < 1:
		return fmt.Errorf("layers %d, hidden %d, FFN %d, vocabulary %d, heads %d and %d: want all above 0",
			p.Layers, p.Hidden, p.FFN, p.Vocab, p.Heads, p.KVHeads)
	case p.Heads%p.KVHeads != 0:
		return fmt.Errorf("%d heads and %d for keys and values: want a multiple", p.Heads, p.KVHeads)
	case p.HeadDim < 2 || p.HeadDim%2 != 0 || p.HeadDim > maxHead:
		return fmt.Errorf("heads of %d: want an even number from 2 to %d", p.HeadDim, maxHead)
	case p.Context < 1 || p.Context > longest:
		return fmt.Errorf("context of %d tokens: want 1 to %d", p.Context, longest)
	case !(p.RopeBase > 0) || !(p.Eps >= 0):
		return fmt.Errorf("rope base %v, eps %v: want numbers above 0", p.RopeBase, p.Eps)
	}
	if p.RopeFactors != nil && len(p.RopeFactors) != p.HeadDim/2 {
		return fmt.Errorf("%d rope factors for heads of %d", len(p.RopeFactors), p.HeadDim)
	}
	for i, f := range p.RopeFactors {
		if !(f > 0) {
			return fmt.Errorf("rope factor %d is %v: want a number above 0", i, f)
		}
	}
	return nil
}
