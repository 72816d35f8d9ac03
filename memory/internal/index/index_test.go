package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/memory/internal/index"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fill makes an index of texts, each a minute younger than the one before. Their IDs are the texts.
func fill(texts ...string) *index.Index {
	x := index.New()
	for i, text := range texts {
		x.Put(&index.Entry{ID: text, Text: text, Created: start.Add(time.Duration(i) * time.Minute)})
	}
	return x
}

func ids(found []index.Found) []string {
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.ID
	}
	return out
}

// Rare words count more than common ones, stems are compared, and words that are spelt alike count in part.
func TestRankByWords(t *testing.T) {
	x := fill("Ana likes tea.", "Bo likes tea.", "Cy likes tea and is allergic to peanuts.", "The vaccination is due in May.",
		"Dee likes coffee.")
	for query, want := range map[string]string{
		"who likes peanuts?":              "Cy likes tea and is allergic to peanuts.",
		"What allergies are there?":       "Cy likes tea and is allergic to peanuts.",
		"When must I be vaccinated?":      "The vaccination is due in May.",
		"what about vacination":           "The vaccination is due in May.",
		"What does Ana like?":             "Ana likes tea.",
		"Does somebody like coffee there": "Dee likes coffee.",
	} {
		if found := x.Rank(index.Query{Text: query}, 1); len(found) != 1 || found[0].ID != want {
			t.Errorf("%q finds %+v, want %q", query, found, want)
		}
	}
	if found := x.Rank(index.Query{Text: "zebra"}, 9); len(found) != 5 {
		t.Errorf("%d found, want all that there are, the newest first", len(found))
	} else if found[0].ID != "Dee likes coffee." {
		t.Errorf("%q first, want the newest", found[0].ID)
	}
	if found := x.Rank(index.Query{Text: "peanuts", Least: 0.3}, 9); len(found) != 1 {
		t.Errorf("%+v above a threshold", ids(found))
	}
}

// A text finds itself, however many are spelt alike.
func TestRankItself(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprint("right 5474 ", i), fmt.Sprint("left 5474 ", i))
	}
	x := fill(texts...)
	for _, text := range texts {
		if found := x.Rank(index.Query{Text: text}, 1); found[0].ID != text {
			t.Errorf("%q finds %+v", text, found)
		}
	}
}

func TestRankExpired(t *testing.T) {
	x := index.New()
	x.Put(&index.Entry{ID: "1", Text: "tea", Created: start, Expires: start.Add(time.Hour)})
	for now, want := range map[time.Time]int{start: 1, start.Add(time.Hour): 0, {}: 1} {
		if found := x.Rank(index.Query{Text: "tea", Now: now}, 1); len(found) != want {
			t.Errorf("at %v: %d found, want %d", now, len(found), want)
		}
	}
}

func TestRankEntities(t *testing.T) {
	x := index.New()
	for i, name := range []string{"ana maria", "bo", "bo"} {
		x.Put(&index.Entry{ID: fmt.Sprint(i), Text: "tea", Entities: []string{name}, Created: start})
	}
	means := func(name string) float64 {
		if name == "ana maria" {
			return 1
		}
		return 0
	}
	if found := x.Rank(index.Query{Text: "tea", Means: means}, 3); found[0].ID != "0" || found[0].Entity != 1 || found[1].Entity != 0 {
		t.Errorf("%+v", found)
	}
}

// random returns a vector of length 1.
func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		x := r.NormFloat64()
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// Cosines are those of the vectors, as far as 8 bits a number go, whatever the length, over the borders of chunks.
func TestRankByVectors(t *testing.T) {
	for _, n := range []int{3, 32, 384} {
		r := rand.New(rand.NewPCG(1, 2))
		x := index.New()
		vectors := map[string][]float32{}
		for i := range 5000 {
			id := fmt.Sprint(i)
			vectors[id] = random(r, n)
			x.Put(&index.Entry{ID: id, Text: "a", Created: start, Vector: vectors[id]})
		}
		asked := random(r, n)
		found := x.Rank(index.Query{Text: "b", Vector: asked}, 5000)
		if len(found) != 5000 {
			t.Fatalf("%d found", len(found))
		}
		for _, f := range found {
			want := 0.0
			for i, a := range asked {
				want += float64(a) * float64(vectors[f.ID][i])
			}
			if math.Abs(f.Semantic-max(want, 0)) > 0.01 {
				t.Fatalf("%d numbers: cosine %v, want %v", n, f.Semantic, want)
			}
		}
	}
}

