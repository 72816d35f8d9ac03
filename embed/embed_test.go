package embed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/embeddings"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/embed"
)

// Any embedder of langchaingo's fits, and ours fit there.
var (
	_ embed.Embedder      = embeddings.Embedder(nil)
	_ embeddings.Embedder = embed.NewHashed(0)
	_ embeddings.Embedder = embed.Cached(embed.NewHashed(0), 1)
)

// fake gives vectors that name the text's length, and notes what it is asked.
type fake struct {
	mu       sync.Mutex
	asked    [][]string
	size     int
	drop     int // vectors left out
	err      error
	growing  bool // every call has longer vectors
	queryLen int
}

func (f *fake) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, slices.Clone(texts))
	if f.err != nil {
		return nil, f.err
	}
	if f.growing {
		f.size++
	}
	vectors := make([][]float32, len(texts)-f.drop)
	for i := range vectors {
		vectors[i] = make([]float32, f.size)
		vectors[i][0] = float32(len(texts[i]))
	}
	return vectors, nil
}

func (f *fake) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, []string{"?" + text})
	return make([]float32, max(f.queryLen, f.size)), f.err
}

func TestHashed(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(-1, 600).Draw(t, "size")
		e := embed.NewHashed(size)
		text := rapid.String().Draw(t, "text")
		v, err := e.EmbedQuery(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		want := size
		if size <= 0 {
			want = embed.DefaultDimensions
		}
		if len(v) != want {
			t.Fatalf("%d dimensions, want %d", len(v), want)
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if math.Abs(sum-1) > 1e-5 && sum != 0 {
			t.Fatalf("length² %v of %q", sum, text)
		}
		again, err := e.EmbedDocuments(ctx, []string{"other", text})
		if err != nil || !slices.Equal(v, again[1]) {
			t.Fatalf("another vector as a document: %v", err)
		}
	})
	v, err := embed.NewHashed(0).EmbedQuery(ctx, "!?")
	if err != nil || slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
		t.Errorf("a text without words: %v", err)
	}
}

// The vectors are stored: if they change, the name must change with them.
func TestHashedIsStable(t *testing.T) {
	e := embed.NewHashed(8)
	for text, want := range map[string]string{
		"Ana plays the violin.": "hashed-v1-8 [0.6667 0.3333 0.0000 0.0000 -0.3333 -0.3333 -0.3333 -0.3333]",
		"Ana's café, 日本 x":      "hashed-v1-8 [0.2182 -0.5092 0.0000 0.2182 -0.0727 0.1455 -0.4364 0.6547]",
	} {
		v, err := e.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %.4f", e.Name(), v); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCosine(t *testing.T) {
	for _, c := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{2, 0}, 1},
		{[]float32{1, 0}, []float32{0, 3}, 0},
		{[]float32{1, 1}, []float32{-1, -1}, -1},
		{[]float32{0, 0}, []float32{1, 0}, 0},
		{[]float32{float32(math.NaN())}, []float32{1}, 0},
	} {
		got, err := embed.Cosine(c.a, c.b)
		if err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Cosine(%v, %v) = %v, %v; want %v", c.a, c.b, got, err, c.want)
		}
	}
	_, err := embed.Cosine([]float32{1}, []float32{1, 2})
	if dimension, ok := errors.AsType[*embed.DimensionError](err); !ok || !errors.Is(err, embed.ErrDimension) || dimension.Want != 1 ||
		dimension.Got != 2 {
		t.Errorf("other lengths = %v", err)
	}
}

