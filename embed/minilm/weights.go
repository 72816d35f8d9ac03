package minilm

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ragpilot/ragpilot/internal/mmap"
)

// linear is a layer y = x·wᵀ + b.
type linear struct {
	w, b    []float32 // [out][in] and [out]
	out, in int
}

// layerNorm is a layer normalization.
type layerNorm struct{ scale, shift []float32 }

// block is one transformer layer.
type block struct {
	qkv               linear // queries, keys and values of all heads, one behind the other
	attended          linear
	afterAttention    layerNorm
	up, down          linear
	afterIntermediate layerNorm
}

// weights are all numbers of the model. They are never written after they were read.
type weights struct {
	file             *mmap.File // holds words, of which a text needs a few rows: half of the model is not in memory
	words, positions []float32  // [vocabulary][hidden] and [positions][hidden], the type's embedding added
	embedded         layerNorm
	blocks           []block
}

// loader reads tensors until the first fault.
type loader struct {
	file *tensors
	err  error
}

func (l *loader) floats(name string, keep int, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	var out []float32
	out, l.err = l.file.floats(name, keep, shape...)
	return out
}

func (l *loader) view(name string, memory []byte, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	var out []float32
	out, l.err = l.file.view(name, memory, shape...)
	return out
}

func (l *loader) linear(name string, out, in int) linear {
	return linear{w: l.floats(name+".weight", 0, out, in), b: l.floats(name+".bias", 0, out), out: out, in: in}
}

func (l *loader) norm(name string, n int) layerNorm {
	return layerNorm{scale: l.floats(name+".weight", 0, n), shift: l.floats(name+".bias", 0, n)}
}

// loadWeights reads a file as the configuration describes it. Positions beyond limit are left out.
func loadWeights(path string, c config, limit int) (*weights, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := readTensors(f, info.Size())
	if err != nil {
		return nil, err
	}
	mapped, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	l := &loader{file: file}
	w := &weights{
		file:      mapped,
		words:     l.view("embeddings.word_embeddings.weight", mapped.Bytes(), c.Vocabulary, c.Hidden),
		positions: l.floats("embeddings.position_embeddings.weight", limit, c.Positions, c.Hidden),
		embedded:  l.norm("embeddings.LayerNorm", c.Hidden),
	}
	types := l.floats("embeddings.token_type_embeddings.weight", 1, c.Types, c.Hidden)
	for i := range c.Layers {
		w.blocks = append(w.blocks, l.block(fmt.Sprintf("encoder.layer.%d.", i), c))
	}
	if l.err != nil {
		return nil, errors.Join(l.err, mapped.Close())
	}
	runtime.AddCleanup(w, func(f *mmap.File) { _ = f.Close() }, mapped)
	for i := range w.positions {
		w.positions[i] += types[i%c.Hidden] // one text is all of type 0
	}
	return w, nil
}

func (l *loader) block(prefix string, c config) block {
	b := block{
		qkv:               linear{out: 3 * c.Hidden, in: c.Hidden},
		attended:          l.linear(prefix+"attention.output.dense", c.Hidden, c.Hidden),
		afterAttention:    l.norm(prefix+"attention.output.LayerNorm", c.Hidden),
		up:                l.linear(prefix+"intermediate.dense", c.Intermediate, c.Hidden),
		down:              l.linear(prefix+"output.dense", c.Hidden, c.Intermediate),
		afterIntermediate: l.norm(prefix+"output.LayerNorm", c.Hidden),
	}
	for _, name := range []string{"query", "key", "value"} {
		part := l.linear(prefix+"attention.self."+name, c.Hidden, c.Hidden)
		b.qkv.w = append(b.qkv.w, part.w...)
		b.qkv.b = append(b.qkv.b, part.b...)
	}
	return b
}
