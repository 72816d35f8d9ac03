package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
)

// Pair is one line of metadata to be written. Value is a string, bool, uint32, int32, float32 or uint64, or a slice of one of these.
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

// kinds are those of the values that can be written, alone or in arrays.
var kinds = map[reflect.Kind]Kind{
	reflect.Bool: Bool, reflect.String: String, reflect.Uint32: Uint32, reflect.Int32: Int32, reflect.Float32: Float32, reflect.Uint64: Uint64,
}

func (w *writer) value(value any) error {
	v := reflect.ValueOf(value)
	elem := v.Kind()
	if elem == reflect.Slice {
		elem = v.Type().Elem().Kind()
	}
	kind, ok := kinds[elem]
	if !ok {
		return fmt.Errorf("a %T cannot be written", value)
	}
	if elem != v.Kind() {
		w.uint32(uint32(Array))
	}
	w.uint32(uint32(kind))
	if elem != v.Kind() {
		w.uint64(uint64(v.Len()))
	}
	switch v := value.(type) {
	case string:
		w.text(v)
	case []string:
		for _, s := range v {
			w.text(s)
		}
	default:
		data, err := binary.Append(nil, binary.LittleEndian, value)
		if err != nil {
			return err
		}
		w.bytes(data)
	}
	return nil
}
