package bleve_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/bleve"
)

// TestTiesAreOrderedByID: 1,200 blocks of one text, spread over several batches, and every k.
func TestTiesAreOrderedByID(t *testing.T) {
	var pairs, want []string
	for i := range 1200 {
		name := fmt.Sprintf("%04d.md", (i*7)%1200)
		pairs = append(pairs, name, "the same text in each of them")
		want = append(want, name+"#0")
	}
	slices.Sort(want)
	x := open(t, files(append(pairs, "x.md", "the same text, and text again")...), bleve.Options{})
	for _, k := range []int{1, 2, 5, 15, 16, 17, 50, 499, 1200} {
		got := ids(find(t, x, "same text", k))
		if diff := cmp.Diff(want[:k-1], slices.DeleteFunc(got, func(id string) bool { return id == "x.md#0" })[:k-1]); diff != "" {
			t.Fatalf("k=%d: -want +got:\n%s", k, diff)
		}
	}
	if got := find(t, x, "same text", math.MaxInt); len(got) != 1201 {
		t.Errorf("k above the number of blocks: got %d, want 1201", len(got))
	}
}

// TestShorterResultIsPrefix: asking for more never changes what came first, also with a query of many words.
func TestShorterResultIsPrefix(t *testing.T) {
	x := open(t, corpus(700), bleve.Options{})
	for _, query := range []string{"w1", "w3 w5", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14"} {
		all := ids(find(t, x, query, 10_000))
		for _, k := range []int{1, 3, 10, 100} {
			want := all[:min(k, len(all))]
			if diff := cmp.Diff(want, ids(find(t, x, query, k))); diff != "" {
				t.Errorf("query %q, k=%d: -want +got:\n%s", query, k, diff)
			}
		}
	}
}

// TestScoreIsBM25 compares with the formula, which also shows that the average length is the true one.
func TestScoreIsBM25(t *testing.T) {
	texts := []string{"zebra", "zebra zebra zebra zebra lion lion", "lion " + strings.Repeat("tiger ", 20), "lion zebra tiger"}
	var pairs []string
	total := 0
	for i, text := range texts {
		pairs = append(pairs, fmt.Sprintf("%d.txt", i), text)
		total += len(strings.Fields(text))
	}
	x := open(t, files(pairs...), bleve.Options{Analyzer: "standard"})
	average := math.Ceil(float64(total) / float64(len(texts)))
	idf := math.Log(1 + (4-3+0.5)/(3+0.5)) // 3 of 4 hold the word
	for _, b := range find(t, x, "zebra", 10) {
		words := strings.Fields(b.Text)
		count := 0
		for _, w := range words {
			if w == "zebra" {
				count++
			}
		}
		tf := math.Sqrt(float64(count)) // bleve's variant
		want := idf * tf * 1.2 / (tf + 1.2*(1-0.75+0.75*float64(len(words))/average))
		if math.Abs(b.Score-want) > 1e-4 {
			t.Errorf("%s: score %v, want %v", b.ID, b.Score, want)
		}
	}
}

// TestSameTextSameScore: with more than ten words bleve adds up the scores of the words in an order that depends
// on which blocks it has seen before; that must not show, or equal blocks would change places.
func TestSameTextSameScore(t *testing.T) {
	const text = "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15"
	var pairs []string
	for i := range 600 {
		words := strings.Fields(text)
		if i%3 > 0 {
			words = slices.Delete(words, i%7, i%7+i%8)
		}
		pairs = append(pairs, fmt.Sprintf("%04d.md", i), strings.Join(words, " ")+strings.Repeat(" filler", i%3))
	}
	scores := map[string]float64{}
	for _, b := range find(t, open(t, files(pairs...), bleve.Options{}), text, 600) {
		if other, seen := scores[b.Text]; seen && other != b.Score {
			t.Errorf("scores %v and %v for %q", other, b.Score, b.Text)
		}
		scores[b.Text] = b.Score
	}
}

func TestQueryIsPlainText(t *testing.T) {
	x := open(t, files("a.md", "text about zebras", "b.md", "another animal"), bleve.Options{})
	for _, query := range []string{
		`zebra`, `+zebra`, `text: zebra`, `zebra^5`, `"zebra`, `zebra AND`, `(zebra`, `zebra:`, `\zebra`, `-zebra`, `zebra*? /[/`,
		"zebra\x00\xff", "ZEBRA'S",
	} {
		if got := ids(find(t, x, query, 5)); !slices.Equal(got, []string{"a.md#0"}) {
			t.Errorf("query %q: got %v, want a.md#0", query, got)
		}
	}
	if got := find(t, x, "the of and", 5); len(got) != 0 {
		t.Errorf("stop words only: got %v, want none", got)
	}
	if got := find(t, x, "zebra "+strings.Repeat("é", 1<<20), 5); len(got) != 1 {
		t.Errorf("huge query: got %d blocks, want 1", len(got))
	}
}

func TestResultsBelongToTheCaller(t *testing.T) {
	x := open(t, files("a.md", "zebra"), bleve.Options{})
	find(t, x, "zebra", 1)[0].Text = "changed"
	if got := find(t, x, "zebra", 1)[0].Text; got != "zebra" {
		t.Errorf("Text = %q, want zebra", got)
	}
}

// TestConcurrentUse searches from several goroutines while the index is closed: each search succeeds or
// says that the index is closed.
func TestConcurrentUse(t *testing.T) {
	x, err := bleve.New(corpus(50), bleve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := ids(find(t, x, "w1 w2", 10))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				got, err := x.Search(t.Context(), "w1 w2", 10)
				if errors.Is(err, bleve.ErrClosed) {
					return
				}
				if err != nil || !slices.Equal(ids(got), want) {
					t.Errorf("Search = %v, %v; want %v", ids(got), err, want)
					return
				}
			}
		})
	}
	wg.Go(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
}

func TestRetriever(t *testing.T) {
	x := open(t, files("d/a.md", "# A\nzebra", "b#1.txt", "zebra lion"), bleve.Options{})
	docs, err := x.Retriever(2).GetRelevantDocuments(t.Context(), "zebra")
	if err != nil {
		t.Fatal(err)
	}
	got := map[any]any{}
	for _, d := range docs {
		got[d.Metadata["id"]] = d.Metadata["source"]
		if d.Score <= 0 || !strings.Contains(d.PageContent, "zebra") {
			t.Errorf("document %+v: want a score and its text", d)
		}
	}
	if diff := cmp.Diff(map[any]any{"d/a.md#0": "d/a.md", "b#1.txt#0": "b#1.txt"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := x.Retriever(0).GetRelevantDocuments(t.Context(), "zebra"); err == nil {
		t.Error("k = 0: no error")
	}
}

// TestBlocks: all blocks are there, each once, in the order of their IDs, also beyond bleve's default page.
func TestBlocks(t *testing.T) {
	x := open(t, corpus(700), bleve.Options{})
	blocks, err := x.Blocks(t.Context())
	if err != nil || len(blocks) != x.Len() || len(blocks) < 700 {
		t.Fatalf("%d blocks of %d, %v", len(blocks), x.Len(), err)
	}
	for i, b := range blocks {
		if b.Text == "" || i > 0 && b.ID <= blocks[i-1].ID {
			t.Fatalf("block %d: %q, before it %q", i, b.ID, blocks[max(0, i-1)].ID)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Blocks(t.Context()); !errors.Is(err, bleve.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