// An index after any changes ranks like one that was made of what is left.
func TestRankAfterChanges(t *testing.T) {
	word := rapid.SampledFrom(strings.Fields("tea coffee bread peanut violin train office week"))
	rapid.Check(t, func(t *rapid.T) {
		x := index.New()
		left := map[string]*index.Entry{}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "id")
			if rapid.Bool().Draw(t, "remove") {
				x.Remove(id)
				delete(left, id)
				continue
			}
			e := &index.Entry{
				ID: id, Text: strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "text"), " "),
				Created: start.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Hour),
				Vector:  random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "vector"), 1)), 40), Second: rapid.Bool().Draw(t, "second"),
			}
			if rapid.Bool().Draw(t, "bare") {
				e.Vector = nil
			}
			x.Put(e)
			left[id] = e
		}
		fresh := index.New()
		for _, id := range slices.Sorted(func(yield func(string) bool) {
			for id := range left {
				if !yield(id) {
					return
				}
			}
		}) {
			fresh.Put(left[id])
		}
		if x.Len() != len(left) {
			t.Fatalf("Len = %d, want %d", x.Len(), len(left))
		}
		q := index.Query{Text: strings.Join(rapid.SliceOfN(word, 1, 3).Draw(t, "query"), " "), Vector: random(rand.New(rand.NewPCG(9, 9)), 40)}
		if rapid.Bool().Draw(t, "by words") {
			q.Vector = nil
		}
		got, want := x.Rank(q, 10), fresh.Rank(q, 10)
		if !slices.Equal(ids(got), ids(want)) {
			t.Fatalf("%v, want %v", got, want)
		}
		for i, f := range got {
			if math.Abs(f.Score-want[i].Score) > 1e-6 || f.Score < 0 || f.Score > 1 || i > 0 && f.Score > got[i-1].Score {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
		if n := rapid.IntRange(1, 9).Draw(t, "n"); !slices.Equal(ids(x.Rank(q, n)), ids(got)[:min(n, len(got))]) {
			t.Fatalf("the best %d are not the first of all", n)
		}
	})
}

