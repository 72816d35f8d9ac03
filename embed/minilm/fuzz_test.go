package minilm

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/tiny/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzSafetensors: a file is refused, or each of its tensors lies within it.
func FuzzSafetensors(f *testing.F) {
	f.Add(file(f, weightsFile))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Add([]byte("\x3d\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}     ` + "\x00\x00\x80\x3f\x00\x00\x00\x40"))
	f.Add([]byte("\x48\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := readTensors(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		total := int64(0)
		for name, x := range file.at {
			size := x.Offsets[1] - x.Offsets[0]
			if file.data+x.Offsets[1] > int64(len(data)) || size < 0 {
				t.Fatalf("%q is at %d of %d bytes", name, x.Offsets, int64(len(data))-file.data)
			}
			total += size
			shape, elements := make([]int, len(x.Shape)), int64(1)
			for i, n := range x.Shape {
				shape[i] = int(n)
				elements *= n
			}
			if numbers, err := file.floats(name, 0, shape...); err == nil && int64(len(numbers)) != elements {
				t.Fatalf("%q: %d numbers of %d", name, len(numbers), elements)
			}
		}
		if total != int64(len(data))-file.data {
			t.Fatalf("%d bytes of %d are in tensors", total, int64(len(data))-file.data)
		}
	})
}

// FuzzTokenizerFile: a file is refused, or its tokenizer gives numbers of the vocabulary only.
func FuzzTokenizerFile(f *testing.F) {
	f.Add(file(f, tokenizerFileName), "the quick [SEP] café 日本")
	f.Add([]byte(`{"model":{"type":"WordPiece","vocab":{"[CLS]":0}}}`), "a")
	f.Add([]byte(`[]`), "")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		const vocabulary, limit = 200, 20
		k, err := parseTokenizer(data, vocabulary)
		if err != nil {
			return
		}
		checkTokens(t, k.encode(text, limit), vocabulary, limit, k)
	})
}

// FuzzTokens: any text has tokens, no more than the limit, and the same as without what is dropped.
func FuzzTokens(f *testing.F) {
	k, err := parseTokenizer(file(f, tokenizerFileName), 200)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "Ana's violin", "[SEP][CLS]", "\x00\xff", "naïve 日本語", strings.Repeat("ab ", 300), "\u0301"} {
		f.Add(text, 10)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 3 + max(limit, -limit)%300
		ids := k.encode(text, limit)
		checkTokens(t, ids, 200, limit, k)
		if short := k.encode(text, 3); len(ids) > 2 && len(short) == 3 && short[1] != ids[1] {
			t.Fatalf("%q: %d cut off, %d whole", text, short, ids)
		}
		if valid := strings.ToValidUTF8(text, ""); !strings.Contains(valid, "[") && utf8.ValidString(valid) {
			if again := k.encode(valid, limit); string32(again) != string32(ids) {
				t.Fatalf("%q: %d, without what is no text %d", text, ids, again)
			}
		}
	})
}

func checkTokens(t *testing.T, ids []int32, vocabulary int32, limit int, k *tokenizer) {
	t.Helper()
	if len(ids) < 2 || len(ids) > limit || ids[0] != k.cls || ids[len(ids)-1] != k.sep {
		t.Fatalf("tokens %d, limit %d", ids, limit)
	}
	for _, id := range ids {
		if id < 0 || id >= vocabulary {
			t.Fatalf("token %d of %d", id, vocabulary)
		}
	}
}

// string32 makes numbers comparable.
func string32(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteRune(id)
	}
	return b.String()
}
