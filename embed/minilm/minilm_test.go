package minilm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/embeddings"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/embed/minilm"
)

// The model fits where langchaingo wants an embedder.
var _ embeddings.Embedder = (*minilm.Model)(nil)

// What a text's vector is does not depend on the texts around it, on their number, or on who else asks.
func TestVectorsDoNotDependOnTheBatch(t *testing.T) {
	m := open(t, "testdata/tiny")
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringN(-1, 60, -1), 1, 40).Draw(t, "texts")
		together, err := m.EmbedDocuments(context.Background(), texts)
		if err != nil || len(together) != len(texts) {
			t.Fatal(len(together), err)
		}
		for i, text := range texts {
			alone, err := m.EmbedQuery(context.Background(), text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(alone, together[i]) {
				t.Fatalf("%q: %v alone, %v among %d", text, alone, together[i], len(texts))
			}
			var length float64
			for _, x := range alone {
				length += float64(x) * float64(x)
			}
			if math.Abs(length-1) > 1e-5 {
				t.Fatalf("%q: length² %v", text, length)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	m := open(t, "testdata/tiny")
	texts := make([]string, 50)
	for i := range texts {
		texts[i] = strings.Repeat("the quick fox jumps ", i)
	}
	want, err := m.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			part := texts[i*6 : i*6+7]
			got, err := m.EmbedDocuments(t.Context(), part)
			if err != nil {
				t.Error(err)
				return
			}
			for j := range part {
				if !slices.Equal(got[j], want[i*6+j]) {
					t.Errorf("text %d: another vector beside other calls", i*6+j)
				}
			}
		})
		group.Go(func() {
			got, err := m.EmbedQuery(t.Context(), texts[i])
			if err != nil || !slices.Equal(got, want[i]) {
				t.Errorf("question %d: another vector beside documents, %v", i, err)
			}
		})
	}
	group.Wait()
}

// The caller may write into the vectors.
func TestVectorsAreTheCallers(t *testing.T) {
	m := open(t, "testdata/tiny")
	first, err := m.EmbedQuery(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(first)
	clear(first)
	again, err := m.EmbedQuery(t.Context(), "ana")
	if err != nil || !slices.Equal(again, want) {
		t.Errorf("%v, %v; want %v", again, err, want)
	}
}

func TestCancelled(t *testing.T) {
	m := open(t, "testdata/tiny")
	reason := errors.New("reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := m.EmbedDocuments(ctx, []string{"a"}); !errors.Is(err, reason) {
		t.Errorf("EmbedDocuments = %v", err)
	}
	if _, err := m.EmbedQuery(ctx, "a"); !errors.Is(err, reason) {
		t.Errorf("EmbedQuery = %v", err)
	}
	if none, err := m.EmbedDocuments(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("nothing: %v, %v", none, err)
	}
}

// A call that is cancelled while it computes ends, and leaves the model usable.
func TestCancelledMidway(t *testing.T) {
	m := open(t, "testdata/tiny")
	texts := slices.Repeat([]string{strings.Repeat("the quick fox ", 20)}, 100_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := m.EmbedDocuments(ctx, texts)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if _, err := m.EmbedQuery(t.Context(), "ana"); err != nil {
		t.Error(err)
	}
}

// What cannot be this model is an error that says where and why.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, old, new, want string }{
		{"another kind", "config.json", `"bert"`, `"llama"`, `config.json: model_type = "llama", want "bert"`},
		{"another activation", "config.json", `"gelu"`, `"relu"`, `config.json: hidden_act = "relu", want "gelu"`},
		{
			"no heads", "config.json", `"num_attention_heads": 3`, `"num_attention_heads": 0`,
			"config.json: num_attention_heads = 0, want 1 to 256",
		},
		{
			"heads that do not fit", "config.json", `"num_attention_heads": 3`, `"num_attention_heads": 5`,
			"config.json: num_attention_heads = 5, and hidden_size = 12 is not a multiple of it",
		},
		{
			"more layers than there are", "config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 3`,
			`model.safetensors: tensor "encoder.layer.2.attention.self.query.weight" is missing`,
		},
		{
			"another width", "config.json", `"intermediate_size": 20`, `"intermediate_size": 24`,
			`tensor "encoder.layer.0.intermediate.dense.weight": shape [20 12], want [24 12]`,
		},
		{"not JSON", "config.json", "{", "", "config.json: "},
		{"another tokenizer", "tokenizer.json", `"WordPiece"`, `"BPE"`, `tokenizer.json: model.type = "BPE", want "WordPiece"`},
		{
			"a token beyond the vocabulary", "tokenizer.json", `"[PAD]": 0`, `"[PAD]": 1000`,
			`tokenizer.json: model.vocab: "[PAD]" has the number 1000 of`,
		},
		{"no [CLS]", "tokenizer.json", `"[CLS]": 2`, `"[XLS]": 2`, `tokenizer.json: model.vocab has no "[CLS]"`},
		{
			"a stripped special token", "tokenizer.json", `"lstrip": false`, `"lstrip": true`,
			`added_tokens: "[PAD]" is single_word, lstrip, rstrip or normalized`,
		},
		{
			"16-bit weights", "model.safetensors", `"dtype": "F32", "shape": [12], "data_offsets": [8112, 8160]`,
			`"dtype": "F16", "shape": [24], "data_offsets": [8112, 8160]`, "dtype F16, want F32",
		},
		{
			"a shape that lies", "model.safetensors", `"shape": [12], "data_offsets": [8112`, `"shape": [99], "data_offsets": [8112`,
			"shape [99] of F32: 48 bytes, want 396",
		},
		{
			"tensors that overlap", "model.safetensors", "[8160, 8208]", "[8112, 8160]",
			"bytes 8112 to 8160: those up to 8160 are another tensor's",
		},
		{"a cut file", "model.safetensors", "*cut*", "", "bytes 17632 to 17680 of 17679"},
		{"no file", "model.safetensors", "*gone*", "", "no such file"},
		{"an empty file", "model.safetensors", "*empty*", "", "0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
				t.Fatal(err)
			}
			change(t, filepath.Join(dir, c.file), c.old, c.new)
			_, err := minilm.Open(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
		})
	}
}