// The newer of two memories about the same matter comes first, though the question is a little nearer to the older. One about another
// matter does not.
func TestSupersede(t *testing.T) {
	at := func(degrees float64) []float32 {
		return []float32{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
	}
	for name, c := range map[string]struct {
		newer float64 // degrees from the question; the older is at −5
		want  string
	}{
		"about equal": {20, "new"}, "much farther": {53, "old"}, "nearer": {2, "new"},
	} {
		x := index.New()
		x.Put(&index.Entry{ID: "old", Text: "blue", Created: start, Vector: at(-5)})
		x.Put(&index.Entry{ID: "new", Text: "green", Created: start.Add(time.Minute), Vector: at(c.newer)})
		if found := x.Rank(index.Query{Text: "colour", Vector: at(0)}, 2); found[0].ID != c.want {
			t.Errorf("%s: %+v, want %s first", name, found, c.want)
		}
	}
	other := index.New() // at a right angle to one another, both near the question
	other.Put(&index.Entry{ID: "old", Text: "blue", Created: start, Vector: at(-44)})
	other.Put(&index.Entry{ID: "new", Text: "green", Created: start.Add(time.Minute), Vector: at(46)})
	if found := other.Rank(index.Query{Text: "colour", Vector: at(0)}, 2); found[0].ID != "old" {
		t.Errorf("about another matter: %+v", found)
	}
}

// Of statements that are worded alike the newer comes first, with vectors that say little of it and without vectors. A fact of
// somebody else, a date in common and a statement about another word of the question do not replace anything.
func TestSupersedeAlike(t *testing.T) {
	for name, c := range map[string]struct{ old, new, question, want string }{
		"an update":      {"I drive a Fiat.", "That one broke, now I drive a Skoda.", "What do I drive?", "new"},
		"somebody else":  {"Our dog is called Luna.", "Greta's dog is called Rex and barks at night.", "What is the dog called?", "old"},
		"of others both": {"Farida babysits on Saturday.", "Hanna babysits on Saturday, the other one is ill.", "Who babysits?", "new"},
		"a date in common": {
			"Passport: until March 2027.", "Contract: until March 2027, the long one.", "Passport or contract, until when?",
			"old",
		},
		"a long text":      {"Tea one: " + strings.Repeat("tea ", 5000), "Tea two: " + strings.Repeat("tea ", 5000), "one", "old"},
		"another relative": {"My sister's birthday is on Monday.", "My brother's birthday is on Monday.", "When is my sister's birthday?", "old"},
	} {
		for with, vectors := range map[string][2][]float32{"no vectors": {}, "vectors": {{1, 0}, {0.34, 0.94}}} {
			x := index.New()
			for i := range 30 { // texts are long beside these
				x.Put(&index.Entry{
					ID: fmt.Sprint("other", i), Text: "Yesterday the sky was blue over the whole of Bergen.", Created: start,
					Vector: []float32{-1, 0}[:len(vectors[0])],
				})
			}
			x.Put(&index.Entry{ID: "old", Text: c.old, Created: start, Vector: vectors[0]})
			x.Put(&index.Entry{ID: "new", Text: c.new, Created: start.Add(time.Minute), Vector: vectors[1]})
			q := index.Query{Text: c.question}
			if vectors[0] != nil {
				q.Vector = []float32{0.91, 0.42} // 25 degrees from the old one, 45 from the new one
			}
			if found := x.Rank(q, 2); found[0].ID != c.want {
				t.Errorf("%s, %s: %+v, want %s first", name, with, found, c.want)
			}
		}
	}
}

// A vector of hardly any length has a direction, or none: scores are numbers.
func TestTinyVectors(t *testing.T) {
	for _, tiny := range []float32{1e-19, 1e-30, 1e-40, 1e-45} {
		x := index.New()
		x.Put(&index.Entry{ID: "tiny", Text: "tea", Created: start, Vector: []float32{tiny, 0}})
		x.Put(&index.Entry{ID: "usual", Text: "bread", Created: start, Vector: []float32{1, 0}})
		for _, q := range [][]float32{{1, 0}, {tiny, 0}} {
			for _, f := range x.Rank(index.Query{Text: "tea", Vector: q}, 2) {
				if !(f.Score >= 0 && f.Score <= 1) {
					t.Errorf("%v, asked %v: %+v", tiny, q, f)
				}
			}
		}
	}
}

// made returns n entries of ten words each, of the vocabulary that it returns.
func made(n int) (entries []index.Entry, words []string, r *rand.Rand) {
	r = rand.New(rand.NewPCG(1, 2))
	words = make([]string, 20_000)
	for i := range words {
		words[i] = fmt.Sprintf("w%x", r.Uint32())
	}
	entries = make([]index.Entry, n)
	for i := range entries {
		text := make([]string, 10)
		for j := range text {
			text[j] = words[int(math.Pow(r.Float64(), 3)*float64(len(words)))]
		}
		entries[i] = index.Entry{
			ID: fmt.Sprintf("%036d", i), Text: strings.Join(text, " "), Created: start.Add(time.Duration(i)),
			Vector: random(r, 384),
		}
	}
	return entries, words, r
}

func indexed(entries []index.Entry) *index.Index {
	x := index.New()
	for i := range entries {
		x.Put(&entries[i])
	}
	return x
}

// BenchmarkBuild shows what is allocated for an index, and what of it stays.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries, _, _ := made(n)
			b.ReportAllocs()
			var x *index.Index
			for b.Loop() {
				x = indexed(entries)
			}
			b.ReportMetric(float64(x.Bytes()), "bytes")
		})
	}
}

func BenchmarkRank(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries, words, r := made(n)
			x := indexed(entries)
			asked := random(r, 384)
			for name, q := range map[string]index.Query{
				"vectors": {Text: strings.Join(words[:5], " "), Vector: asked}, "words": {Text: strings.Join(words[:5], " ")},
			} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						x.Rank(q, 20)
					}
					b.ReportMetric(float64(x.Bytes())/float64(n), "bytes/memory")
				})
			}
		})
	}
}
