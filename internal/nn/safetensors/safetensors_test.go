package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/nn/safetensors"
)

func file(header string, body int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, body)...)
}

func TestParse(t *testing.T) {
	want := []safetensors.Tensor{
		{Name: "a", DType: "F32", Shape: []int{2, 3}, Data: bytes.Repeat([]byte{1}, 24)},
		{Name: "b", DType: "BF16", Shape: []int{5}, Data: bytes.Repeat([]byte{2}, 10)},
		{Name: "c", DType: "I64", Shape: []int{}, Data: bytes.Repeat([]byte{3}, 8)},
		{Name: "d", DType: "F16", Shape: []int{0, 4}, Data: nil},
	}
	data := file(
		`{"__metadata__":{"format":"pt"},"d":{"dtype":"F16","shape":[0,4],"data_offsets":[42,42]},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},`+
			`"b":{"dtype":"BF16","shape":[5],"data_offsets":[24,34]},"c":{"dtype":"I64","shape":[],"data_offsets":[34,42]}}`,
		0,
	)
	for _, tensor := range want {
		data = append(data, tensor.Data...)
	}
	got, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !bytes.Equal(g.Data, w.Data) ||
			!bytes.HasPrefix(data[g.Offset:], w.Data) {
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
	"header too long": {file(`{}`, 0)[:9], "a header of 2 bytes in a file of 9"},
	"huge header":     {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "18446744073709551615"},
	"no object":       {file(`[]`, 0), "want an object"},
	"twice": {
		file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0),
		`"a" twice`,
	},
	"outside":   {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4), "bytes 0 to 8 of 4"},
	"backwards": {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4), "bytes 4 to 0 of 4"},
	"overlap": {
		file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12),
		`"b": bytes 4 to 12: those up to 8 are another tensor's`,
	},
	"hole":        {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "those from 0 on belong to no tensor"},
	"rest":        {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), "8 bytes of tensors, and the header says 4"},
	"wrong shape": {file(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}}`, 4), "shape [1] of F16: 4 bytes, want 2"},
	"huge shape": {
		file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4]}}`, 4),
		"shape [4294967296 4294967296 4]",
	},
	"negative":     {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), "shape [-1]"},
	"unknown type": {file(`{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}`, 4), `dtype "F4"`},
	"two objects":  {file(`{}{}`, 0), "something follows"},
	"cut":          {file(`{"a":{"dtype":"F32"`, 0), "unexpected"},
}

func TestBrokenFiles(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			_, err := safetensors.Parse(c.file)
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// Whatever is read lies in the file and is as long as its shape says; nothing panics.
func FuzzParse(f *testing.F) {
	for _, c := range broken {
		f.Add(c.file)
	}
	f.Add(file(`{"__metadata__":{"x":"y"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := safetensors.Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range list {
			total += len(tensor.Data)
			if !bytes.Equal(data[tensor.Offset:tensor.Offset+len(tensor.Data)], tensor.Data) {
				t.Fatalf("%q is not at %d", tensor.Name, tensor.Offset)
			}
		}
		if total > len(data)-8 {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
	})
}

// The factors of Llama 3.1 8B: the first frequencies stay, the last are divided by 8.
func TestLlama3Frequencies(t *testing.T) {
	c, err := safetensors.ParseConfig(
		[]byte(`{"hidden_size":4096,"num_attention_heads":32,"rope_theta":500000,"bos_token_id":null,"eos_token_id":[1,2],
		"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	factors, err := c.RopeFactors()
	if err != nil || len(factors) != 64 {
		t.Fatalf("%v, %v", factors, err)
	}
	for j, f := range factors {
		wave := 2 * math.Pi * math.Pow(500000, float64(j)/64)
		switch {
		case wave < 8192./4 && f != 1, wave > 8192 && f != 8, f < 1 || f > 8, j > 0 && f < factors[j-1]:
			t.Errorf("frequency %d of wavelength %.0f is divided by %v", j, wave, f)
		}
	}
	// By hand: j = 32 has the wavelength 2π·√500000 = 4442.88, so (8192/4442.88 - 1)/3 = 0.281281 of the way.
	if want := 1 / ((1-0.281281)/8 + 0.281281); math.Abs(float64(factors[32])-want) > 1e-4 {
		t.Errorf("factor 32 is %v, want %v", factors[32], want)
	}
	if c.BOS != nil || !slices.Equal(c.EOS, safetensors.IDs{1, 2}) || c.KVHeads != 32 || c.HeadDim != 128 {
		t.Errorf("the configuration is %+v", c)
	}
	for _, bad := range []string{`{"type":"llama3","factor":0}`, `{"type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":1}`, `{"type":"yarn","factor":2}`} {
		c, err := safetensors.ParseConfig([]byte(`{"head_dim":64,"rope_scaling":` + bad + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := c.RopeFactors(); err == nil {
			t.Errorf("%s gives %v", bad, f)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"head_dim":64,"rope_scaling":{"type":"linear","factor":2},"eos_token_id":[1]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := safetensors.ParseConfig(raw)
		if err != nil {
			return
		}
		if factors, err := c.RopeFactors(); err == nil && factors != nil && len(factors) != c.HeadDim/2 {
			t.Fatalf("%d factors for heads of %d", len(factors), c.HeadDim)
		}
	})
}
