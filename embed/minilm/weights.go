package minilm

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
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
	query, key, value linear // of all heads
	attended          linear
	afterAttention    layerNorm
	up, down          linear
	afterIntermediate layerNorm
}

// weights are all numbers of the model. They are never written after they were read.
type weights struct {
	file             *mmap.File // holds all but positions: a garbage collector that waits for the heap to double does not count it
	words, positions []float32  // [vocabulary][hidden] and [positions][hidden], the type's embedding added
	embedded         layerNorm
	blocks           []block
}

// loader finds tensors until the first fault.
type loader struct {
	file   *tensors
	memory []byte // the whole file
	err    error
}

func (l *loader) floats(name string, keep int, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	var out []float32
	out, l.err = l.file.floats(name, keep, shape...)
	return out
}

func (l *loader) view(name string, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	var out []float32
	out, l.err = l.file.view(name, l.memory, shape...)
	return out
}

func (l *loader) linear(name string, out, in int) linear {
	return linear{w: l.view(name+".weight", out, in), b: l.view(name+".bias", out), out: out, in: in}
}

func (l *loader) norm(name string, n int) layerNorm {
	return layerNorm{scale: l.view(name+".weight", n), shift: l.view(name+".bias", n)}
}

// loadWeights maps a file as the configuration describes it. Positions beyond limit are left out.
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
	l := &loader{file: file, memory: mapped.Bytes()}
	w := &weights{
		file:      mapped,
		words:     l.view("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
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
	return block{
		query:             l.linear(prefix+"attention.self.query", c.Hidden, c.Hidden),
		key:               l.linear(prefix+"attention.self.key", c.Hidden, c.Hidden),
		value:             l.linear(prefix+"attention.self.value", c.Hidden, c.Hidden),
		attended:          l.linear(prefix+"attention.output.dense", c.Hidden, c.Hidden),
		afterAttention:    l.norm(prefix+"attention.output.LayerNorm", c.Hidden),
		up:                l.linear(prefix+"intermediate.dense", c.Intermediate, c.Hidden),
		down:              l.linear(prefix+"output.dense", c.Hidden, c.Intermediate),
		afterIntermediate: l.norm(prefix+"output.LayerNorm", c.Hidden),
	}
}
