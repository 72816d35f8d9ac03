package minilm

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

func safetensors(header string, body int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, body)...)
}

func TestTensors(t *testing.T) {
	want := []tensor{
		{name: "a", dtype: "F32", shape: []int{2, 3}, data: bytes.Repeat([]byte{1}, 24)},
		{name: "b", dtype: "BF16", shape: []int{5}, data: bytes.Repeat([]byte{2}, 10)},
		{name: "c", dtype: "I64", shape: []int{}, data: bytes.Repeat([]byte{3}, 8)},
		{name: "d", dtype: "F16", shape: []int{0, 4}, data: nil},
	}
	data := safetensors(
		`{"__metadata__":{"format":"pt"},"d":{"dtype":"F16","shape":[0,4],"data_offsets":[42,42]},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},`+
			`"b":{"dtype":"BF16","shape":[5],"data_offsets":[24,34]},"c":{"dtype":"I64","shape":[],"data_offsets":[34,42]}}`,
		0,
	)
	for _, tensor := range want {
		data = append(data, tensor.data...)
	}
	got, err := parseTensors(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.name != w.name || g.dtype != w.dtype || !slices.Equal(g.shape, w.shape) || !bytes.Equal(g.data, w.data) ||
			!bytes.HasPrefix(data[g.offset:], w.data) {
			t.Errorf("tensor %d is %+v, want %+v", i, g, w)
		}
	}
}

// What is wrong with files, and what the error says.
var broken = map[string]struct {
	file []byte
	want string
}{
	"empty":           {nil, "0 bytes"},
	"header too long": {safetensors(`{}`, 0)[:9], "a header of 2 bytes in a file of 9"},
	"huge header":     {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "18446744073709551615"},
	"no object":       {safetensors(`[]`, 0), "want an object"},
	"twice": {
		safetensors(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0),
		`"a" twice`,
	},
	"outside":   {safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4), "bytes 0 to 8 of 4"},
	"backwards": {safetensors(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4), "bytes 4 to 0 of 4"},
	"overlap": {
		safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12),
		`"b": bytes 4 to 12: those up to 8 are another tensor's`,
	},
	"hole":        {safetensors(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "those from 0 on belong to no tensor"},
	"rest":        {safetensors(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), "8 bytes of tensors, and the header says 4"},
	"wrong shape": {safetensors(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}}`, 4), "shape [1] of F16: 4 bytes, want 2"},
	"huge shape": {
		safetensors(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4]}}`, 4),
		"shape [4294967296 4294967296 4]",
	},
	"negative":     {safetensors(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), "shape [-1]"},
	"unknown type": {safetensors(`{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}`, 4), `dtype "F4"`},
	"two objects":  {safetensors(`{}{}`, 0), "something follows"},
	"cut":          {safetensors(`{"a":{"dtype":"F32"`, 0), "unexpected"},
}

func TestBrokenTensors(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			_, err := parseTensors(c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// Whatever is read lies in the file and is as long as its shape says; nothing panics.
func FuzzTensors(f *testing.F) {
	for _, c := range broken {
		f.Add(c.file)
	}
	f.Add(safetensors(`{"__metadata__":{"x":"y"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseTensors(data)
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range list {
			total += len(tensor.data)
			if !bytes.Equal(data[tensor.offset:tensor.offset+len(tensor.data)], tensor.data) {
				t.Fatalf("%q is not at %d", tensor.name, tensor.offset)
			}
		}
		if total > len(data)-8 {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
	})
}