func TestCache(t *testing.T) {
	inner := &fake{size: 2}
	c := embed.Cached(inner, 2)
	get := func(texts ...string) {
		t.Helper()
		vectors, err := c.EmbedDocuments(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if vectors[i][0] != float32(len(text)) {
				t.Errorf("%q has the vector %v", text, vectors[i])
			}
			vectors[i][0] = -1 // the caller's own
		}
	}
	get("a", "bb", "a")
	get("a", "ccc")
	get("a", "ccc")
	get("bb")
	if _, err := c.EmbedQuery(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"a", "bb"}, {"ccc"}, {"bb"}, {"?a"}}
	if diff := cmp.Diff(want, inner.asked); diff != "" {
		t.Error(diff)
	}
	inner.err = errors.New("away")
	if _, err := c.EmbedDocuments(t.Context(), []string{"new"}); !errors.Is(err, inner.err) {
		t.Errorf("an error of the inner one = %v", err)
	}
	if _, err := c.EmbedQuery(t.Context(), "new"); !errors.Is(err, inner.err) {
		t.Errorf("an error of the inner one = %v", err)
	}
	inner.err = nil
	get("new")
}

func TestCacheConcurrent(t *testing.T) {
	c := embed.Cached(embed.NewHashed(16), 8)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				text := strings.Repeat("x", (i*j)%12)
				got, err := c.EmbedDocuments(t.Context(), []string{text})
				want, _ := embed.NewHashed(16).EmbedQuery(t.Context(), text)
				if err != nil || !slices.Equal(got[0], want) {
					t.Errorf("%q: %v", text, err)
				}
			}
		})
	}
	group.Wait()
}

func TestBatched(t *testing.T) {
	inner := &fake{size: 2}
	vectors, err := embed.Batched(inner, 2).EmbedDocuments(t.Context(), []string{"a", "bb", "ccc", "dddd", "eeeee"})
	if err != nil || len(vectors) != 5 || vectors[4][0] != 5 {
		t.Errorf("%v, %v", vectors, err)
	}
	if diff := cmp.Diff([][]string{{"a", "bb"}, {"ccc", "dddd"}, {"eeeee"}}, inner.asked); diff != "" {
		t.Error(diff)
	}
	if none, err := embed.Batched(inner, 0).EmbedDocuments(t.Context(), nil); err != nil || len(none) != 0 || len(inner.asked) != 3 {
		t.Errorf("nothing: %v, %v", none, err)
	}
}

// What an embedder gets wrong is an error and never a wrong vector.
func TestWrongVectors(t *testing.T) {
	texts := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		e    embed.Embedder
		want error
	}{
		"too few, batched":  {embed.Batched(&fake{size: 2, drop: 1}, 2), embed.ErrCount},
		"too few, cached":   {embed.Cached(&fake{size: 2, drop: 1}, 2), embed.ErrCount},
		"growing":           {embed.Batched(&fake{growing: true}, 1), embed.ErrDimension},
		"another dimension": {embed.Checked(&fake{size: 2}, 3), embed.ErrDimension},
	} {
		if v, err := c.e.EmbedDocuments(t.Context(), texts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, v, err, c.want)
		}
	}
	if _, err := embed.Checked(&fake{size: 2}, 3).EmbedQuery(t.Context(), "a"); !errors.Is(err, embed.ErrDimension) {
		t.Errorf("a question of another dimension: %v", err)
	}
	right := embed.Checked(embed.NewHashed(3), 3)
	if _, err := right.EmbedQuery(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, err := right.EmbedDocuments(t.Context(), texts); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	hashed := embed.NewHashed(16)
	for _, e := range []embed.Embedder{embed.Batched(hashed, 1), embed.Cached(hashed, 1), embed.Checked(hashed, 16)} {
		if got := embed.NameOf(e); got != "hashed-v1-16" {
			t.Errorf("%T has the name %q", e, got)
		}
	}
	if got := embed.NameOf(embed.Batched(&fake{}, 1)); got != "" {
		t.Errorf("an embedder without a name has %q", got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embed.NewHashed(0).EmbedDocuments(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("EmbedDocuments = %v", err)
	}
	if _, err := embed.NewHashed(0).EmbedQuery(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("EmbedQuery = %v", err)
	}
}

func BenchmarkHashed(b *testing.B) {
	text := strings.Repeat("Ana plays the violin in an orchestra. ", 4)
	e := embed.NewHashed(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.EmbedQuery(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