// change replaces the first old in a file, which must be there.
func change(t *testing.T, path, old, changed string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch old {
	case "*gone*":
		err = os.Remove(path)
	case "*cut*":
		err = os.Truncate(path, int64(len(data)-1))
	case "*empty*":
		err = os.Truncate(path, 0)
	default:
		if !strings.Contains(string(data), old) {
			t.Fatalf("%s has no %s", path, old)
		}
		err = os.WriteFile(path, []byte(strings.Replace(string(data), old, changed, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A weight that is no number would make every vector none.
func TestOpenRefusesNaN(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "model.safetensors"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0, 0, 0xc0, 0x7f}, info.Size()-4); err != nil {
		t.Fatal(err)
	}
	if _, err := minilm.Open(dir); err == nil || !strings.Contains(err.Error(), "number 11 is NaN") {
		t.Errorf("err = %v", err)
	}
}

func TestMatmul(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n, k := rapid.IntRange(1, 11).Draw(t, "m"), rapid.IntRange(1, 7).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "k")
		number := rapid.Float32Range(-2, 2)
		x, w := rapid.SliceOfN(number, m*k, m*k).Draw(t, "x"), rapid.SliceOfN(number, n*k, n*k).Draw(t, "w")
		out := slices.Repeat([]float32{float32(math.NaN())}, m*n+1)
		minilm.Matmul(out, x, w, m, n, k)
		for i := range m {
			for j := range n {
				var sum, size float64
				for p := range k {
					product := float64(x[i*k+p]) * float64(w[j*k+p])
					sum, size = sum+product, size+math.Abs(product)
				}
				if diff := math.Abs(float64(out[i*n+j]) - sum); !(diff <= 1e-5*size+1e-30) {
					t.Fatalf("out[%d][%d] = %v, want %v", i, j, out[i*n+j], sum)
				}
			}
		}
		if !math.IsNaN(float64(out[m*n])) {
			t.Fatal("written beyond the end")
		}
		last := make([]float32, n) // a row alone is the same row, bit for bit
		minilm.Matmul(last, x[(m-1)*k:], w, 1, n, k)
		if !slices.Equal(last, out[(m-1)*n:m*n]) {
			t.Fatalf("row %d of %d: %v, alone: %v", m-1, m, out[(m-1)*n:m*n], last)
		}
	})
}

func BenchmarkEmbed(b *testing.B) {
	m := published(b)
	for _, words := range []int{16, 62, 126, 254} { // one token each, and [CLS] and [SEP]
		text := strings.Repeat("water ", words)
		b.Run(fmt.Sprintf("tokens=%d", m.Tokens(text)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.EmbedQuery(b.Context(), text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("question", func(b *testing.B) { // ten words
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.EmbedQuery(b.Context(), "When do I have to ask for a new passport?"); err != nil {
				b.Fatal(err)
			}
		}
	})
	texts := slices.Repeat([]string{strings.Repeat("water ", 78)}, 16)
	b.Run("texts=16/tokens=80", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.EmbedDocuments(b.Context(), texts); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(16*80*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
	})
}

func BenchmarkMatmul(b *testing.B) {
	for _, c := range []struct{ m, n, k int }{{16, 384, 384}, {128, 1536, 384}, {128, 384, 1536}} {
		b.Run(fmt.Sprintf("m=%d/n=%d/k=%d", c.m, c.n, c.k), func(b *testing.B) {
			out, x, w := make([]float32, c.m*c.n), make([]float32, c.m*c.k), make([]float32, c.n*c.k)
			b.ReportAllocs()
			for b.Loop() {
				minilm.Matmul(out, x, w, c.m, c.n, c.k)
			}
			b.ReportMetric(2*float64(c.m*c.n*c.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := folder(b)
	b.ReportAllocs()
	for b.Loop() {
		open(b, dir)
	}
}

func BenchmarkTokens(b *testing.B) {
	m := open(b, "testdata/tiny")
	text := strings.Repeat("Ana plays the violin; naïve fox jumps. ", 5)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Tokens(text)
	}
}
