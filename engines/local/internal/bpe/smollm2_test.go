package bpe_test

import (
	"os"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/bpe"
	"github.com/ragpilot/ragpilot/engines/local/internal/gguf"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
)

func smollm2(t testing.TB) *bpe.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(modeltest.SmolLM2(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.FromGGUF(f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSmolLM2(t *testing.T) {
	tok := smollm2(t)
	if tok.Vocab() != 49152 || tok.Splitter() != bpe.SmolLM || len(tok.Missing()) != 21 {
		t.Errorf("%d tokens, splitter %v, bytes without a token % x", tok.Vocab(), tok.Splitter(), tok.Missing())
	}
	var list []golden
	read(t, "smollm2.golden.json", &list)
	for _, g := range list {
		g.check(t, tok)
	}
}

func BenchmarkSmolLM2(b *testing.B) {
	tok := smollm2(b)
	text := "The engine keeps the keys and values of the prefix it has read, and the pilot keeps the order of the blocks. "
	for len(text) < 1<<14 {
		text += text
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tok.Count(text)
	}
}
