package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Pair is one line of metadata to be written. Value is a string, bool, uint32, int32, float32, uint64, []string,
// []int32 or []float32.
type Pair struct {
	Key   string
	Value any
}

// Write writes a file of version 3 with an alignment of 32.
func Write(w io.Writer, metadata []Pair, tensors []Tensor) error {
	out := &writer{w: bufio.NewWriter(w)}
	out.bytes([]byte(magic))
	out.uint32(3)
	out.uint64(uint64(len(tensors)))
	out.uint64(uint64(len(metadata)))
	for _, p := range metadata {
		out.text(p.Key)
		if err := out.value(p.Value); err != nil {
			return fmt.Errorf("gguf: key %q: %w", p.Key, err)
		}
	}
	offset := 0
	for _, t := range tensors {
		number, ok := numberOf(t.Type)
		if size, err := bytes(t.Type, t.Dims); !ok || err != nil || size != len(t.Data) {
			return fmt.Errorf("gguf: tensor %q: %d bytes for sizes %v in %v", t.Name, len(t.Data), t.Dims, t.Type)
		}
		out.text(t.Name)
		out.uint32(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			out.uint64(uint64(d))
		}
		out.uint32(number)
		out.uint64(uint64(offset))
		offset += len(t.Data) + padding(len(t.Data))
	}
	for _, t := range tensors {
		out.bytes(make([]byte, padding(out.n)))
		out.bytes(t.Data)
	}
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("gguf: write: %w", err)
	}
	return nil
}

// padding is what is missing to the next aligned place.
func padding(n int) int { return (defaultAlignment - n%defaultAlignment) % defaultAlignment }

// writer counts; the buffer keeps the first error.
type writer struct {
	w *bufio.Writer
	n int
}

func (w *writer) bytes(b []byte) {
	n, _ := w.w.Write(b)
	w.n += n
}
func (w *writer) uint32(n uint32) { w.bytes(binary.LittleEndian.AppendUint32(nil, n)) }
func (w *writer) uint64(n uint64) { w.bytes(binary.LittleEndian.AppendUint64(nil, n)) }

func (w *writer) text(s string) {
	w.uint64(uint64(len(s)))
	w.bytes([]byte(s))
}

func (w *writer) value(value any) error {
	switch v := value.(type) {
	case string:
		w.uint32(uint32(String))
		w.text(v)
	case bool:
		w.uint32(uint32(Bool))
		w.bytes([]byte{map[bool]byte{true: 1}[v]})
	case uint32:
		w.uint32(uint32(Uint32))
		w.uint32(v)
	case int32:
		w.uint32(uint32(Int32))
		w.uint32(uint32(v))
	case float32:
		w.uint32(uint32(Float32))
		w.uint32(math.Float32bits(v))
	case uint64:
		w.uint32(uint32(Uint64))
		w.uint64(v)
	case []string:
		w.array(String, len(v))
		for _, s := range v {
			w.text(s)
		}
	case []int32:
		w.array(Int32, len(v))
		for _, n := range v {
			w.uint32(uint32(n))
		}
	case []float32:
		w.array(Float32, len(v))
		for _, f := range v {
			w.uint32(math.Float32bits(f))
		}
	default:
		return fmt.Errorf("a %T cannot be written", value)
	}
	return nil
}

func (w *writer) array(elem Kind, n int) {
	w.uint32(uint32(Array))
	w.uint32(uint32(elem))
	w.uint64(uint64(n))
}
