// Package slotfile writes what llama-server restores with POST /slots/{id}?action=restore: the file of a sequence as llama.cpp's
// llama_state_seq_save_file writes it, in version 4 of its format (release b11434).
//
// All numbers are little-endian. A file is a magic, a version, the number of tokens and the tokens; the number of the cache's streams,
// and for each its number of cells; of the one stream that has any, each cell's position and sequence; whether values lie transposed,
// the number of layers, and the dimensions of a rotation that only quantized caches have; for each layer the type of keys, the size of a
// row, and a row for each cell, head after head, with keys as they are behind their rotary embedding; and the same for values.
package slotfile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

const (
	magic   = 0x67677371 // "ggsq"
	version = 4
)

// Type is the type of keys and values in the server's cache, by ggml's number.
type Type int32

// The types.
const (
	F32 Type = 0 // -ctk f32 -ctv f32
	F16 Type = 1 // the default
)

// TypeByName returns the type of a name: f32 or f16.
func TypeByName(name string) (Type, error) {
	switch name {
	case "f32":
		return F32, nil
	case "f16":
		return F16, nil
	}
	return 0, fmt.Errorf("type %q: want f16 or f32", name)
}

func (t Type) bytes() int {
	if t == F16 {
		return 2
	}
	return 4
}

// Slot is what a file has.
type Slot struct {
	Type Type
	// Streams are the caches of the server: one for each slot, with --parallel.
	Streams int
	Layers  int
	Width   int     // numbers in a row of keys, and in one of values
	Tokens  []int32 // one for each cell, which stands at the same position
	// Row writes a cell's keys, or values, in a layer.
	Row func(row []float32, layer, cell int, values bool)
}

// Size is how long the file will be.
func (s Slot) Size() int64 {
	n := int64(len(s.Tokens))
	return 4*(3+n) + 4*int64(1+s.Streams) + 12*n + 16 + int64(s.Layers)*2*(12+n*int64(s.Width*s.Type.bytes()))
}

// Write writes a file.
func (s Slot) Write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	put := func(numbers ...uint32) {
		for _, n := range numbers {
			_, _ = w.Write(binary.LittleEndian.AppendUint32(nil, n)) // Flush returns the error
		}
	}
	n := uint32(len(s.Tokens))
	put(magic, version, n)
	for _, t := range s.Tokens {
		put(uint32(t))
	}
	put(uint32(s.Streams), n)
	for i := range n {
		put(i, 1, 0) // its position, and one sequence, whose number is not looked at
	}
	put(0, uint32(s.Layers), 0, 0)
	row, data := make([]float32, s.Width), make([]byte, 0, s.Width*s.Type.bytes())
	for _, values := range []bool{false, true} {
		for layer := range s.Layers {
			put(uint32(s.Type), uint32(s.Width*s.Type.bytes()), 0)
			for cell := range s.Tokens {
				s.Row(row, layer, cell, values)
				var err error
				if data, err = s.encode(data[:0], row); err != nil {
					return err
				}
				_, _ = w.Write(data)
			}
		}
	}
	put(make([]uint32, s.Streams-1)...) // the other streams are empty
	return w.Flush()
}

func (s Slot) encode(data []byte, row []float32) ([]byte, error) {
	for _, v := range row {
		if s.Type == F32 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			continue
		}
		h := quant.ToF16(v)
		if h&0x7c00 == 0x7c00 {
			return nil, fmt.Errorf("%v has no half-precision number: want f32", v)
		}
		data = binary.LittleEndian.AppendUint16(data, h)
	}
	return data, nil
}
