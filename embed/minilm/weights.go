package minilm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"github.com/ragpilot/ragpilot/internal/nn/mmap"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
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
	file    io.ReaderAt
	tensors map[string]tensor
	err     error
}

// bytes returns a tensor that must have that shape and hold finite 32-bit numbers. If keep is not 0, it returns only that many rows. The
// numbers are checked in the file, without touching the mapped memory.
func (l *loader) bytes(name string, keep int, shape ...int) []byte {
	if l.err != nil {
		return nil
	}
	t, ok := l.tensors[name]
	switch {
	case !ok:
		l.err = fmt.Errorf("tensor %q is missing", name)
	case t.dtype != "F32":
		l.err = fmt.Errorf("tensor %q: dtype %s, want F32", name, t.dtype)
	case !slices.Equal(t.shape, shape):
		l.err = fmt.Errorf("tensor %q: shape %d, want %d", name, t.shape, shape)
	}
	if l.err != nil {
		return nil
	}
	size := len(t.data)
	if keep > 0 {
		size = size / shape[0] * min(keep, shape[0])
	}
	if err := checkFinite(io.NewSectionReader(l.file, int64(t.offset), int64(size))); err != nil {
		l.err = fmt.Errorf("tensor %q: %w", name, err)
	}
	return t.data[:size]
}

// checkFinite reads 32-bit numbers, little endian, and refuses infinities and NaN.
func checkFinite(r *io.SectionReader) error {
	buffer := make([]byte, min(r.Size(), 1<<18))
	for done := int64(0); done < r.Size(); done += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), r.Size()-done)]
		if _, err := io.ReadFull(r, buffer); err != nil {
			return fmt.Errorf("%w: was the file changed?", err)
		}
		for i := 0; i < len(buffer); i += 4 {
			if bits := binary.LittleEndian.Uint32(buffer[i:]); bits&0x7f800000 == 0x7f800000 {
				return fmt.Errorf("number %d is %v", done/4+int64(i/4), math.Float32frombits(bits))
			}
		}
	}
	return nil
}

// floats returns a copy of a tensor's numbers.
func (l *loader) floats(name string, keep int, shape ...int) []float32 {
	raw := l.bytes(name, keep, shape...)
	out := make([]float32, len(raw)/4)
	quant.Dequantize(quant.F32, out, raw)
	return out
}

// view returns a tensor as it lies in the mapped memory. Where a processor cannot read it there, it is copied.
func (l *loader) view(name string, shape ...int) []float32 {
	raw := l.bytes(name, 0, shape...)
	first := unsafe.Pointer(unsafe.SliceData(raw))
	if bigEndian := binary.NativeEndian.Uint16([]byte{0, 1}) == 1; bigEndian || uintptr(first)%unsafe.Alignof(float32(0)) != 0 {
		return l.floats(name, 0, shape...)
	}
	return unsafe.Slice((*float32)(first), len(raw)/4)
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
	mapped, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	list, err := parseTensors(mapped.Bytes())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("not a sound safetensors file: %w", err), mapped.Close())
	}
	l := &loader{file: f, tensors: make(map[string]tensor, len(list))}
	for _, t := range list {
		l.tensors[t.name] = t
	}
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
