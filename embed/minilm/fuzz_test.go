package minilm

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile("testdata/tiny/" + name))(t)
}

// FuzzWeights: a file is refused, or each of its tensors has as many numbers as its shape says.
func FuzzWeights(f *testing.F) {
	f.Add(file(f, weightsFile))
	f.Add(
		[]byte(
			"\x3d\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}     ` + "\x00\x00\x80\x3f\x00\x00\x00\x40",
		),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseTensors(data)
		if err != nil {
			return
		}
		for _, x := range list {
			l := loader{file: bytes.NewReader(data), tensors: map[string]tensor{x.name: x}}
			elements := 1
			for _, n := range x.shape {
				elements *= n
			}
			if numbers := l.floats(x.name, 0, x.shape...); l.err == nil && len(numbers) != elements {
				t.Fatalf("%q: %d numbers of %d", x.name, len(numbers), elements)
			}
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
