package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Write writes a file. The tensors' data follow each other in the order of the list; the header is padded so that they
// begin at a multiple of 8.
func Write(w io.Writer, tensors []Tensor) error {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var at uint64
	for _, t := range tensors {
		e := entry{name: t.Name, DType: t.DType, Shape: t.Shape, Offsets: [2]uint64{at, at + uint64(len(t.Data))}}
		if size, err := e.size(); err != nil || size != uint64(len(t.Data)) || header[t.Name] != nil {
			return fmt.Errorf("safetensors: tensor %q: %d bytes for %v of %s, or twice", t.Name, len(t.Data), t.Shape, t.DType)
		}
		header[t.Name] = e
		at = e.Offsets[1]
	}
	raw, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for len(raw)%8 != 0 {
		raw = append(raw, ' ')
	}
	pieces := [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw}
	for _, t := range tensors {
		pieces = append(pieces, t.Data)
	}
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return fmt.Errorf("safetensors: write: %w", err)
		}
	}
	return nil
}
