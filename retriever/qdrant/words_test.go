package qdrant_test

import (
	"math"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/qdrant"
)

func words(t *testing.T, text string) qdrant.SparseVector {
	t.Helper()
	return testkit.Must(qdrant.Words{}.SparseQuery(t.Context(), text))(t)
}

func TestWords(t *testing.T) {
	for text, n := range map[string]int{
		"The otter, the OTTER; the-otter": 2, "": 0, "… — !": 0, "日本語": 3, "Go1.26 日x本": 5, "don't": 2, "cafe\u0301 café": 2,
	} {
		if got := words(t, text); len(got.Indices) != n {
			t.Errorf("%q has %d words, want %d", text, len(got.Indices), n)
		}
	}
}

// TestWordsAreBM25 compares with the formula.
func TestWordsAreBM25(t *testing.T) {
	v, err := qdrant.Words{MeanLength: 4}.SparseDocuments(t.Context(), []string{"otter otter river", "otter"})
	if err != nil {
		t.Fatal(err)
	}
	otter := words(t, "otter").Indices[0]
	for i, test := range []struct{ n, length float64 }{{2, 3}, {1, 1}} {
		want := test.n * 2.2 / (test.n + 1.2*(0.25+0.75*test.length/4))
		for j, index := range v[i].Indices {
			if index == otter && math.Abs(float64(v[i].Values[j])-want) > 1e-6 {
				t.Errorf("document %d: %v, want %v", i, v[i].Values[j], want)
			}
		}
	}
}
