package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
	"github.com/ragpilot/ragpilot/internal/nn/quant/quanttest"
)

func written(t testing.TB, metadata []gguf.Pair, tensors []gguf.Tensor) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := gguf.Write(&buf, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func sample(t testing.TB) []byte {
	return written(t, []gguf.Pair{
		{Key: "text", Value: "naïve"},
		{Key: "yes", Value: true},
		{Key: "count", Value: uint32(7)},
		{Key: "below", Value: int32(-7)},
		{Key: "large", Value: uint64(math.MaxUint64)},
		{Key: "half", Value: float32(.5)},
		{Key: "texts", Value: []string{"a", "", "ccc"}},
		{Key: "ints", Value: []int32{1, -2, 3}},
		{Key: "floats", Value: []float32{1, 2}},
	}, []gguf.Tensor{
		{Name: "m", Type: quant.Q8_0, Dims: []int{64, 3}, Data: bytes.Repeat([]byte{1}, 34*2*3)},
		{Name: "v", Type: quant.F32, Dims: []int{5}, Data: bytes.Repeat([]byte{2}, 20)},
		{Name: "b", Type: quant.BF16, Dims: []int{2, 2}, Data: bytes.Repeat([]byte{3}, 8)},
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f, err := gguf.Parse(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	if f.Version != 3 || len(f.Metadata) != 9 || len(f.Tensors) != 3 {
		t.Fatalf("version %d, %d keys, %d tensors", f.Version, len(f.Metadata), len(f.Tensors))
	}
	m := f.Metadata
	if s, ok := m["text"].Text(); s != "naïve" || !ok {
		t.Errorf("text is %q, %v", s, ok)
	}
	if b, ok := m["yes"].Bool(); !b || !ok {
		t.Errorf("yes is %v, %v", b, ok)
	}
	for key, want := range map[string]int64{"count": 7, "below": -7} {
		if n, ok := m[key].Int(); n != want || !ok {
			t.Errorf("%s is %d, %v", key, n, ok)
		}
	}
	if n, ok := m["large"].Int(); ok {
		t.Errorf("%d fits an int64", n)
	}
	if x, ok := m["half"].Float(); x != .5 || !ok {
		t.Errorf("half is %v, %v", x, ok)
	}
	var texts []string
	for _, s := range m["texts"].Texts() {
		texts = append(texts, string(s))
	}
	var ints []int64
	for _, n := range m["ints"].Ints() {
		ints = append(ints, n)
	}
	if !slices.Equal(texts, []string{"a", "", "ccc"}) || !slices.Equal(ints, []int64{1, -2, 3}) {
		t.Errorf("texts %q, ints %v", texts, ints)
	}
	for _, none := range []string{"text", "count", "missing"} {
		for range m[none].Texts() {
			t.Errorf("%s is an array of strings", none)
		}
		for range m[none].Ints() {
			t.Errorf("%s is an array of integers", none)
		}
	}
	b := f.Tensors[2]
	if b.Name != "b" || b.Type != quant.BF16 || !slices.Equal(b.Dims, []int{2, 2}) || !bytes.Equal(b.Data, bytes.Repeat([]byte{3}, 8)) {
		t.Errorf("the last tensor is %+v", b)
	}
}

func TestVersion2IsRead(t *testing.T) {
	data := sample(t)
	binary.LittleEndian.PutUint32(data[4:], 2)
	if f, err := gguf.Parse(data); err != nil || f.Version != 2 {
		t.Errorf("%v", err)
	}
}

// A vector may have more than twice as many weights as the file has bytes.
func TestDenseTensors(t *testing.T) {
	const n = 32 * 256
	data := written(t, nil, []gguf.Tensor{{Name: "v", Type: quant.Q3_K, Dims: []int{n}, Data: quanttest.Random(quant.Q3_K, n, 1, 1)}})
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) >= n/2 || f.Tensors[0].Type != quant.Q3_K || f.Tensors[0].Dims[0] != n {
		t.Errorf("a file of %d bytes has %v weights in %v", len(data), f.Tensors[0].Dims, f.Tensors[0].Type)
	}
}

// Every file that is cut short is an error, and none panics.
func TestTruncatedFiles(t *testing.T) {
	data := sample(t)
	for n := range data {
		if _, err := gguf.Parse(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read", n, len(data))
		}
	}
}

// raw makes files by hand.
type raw []byte

func (r raw) u32(n uint32) raw  { return binary.LittleEndian.AppendUint32(r, n) }
func (r raw) u64(n uint64) raw  { return binary.LittleEndian.AppendUint64(r, n) }
func (r raw) text(s string) raw { return append(r.u64(uint64(len(s))), s...) }

func head(tensors, keys uint64) raw { return raw("GGUF").u32(3).u64(tensors).u64(keys) }

// tensor is a file with one tensor, t, and 64 bytes for it.
func tensor(typ uint32, offset uint64, dims ...uint64) raw {
	r := head(1, 0).text("t").u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	r = r.u32(typ).u64(offset)
	return append(r, make([]byte, 32-len(r)%32+64)...)
}

func nested(depth int) raw {
	r := head(0, 1).text("k").u32(9)
	for range depth {
		r = r.u32(9).u64(1)
	}
	return append(r.u32(4).u64(1).u32(1), make([]byte, 64)...)
}

var broken = map[string]struct {
	file raw
	want string
}{
	"empty":            {nil, `"GGUF"`},
	"other magic":      {raw("GGML\x03\x00\x00\x00"), `"GGUF"`},
	"version 1":        {raw("GGUF").u32(1), "version 1"},
	"big-endian":       {raw("GGUF\x00\x00\x00\x03"), "big-endian"},
	"many keys":        {head(0, 1<<60), "number of keys: 1152921504606846976"},
	"many tensors":     {head(math.MaxUint64, 0), "number of tensors: 18446744073709551615"},
	"long key":         {append(head(0, 1).u64(1<<62), make([]byte, 64)...), "4611686018427387904 bytes"},
	"unknown kind":     {append(head(0, 1).text("key").u32(77), 0), `key "key": unknown kind 77`},
	"long array":       {append(head(0, 1).text("key").u32(9).u32(4).u64(1<<62), 0, 0), `key "key": 4611686018427387904`},
	"array of unknown": {append(head(0, 1).text("key").u32(9).u32(99).u64(1), 0), `array of unknown kind 99`},
	"deep array":       {nested(5), "nested deeper than 4"},
	"key twice":        {head(0, 2).text("k").u32(0).u64(0)[:len(head(0, 2).text("k"))+5].text("k").u32(4).u32(1), `key "k": twice`},
	"bad bool":         {append(head(0, 1).text("k").u32(7), 9), `key "k": 9 is not a bool`},
	"bad alignment":    {head(0, 1).text("general.alignment").u32(4).u32(48), `key "general.alignment": 48`},
	"no sizes":         {tensor(0, 0), `tensor "t": 0 sizes`},
	"many sizes":       {tensor(0, 0, 1, 1, 1, 1, 1), `tensor "t": 5 sizes`},
	"zero size":        {tensor(0, 0, 0), `tensor "t": size 0`},
	"huge size":        {tensor(0, 0, 1<<63), `tensor "t": size 9223372036854775808`},
	"huge product":     {tensor(0, 0, 256, 256, 256, 256), `tensor "t": 17179869184 bytes at 0 of 64`},
	"outside":          {tensor(0, 0, 17), `tensor "t": 68 bytes at 0 of 64`},
	"far offset":       {tensor(0, math.MaxUint64-31, 4), `tensor "t": 16 bytes at 18446744073709551584`},
	"odd offset":       {tensor(0, 8, 4), `tensor "t": offset 8 is not a multiple of the alignment 32`},
	"known other type": {tensor(10, 0, 256), `tensor "t": type 10 (Q2_K)`},
	"unknown type":     {tensor(200, 0, 256), `tensor "t": type 200 (unknown)`},
	"part of a block":  {tensor(8, 0, 33), `tensor "t": quant: 33 weights in Q8_0`},
}

func TestBrokenFiles(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			_, err := gguf.Parse(c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := gguf.Parse(nil); !errors.Is(err, gguf.ErrFormat) {
		t.Errorf("%v is no ErrFormat", err)
	}
	if _, err := gguf.Parse(broken["outside"].file); !errors.Is(err, gguf.ErrTruncated) {
		t.Errorf("%v is no ErrTruncated", err)
	}
}

// A wrong number of tensors in a file that is long enough for so many costs no memory before the first of them is read.
func TestWrongNumberOfTensors(t *testing.T) {
	const bytes = 8 << 20
	file := append(head(bytes/40, 0), make([]byte, bytes)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := gguf.Parse(file)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "0 sizes") {
		t.Errorf("the error is %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated for a broken file of %d", n, len(file))
	}
}

func TestTensorsMayNotOverlap(t *testing.T) {
	vector := func(name string) gguf.Tensor {
		return gguf.Tensor{Name: name, Type: quant.F32, Dims: []int{16}, Data: make([]byte, 64)}
	}
	data := written(t, nil, []gguf.Tensor{vector("a"), vector("b")})
	at := bytes.LastIndex(data, raw{}.u32(0).u64(64)) // type and offset of b
	if at < 0 {
		t.Fatal("no such tensor")
	}
	binary.LittleEndian.PutUint64(data[at+4:], 32)
	if _, err := gguf.Parse(data); err == nil || !strings.Contains(err.Error(), `tensor "b": it lies over tensor "a"`) {
		t.Errorf("the error is %v", err)
	}
	data = written(t, nil, []gguf.Tensor{vector("a"), vector("a")})
	if _, err := gguf.Parse(data); err == nil || !strings.Contains(err.Error(), `tensor "a": twice`) {
		t.Errorf("the error is %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, f := range map[string]func() error{
		"a value": func() error { return gguf.Write(&bytes.Buffer{}, []gguf.Pair{{Key: "k", Value: 1.5}}, nil) },
		"a tensor": func() error {
			return gguf.Write(&bytes.Buffer{}, nil, []gguf.Tensor{{Name: "t", Dims: []int{2}, Data: make([]byte, 7)}})
		},
	} {
		if f() == nil {
			t.Errorf("%s of no known kind or length was written", name)
		}
	}
}

// Whatever is read lies in the file; memory stays in proportion to it; nothing panics.
func FuzzParse(f *testing.F) {
	f.Add(sample(f))
	for _, c := range broken {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := gguf.Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range file.Tensors {
			total += len(tensor.Data)
			weights := 1
			for _, d := range tensor.Dims {
				weights *= d
			}
			if size, err := tensor.Type.Bytes(weights); err != nil || size != len(tensor.Data) {
				t.Fatalf("%q: %d bytes for %v of %v: %v", tensor.Name, len(tensor.Data), tensor.Dims, tensor.Type, err)
			}
		}
		if total > len(data) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
		for key, v := range file.Metadata {
			n := 0
			for range v.Texts() {
				n++
			}
			for range v.Ints() {
				n++
			}
			if n > 0 && n != v.Len {
				t.Fatalf("%q: %d elements, want %d", key, n, v.Len)
			}
			v.Int()
			v.Float()
			v.Text()
			v.Bool()
		}
	})
}
