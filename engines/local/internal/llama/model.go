package llama

import (
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Model is a model that can compute. It is only read, and safe for concurrent use; each [Worker] is for one call at a time.
type Model struct {
	weights.Params
	layers    []layer
	embedding compute.Matrix
	output    compute.Matrix
	norm      []float32
	rope      *compute.Rope
	heads     compute.Heads
}

// layer is one transformer block. Biases and head norms are nil where the architecture has none.
type layer struct {
	query, key, value, attended    compute.Matrix
	gate, up, down                 compute.Matrix
	queryBias, keyBias, valBias    []float32
	queryNorm, keyNorm             []float32
	attentionNorm, feedForwardNorm []float32
}

// New makes a model of the weights in a file, which must stay open. The error names the tensor that cannot be used.
func New(file *weights.Model) (*Model, error) {
	if file.HeadDim%8 != 0 || file.Heads%file.KVHeads != 0 {
		return nil, fmt.Errorf("%d heads of %d dimensions over %d of keys: want a multiple of 8 dimensions, and of heads",
			file.Heads, file.HeadDim, file.KVHeads)
	}
	m := &Model{
		Params: file.Params,
		rope:   compute.NewRope(file.HeadDim, file.RopeBase, file.RopeFactors, file.RopeInterleaved),
		heads:  compute.Heads{Query: file.Heads, KV: file.KVHeads, Dim: file.HeadDim},
		layers: make([]layer, file.Layers),
	}
	r := reader{file: file}
	m.embedding, m.norm = r.matrix("token_embd.weight"), r.vector("output_norm.weight")
	m.output = m.embedding
	if !file.TiedOutput {
		m.output = r.matrix("output.weight")
	}
	for i := range m.layers {
		r.prefix = fmt.Sprintf("blk.%d.", i)
		m.layers[i] = layer{
			query: r.matrix("attn_q.weight"), key: r.matrix("attn_k.weight"), value: r.matrix("attn_v.weight"),
			attended: r.matrix("attn_output.weight"),
			gate:     r.matrix("ffn_gate.weight"), up: r.matrix("ffn_up.weight"), down: r.matrix("ffn_down.weight"),
			queryBias: r.optional("attn_q.bias"), keyBias: r.optional("attn_k.bias"), valBias: r.optional("attn_v.bias"),
			queryNorm: r.optional("attn_q_norm.weight"), keyNorm: r.optional("attn_k_norm.weight"),
			attentionNorm: r.vector("attn_norm.weight"), feedForwardNorm: r.vector("ffn_norm.weight"),
		}
	}
	return m, r.err
}

var errMissing = errors.New("missing")

// reader takes tensors out of a file. After the first error it returns nothing.
type reader struct {
	file   *weights.Model
	prefix string
	err    error
}

func (r *reader) matrix(name string) compute.Matrix {
	t, ok := r.file.Tensors[r.prefix+name]
	if !ok {
		r.fail(name, errMissing)
		return compute.Matrix{}
	}
	m, err := compute.NewMatrix(t.Type, t.Rows, t.Cols, t.Data)
	if err != nil {
		r.fail(name, err)
	}
	return m
}

func (r *reader) optional(name string) []float32 {
	t, ok := r.file.Tensors[r.prefix+name]
	if !ok {
		return nil
	}
	size, err := t.Type.Bytes(t.Cols)
	if err != nil || len(t.Data) < size || t.Rows != 1 {
		r.fail(name, fmt.Errorf("%d × %d in %v: not a vector", t.Rows, t.Cols, t.Type))
		return nil
	}
	v := make([]float32, t.Cols)
	quant.Dequantize(t.Type, v, t.Data[:size])
	return v
}

func (r *reader) vector(name string) []float32 {
	v := r.optional(name)
	if v == nil {
		r.fail(name, errMissing)
	}
	return v
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("tensor %s%s: %w", r.prefix, name, err)
	}
}

// NewProbes returns a probe of each layer for what is attended to among the first tokens.
func (m *Model) NewProbes(tokens int) []*compute.Probe {
	probes := make([]*compute.Probe, m.Layers)
	for i := range probes {
		probes[i] = compute.NewProbe(m.heads, tokens)
	}
	return probes
}

// PageTokens is how many tokens' keys and values lie in a page.
const PageTokens = compute.PageTokens

// PageFloats is the size of a page: keys and values of PageTokens tokens in all layers.
func (m *Model) PageFloats() int { return m.Layers * 2 * m.layerFloats() }

func (m *Model) layerFloats() int { return m.heads.KV * m.heads.Dim * PageTokens }

// Page is the part of a page's memory that belongs to a layer.
func (m *Model) Page(memory []float32, layer int) compute.Page {
	size := m.layerFloats()
	memory = memory[2*layer*size:]
	return compute.Page{Keys: memory[:size], Values: memory[size:][:size]}
}

// Copy copies the keys and values of n tokens from one sequence's pages to another's, which may not be the same memory. Where the tokens
// come to stand elsewhere their keys are turned to the new positions: rotations add, so that is exact but for rounding (CacheNotes §3.3,
// ProphetKV §4.1). At the same position the bits are the same.
func (m *Model) Copy(to [][]float32, at int, from [][]float32, fromAt, n int) {
	var angles []float32
	if at != fromAt {
		angles = m.rope.Angles(nil, at-fromAt)
	}
	for i := range n {
		t, f := to[(at+i)/PageTokens], from[(fromAt+i)/PageTokens]
		for layer := range m.layers {
			for head := range m.heads.KV {
				m.Page(t, layer).CopyHead(m.heads, head, (at+i)%PageTokens, m.Page(f, layer), (fromAt+i)%PageTokens, m.rope, angles)
			}
		}
	}
}

// Shape returns the heads of a layer.
func (m *Model) Shape() compute.Heads { return m.heads }

// Angles are those by which keys turn that move by a number of positions.
func (m *Model) Angles(by int) []float32 { return m.rope.Angles(nil, by) }

// Turn turns the key of a slot of a page, of one head in one layer, by angles.
func (m *Model) Turn(layer, head int, memory []float32, slot int, angles []float32) {
	p := m.Page(memory, layer)
	p.CopyHead(m.heads, head, slot, p, slot, m.rope, angles)
}
