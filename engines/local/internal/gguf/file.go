package gguf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxAlignment     = 1 << 16
	maxDims          = 4
	maxName          = 1 << 12 // of a key or a tensor; files in use stay far below
)

// ErrFormat is wrapped by errors of files that are no GGUF at all.
var ErrFormat = errors.New("not a GGUF file")

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type quant.Type
	// Dims are its 1 to 4 sizes, the one that lies together first.
	Dims []int
	// Data are its bytes, in the file.
	Data []byte
}

// File is a parsed file.
type File struct {
	// Version of the format: 2 or 3.
	Version int
	// Metadata by key.
	Metadata map[string]Value
	// Tensors in the file's order.
	Tensors []Tensor
}

// Parse reads a whole file. The result points into data, which must stay as it is. Errors name the key or tensor.
func Parse(data []byte) (*File, error) {
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

func parse(data []byte) (*File, error) {
	c := &cursor{data: data}
	version, err := c.header()
	if err != nil {
		return nil, err
	}
	tensors, err := c.count("number of tensors", leastTensor)
	if err != nil {
		return nil, err
	}
	keys, err := c.count("number of keys", leastKey)
	if err != nil {
		return nil, err
	}
	f := &File{Version: version}
	if f.Metadata, err = c.metadata(keys); err != nil {
		return nil, err
	}
	infos, err := c.infos(tensors)
	if err != nil {
		return nil, err
	}
	if f.Tensors, err = c.place(infos, f.Metadata); err != nil {
		return nil, err
	}
	return f, nil
}

// header reads magic and version.
func (c *cursor) header() (int, error) {
	b, err := c.take(8, "header")
	if err != nil || string(b[:4]) != magic {
		return 0, fmt.Errorf("%w: it does not begin with %q", ErrFormat, magic)
	}
	version := binary.LittleEndian.Uint32(b[4:])
	switch {
	case version == 2 || version == 3:
		return int(version), nil
	case version&0xffff == 0:
		return 0, fmt.Errorf("version %#08x: big-endian files are not read", version)
	}
	return 0, fmt.Errorf("version %d: only 2 and 3 are read", version)
}

// leastKey is what a key takes at least: lengths of its name, kind, one byte.
const leastKey = 8 + 4 + 1

func (c *cursor) metadata(n int) (map[string]Value, error) {
	m := make(map[string]Value, min(n, 256))
	for i := range n {
		key, err := c.name(fmt.Sprintf("key %d", i))
		if err != nil {
			return nil, err
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("key %q: twice", key)
		}
		what := fmt.Sprintf("key %q", key)
		kind, err := c.uint32(what)
		if err != nil {
			return nil, err
		}
		if m[key], err = c.value(Kind(kind), what, 0); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// name reads the name of a key or a tensor.
func (c *cursor) name(what string) (string, error) {
	b, err := c.text(what)
	if err != nil {
		return "", err
	}
	if len(b) > maxName {
		return "", fmt.Errorf("%s: a name of %d bytes, more than %d", what, len(b), maxName)
	}
	return string(b), nil
}

// info is what a file says of a tensor.
type info struct {
	name   string
	typ    quant.Type
	dims   []int
	offset uint64
	size   int
}

// leastTensor is what a tensor's description takes at least: length of its name, number of sizes, one size, type, offset.
const leastTensor = 8 + 4 + 8 + 4 + 8

func (c *cursor) infos(n int) ([]info, error) {
	list := make([]info, 0, min(n, 1024)) // the number may be wrong; files in use have hundreds
	seen := make(map[string]bool, cap(list))
	for i := range n {
		name, err := c.name(fmt.Sprintf("tensor %d", i))
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %q: twice", name)
		}
		seen[name] = true
		t, err := c.info(name)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func (c *cursor) info(name string) (info, error) {
	t := info{name: name}
	var err error
	if t.dims, err = c.dims(); err != nil {
		return t, err
	}
	typ, err := c.uint32("type")
	if err != nil {
		return t, err
	}
	var ok bool
	if t.typ, ok = typeOf(typ); !ok {
		return t, fmt.Errorf("type %d (%s) is not read; known are %v", typ, nameOf(typ), quant.Types())
	}
	if t.offset, err = c.uint64("offset"); err != nil {
		return t, err
	}
	t.size, err = bytes(t.typ, t.dims)
	return t, err
}

func (c *cursor) dims() ([]int, error) {
	n, err := c.uint32("number of sizes")
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxDims {
		return nil, fmt.Errorf("%d sizes, want 1 to %d", n, maxDims)
	}
	dims := make([]int, n)
	for i := range dims {
		d, err := c.uint64("size")
		if err != nil {
			return nil, err
		}
		// A byte holds fewer than three weights (Q3_K: 256 in 110 bytes), so no size is three times the file's.
		if d < 1 || d > 3*uint64(len(c.data)) {
			return nil, fmt.Errorf("size %d of a file of %d bytes", d, len(c.data))
		}
		dims[i] = int(d)
	}
	return dims, nil
}

// bytes returns what a tensor takes.
func bytes(t quant.Type, dims []int) (int, error) {
	size, err := t.Bytes(dims[0])
	if err != nil {
		return 0, err
	}
	for _, d := range dims[1:] {
		if size > 0 && d > math.MaxInt/size {
			return 0, fmt.Errorf("sizes %v are too large", dims)
		}
		size *= d
	}
	return size, nil
}

// place finds the tensors' data behind the descriptions.
func (c *cursor) place(infos []info, metadata map[string]Value) ([]Tensor, error) {
	alignment, err := alignmentOf(metadata)
	if err != nil {
		return nil, err
	}
	begin := c.at + (alignment-c.at%alignment)%alignment
	data := c.data[min(begin, len(c.data)):]
	tensors := make([]Tensor, len(infos))
	for i, t := range infos {
		if t.offset%uint64(alignment) != 0 {
			return nil, fmt.Errorf("tensor %q: offset %d is not a multiple of the alignment %d", t.name, t.offset, alignment)
		}
		if t.offset > uint64(len(data)) || uint64(t.size) > uint64(len(data))-t.offset {
			return nil, fmt.Errorf("tensor %q: %d bytes at %d of %d: %w", t.name, t.size, t.offset, len(data), ErrTruncated)
		}
		end := int(t.offset) + t.size
		tensors[i] = Tensor{Name: t.name, Type: t.typ, Dims: t.dims, Data: data[t.offset:end:end]}
	}
	return tensors, overlap(infos)
}

func alignmentOf(metadata map[string]Value) (int, error) {
	v, ok := metadata["general.alignment"]
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := v.Int()
	if !ok || n < 8 || n > maxAlignment || n&(n-1) != 0 {
		return 0, fmt.Errorf("key %q: %d (%v), want a power of two from 8 to %d", "general.alignment", n, v.Kind, maxAlignment)
	}
	return int(n), nil
}

// overlap is an error if two tensors share bytes.
func overlap(infos []info) error {
	sorted := slices.Clone(infos)
	slices.SortFunc(sorted, func(a, b info) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(sorted); i++ {
		a, b := sorted[i-1], sorted[i]
		if a.offset+uint64(a.size) > b.offset {
			return fmt.Errorf("tensor %q: it lies over tensor %q at offset %d", b.name, a.name, b.offset)
		}
	}
	return nil
}

// ggml numbers the formats of tensors.
var (
	typeNumbers = map[uint32]quant.Type{
		0: quant.F32, 1: quant.F16, 2: quant.Q4_0, 3: quant.Q4_1, 6: quant.Q5_0, 7: quant.Q5_1, 8: quant.Q8_0, 11: quant.Q3_K,
		12: quant.Q4_K, 13: quant.Q5_K, 14: quant.Q6_K, 20: quant.IQ4_NL, 30: quant.BF16,
	}
	// Those that are not read, for messages.
	otherNumbers = map[uint32]string{
		9: "Q8_1", 10: "Q2_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
		23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
		40: "NVFP4", 41: "Q1_0",
	}
)

func typeOf(number uint32) (quant.Type, bool) {
	t, ok := typeNumbers[number]
	return t, ok
}

func nameOf(number uint32) string {
	if name, ok := otherNumbers[number]; ok {
		return name
	}
	return "unknown"
}

func numberOf(t quant.Type) (uint32, bool) {
	for n, known := range typeNumbers {
		if known == t {
			return n, true
		}
	}
	return 0, false
}
