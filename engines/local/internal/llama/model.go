package llama

import (
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

// Model is a model that can compute, on a device. It is only read, and safe for concurrent use; each [Worker] is for one call at a time.
type Model struct {
	weights.Params
	device    gpu.Device
	pool      gpu.Pool
	layers    []layer
	embedding gpu.Matrix
	output    gpu.Matrix
	norm      gpu.Buffer
	rope      *compute.Rope
	heads     compute.Heads
}

// layer is one transformer block. Biases and head norms are of no floats where the architecture has none.
type layer struct {
	query, key, value, attended    gpu.Matrix
	gate, up, down                 gpu.Matrix
	queryBias, keyBias, valBias    gpu.Buffer
	queryNorm, keyNorm             gpu.Buffer
	attentionNorm, feedForwardNorm gpu.Buffer
}

// New makes a model of the weights in a file on a device. Both must stay open: closing the device gives back what the model has there. The
// error names the tensor that cannot be used, or that has no room.
func New(file *weights.Model, device gpu.Device) (*Model, error) {
	if file.HeadDim%8 != 0 || file.Heads%file.KVHeads != 0 {
		return nil, fmt.Errorf("%d heads of %d dimensions over %d of keys: want a multiple of 8 dimensions, and of heads",
			file.Heads, file.HeadDim, file.KVHeads)
	}
	m := &Model{
		Params: file.Params,
		rope:   compute.NewRope(file.HeadDim, file.RopeBase, file.RopeFactors, file.RopeInterleaved),
		heads:  compute.Heads{Query: file.Heads, KV: file.KVHeads, Dim: file.HeadDim},
		layers: make([]layer, file.Layers),
		device: device,
	}
	m.pool = device.NewPool(m.heads, file.Layers)
	stream, err := device.NewStream(1)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	r := reader{file: file, device: device, stream: stream}
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
	return m, r.end()
}

var errMissing = errors.New("missing")

// reader brings tensors of a file to a device. After the first error it brings nothing.
type reader struct {
	file   *weights.Model
	device gpu.Device
	stream gpu.Stream
	prefix string
	err    error
}

func (r *reader) matrix(name string) gpu.Matrix {
	t, ok := r.file.Tensors[r.prefix+name]
	if !ok {
		r.fail(name, errMissing)
	}
	if r.err != nil {
		return gpu.Matrix{}
	}
	m, err := r.device.Matrix(r.prefix+name, t.Type, t.Rows, t.Cols, t.Data)
	if err != nil {
		r.fail(name, err)
	}
	return m
}

func (r *reader) optional(name string) gpu.Buffer {
	t, ok := r.file.Tensors[r.prefix+name]
	if !ok || r.err != nil {
		return gpu.Buffer{}
	}
	size, err := t.Type.Bytes(t.Cols)
	if err != nil || len(t.Data) < size || t.Rows != 1 {
		r.fail(name, fmt.Errorf("%d × %d in %v: not a vector", t.Rows, t.Cols, t.Type))
		return gpu.Buffer{}
	}
	v := make([]float32, t.Cols)
	quant.Dequantize(t.Type, v, t.Data[:size])
	b, err := r.device.Alloc(r.prefix+name, t.Cols)
	if err != nil {
		r.fail(name, err)
		return gpu.Buffer{}
	}
	r.stream.Write(b, v)
	return b
}

func (r *reader) vector(name string) gpu.Buffer {
	v := r.optional(name)
	if v.N == 0 {
		r.fail(name, errMissing)
	}
	return v
}

// end waits until all is on the device.
func (r *reader) end() error {
	if err := r.stream.Sync(); err != nil && r.err == nil {
		r.err = err
	}
	return r.err
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
func (m *Model) PageFloats() int { return m.pool.Floats() }

// Pool has the pages for this model's keys and values.
func (m *Model) Pool() gpu.Pool { return m.pool }

// Device is where the model computes.
func (m *Model) Device() gpu.Device { return m.device }

// Floats returns what a page has, which must not be changed.
func (m *Model) Floats(p gpu.Page) ([]float32, error) {
	if p.Host != nil {
		return p.Host, nil
	}
	floats := make([]float32, m.PageFloats())
	return floats, m.pool.Read(floats, p)
}

// NewPages returns pages of any contents, which [Model.FreePages] gives back.
func (m *Model) NewPages(n int) ([]gpu.Page, error) {
	pages := make([]gpu.Page, 0, n)
	for range n {
		p, err := m.pool.New()
		if err != nil {
			m.FreePages(pages)
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// FreePages gives pages back.
func (m *Model) FreePages(pages []gpu.Page) {
	for _, p := range pages {
		m.pool.Free(p)
	}
}

// Page is the part of a page's floats that belongs to a layer.
func (m *Model) Page(floats []float32, layer int) compute.Page {
	return gpu.Layer(m.heads, floats, layer)
}

// Shape returns the heads of a layer.
func (m *Model) Shape() compute.Heads { return m.heads }
