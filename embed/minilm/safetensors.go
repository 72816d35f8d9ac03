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
)

// A file of the safetensors format is the length of a header in 8 bytes, the header in JSON, and the tensors' bytes. Every tensor must
// lie inside the file, as large as its shape says, with no byte that belongs to two tensors or to none.

// maxHeader is the longest header that is read, in bytes; the reference's bound too.
const maxHeader = 100_000_000

// tensor is one tensor of a file.
type tensor struct {
	name string
	// dtype is the type as the file spells it: F32, F16, BF16, I64 ….
	dtype string
	// shape has the size that lies together last; a single number has none.
	shape []int
	// data are its bytes, in the file, where they begin at offset.
	data   []byte
	offset int
}

// parseTensors reads a whole file; the tensors come in the order of their bytes. The result points into data, which must stay
// as it is. Errors name the tensor.
func parseTensors(data []byte) ([]tensor, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("%d bytes", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, fmt.Errorf("a header of %d bytes in a file of %d", n, len(data))
	}
	header, body := data[8:8+n], data[8+n:]
	list, err := entries(header)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]))
	})
	tensors := make([]tensor, 0, len(list))
	var at uint64
	for _, e := range list {
		if err := e.check(at, uint64(len(body))); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", e.name, err)
		}
		at = e.Offsets[1]
		tensors = append(tensors, tensor{
			name: e.name, dtype: e.DType, shape: e.Shape,
			data: body[e.Offsets[0]:at:at], offset: 8 + int(n) + int(e.Offsets[0]),
		})
	}
	if at != uint64(len(body)) {
		return nil, fmt.Errorf("%d bytes of tensors, and the header says %d", len(body), at)
	}
	return tensors, nil
}

// entry is what the header says of a tensor.
type entry struct {
	name    string
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// entries reads the header: an object whose keys are names. A name that comes twice is an error, which a map would hide.
func entries(header []byte) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("want an object")
	}
	var list []entry
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("%q twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var metadata map[string]string
			if err := d.Decode(&metadata); err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			continue
		}
		e := entry{name: name}
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		list = append(list, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return list, nil
}

// check returns an error unless the tensor begins at the given place, ends inside, and is as long as its shape says.
func (e entry) check(at, size uint64) error {
	begin, end := e.Offsets[0], e.Offsets[1]
	switch {
	case begin > end || end > size:
		return fmt.Errorf("bytes %d to %d of %d", begin, end, size)
	case begin < at:
		return fmt.Errorf("bytes %d to %d: those up to %d are another tensor's", begin, end, at)
	case begin > at:
		return fmt.Errorf("bytes %d to %d: those from %d on belong to no tensor", begin, end, at)
	}
	want, err := e.size()
	if err == nil && want != end-begin {
		err = fmt.Errorf("shape %v of %s: %d bytes, want %d", e.Shape, e.DType, end-begin, want)
	}
	return err
}

// widths are the bytes of a number of each type.
var widths = map[string]uint64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
	"BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}

// size returns how many bytes the tensor's shape takes.
func (e entry) size() (uint64, error) {
	n, ok := widths[e.DType]
	if !ok {
		return 0, fmt.Errorf("dtype %q is not known", e.DType)
	}
	for _, d := range e.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/uint64(d) {
			return 0, fmt.Errorf("shape %v", e.Shape)
		}
		n *= uint64(d)
	}
	return n, nil
}
