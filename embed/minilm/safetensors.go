package minilm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unsafe"
)

// maxHeader bounds the header of a safetensors file, in bytes, as the reference reader does.
const maxHeader = 100 << 20

// tensor says where the numbers of a tensor stand in a safetensors file, and what they are.
type tensor struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // within the data, which follows the header
}

// tensors is an open safetensors file.
type tensors struct {
	file io.ReaderAt
	data int64 // where the data begins
	at   map[string]tensor
}

// readTensors reads the header of a file of that many bytes: its length as 64 bits, little endian, then JSON that names each
// tensor (github.com/huggingface/safetensors). The tensors must fill the rest of the file, one behind the other.
func readTensors(file io.ReaderAt, size int64) (*tensors, error) {
	var length [8]byte
	if _, err := file.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("no header: %w", noEOF(err))
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("header of %d bytes in a file of %d", n, size)
	}
	header := make([]byte, n)
	if _, err := file.ReadAt(header, 8); err != nil {
		return nil, fmt.Errorf("header: %w", noEOF(err))
	}
	at, err := parseHeader(header, size-8-int64(n))
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return &tensors{file: file, data: 8 + int64(n), at: at}, nil
}

// noEOF names the end of a file for what it is when there should be more.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseHeader reads the JSON of a header in front of that many bytes of data.
func parseHeader(header []byte, size int64) (map[string]tensor, error) {
	if !bytes.HasPrefix(header, []byte("{")) {
		return nil, errors.New("it is not a JSON object")
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, err
	}
	delete(entries, "__metadata__")
	at := make(map[string]tensor, len(entries))
	names := make([]string, 0, len(entries))
	for name, raw := range entries {
		var t tensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		at[name] = t
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(at[a].Offsets[0], at[b].Offsets[0]), cmp.Compare(at[a].Offsets[1], at[b].Offsets[1]))
	})
	end := int64(0)
	for _, name := range names {
		if begin := at[name].Offsets[0]; begin != end {
			return nil, fmt.Errorf("tensor %q begins at %d, and what is in front of it ends at %d", name, begin, end)
		}
		end = at[name].Offsets[1]
	}
	if end != size {
		return nil, fmt.Errorf("the tensors end at %d, and the data at %d", end, size)
	}
	return at, nil
}

// width is the length of an element in bytes; 0: unknown.
func width(dtype string) int64 {
	switch dtype {
	case "BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2":
		return 1
	case "U16", "I16", "F16", "BF16":
		return 2
	case "U32", "I32", "F32":
		return 4
	case "U64", "I64", "F64":
		return 8
	}
	return 0
}

// check compares shape, type and offsets with each other.
func (t tensor) check() error {
	size := width(t.Type)
	if size == 0 {
		return fmt.Errorf("dtype %q is unknown", t.Type)
	}
	begin, end := t.Offsets[0], t.Offsets[1]
	if begin < 0 || end < begin {
		return fmt.Errorf("data_offsets %d make no sense", t.Offsets)
	}
	for _, n := range t.Shape {
		if n < 0 || n > 0 && size > math.MaxInt64/n {
			return fmt.Errorf("shape %d makes no sense", t.Shape)
		}
		size *= n
	}
	if size != end-begin {
		return fmt.Errorf("shape %d of %s is %d bytes, and data_offsets %d", t.Shape, t.Type, size, end-begin)
	}
	return nil
}

// floats reads a tensor that must have that shape and hold finite 32-bit numbers. If keep is not 0, only that many rows of
// it are read.
func (f *tensors) floats(name string, keep int, shape ...int) ([]float32, error) {
	t, n, err := f.find(name, keep, shape)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	if err := f.read(t, n, out); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return out, nil
}

// view returns a tensor as it lies in memory, which holds the whole file. Where a processor cannot read it there, it is
// copied. The numbers are checked without touching that memory.
func (f *tensors) view(name string, memory []byte, shape ...int) ([]float32, error) {
	t, n, err := f.find(name, 0, shape)
	if err != nil {
		return nil, err
	}
	if err := f.read(t, n, nil); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	if end := f.data + t.Offsets[1]; end > int64(len(memory)) {
		return nil, fmt.Errorf("tensor %q: it ends at %d, and the file at %d: was it changed?", name, end, len(memory))
	}
	first := unsafe.Pointer(unsafe.SliceData(memory[f.data+t.Offsets[0]:]))
	if bigEndian() || uintptr(first)%unsafe.Alignof(float32(0)) != 0 {
		return f.floats(name, 0, shape...)
	}
	return unsafe.Slice((*float32)(first), n), nil
}

func bigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

// find looks up a tensor of that shape, and returns how many numbers its first keep rows have, or all rows if keep is 0.
func (f *tensors) find(name string, keep int, shape []int) (t tensor, n int, err error) {
	t, ok := f.at[name]
	if !ok {
		return tensor{}, 0, fmt.Errorf("tensor %q is missing", name)
	}
	if t.Type != "F32" {
		return tensor{}, 0, fmt.Errorf("tensor %q: dtype %s, want F32", name, t.Type)
	}
	want := make([]int64, len(shape))
	n = 1
	for i, s := range shape {
		want[i] = int64(s)
		if i == 0 && keep > 0 {
			s = min(s, keep)
		}
		n *= s
	}
	if !slices.Equal(t.Shape, want) {
		return tensor{}, 0, fmt.Errorf("tensor %q: shape %d, want %d", name, t.Shape, want)
	}
	return t, n, nil
}

// read checks the first n numbers of a tensor, 32 bits each, little endian, finite, and writes them to out unless it is nil.
func (f *tensors) read(t tensor, n int, out []float32) error {
	r := io.NewSectionReader(f.file, f.data+t.Offsets[0], t.Offsets[1]-t.Offsets[0])
	buffer := make([]byte, min(4*n, 1<<18))
	for done := 0; done < n; done += len(buffer) / 4 {
		buffer = buffer[:min(len(buffer), 4*(n-done))]
		if _, err := io.ReadFull(r, buffer); err != nil {
			return noEOF(err)
		}
		if i := infinite(buffer); i >= 0 {
			return fmt.Errorf("number %d is %v", done+i, math.Float32frombits(binary.LittleEndian.Uint32(buffer[4*i:])))
		}
		if out == nil {
			continue
		}
		if _, err := binary.Decode(buffer, binary.LittleEndian, out[done:done+len(buffer)/4]); err != nil {
			return err
		}
	}
	return nil
}

// infinite returns the index of the first number that is infinite or none, −1 if all are finite.
func infinite(raw []byte) int {
	for i := 0; i+4 <= len(raw); i += 4 {
		if raw[i+3]&0x7f == 0x7f && raw[i+2]&0x80 != 0 {
			return i / 4
		}
	}
	return -1
}
