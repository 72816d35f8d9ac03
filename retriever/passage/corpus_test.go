package passage_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// Chunks of 128 tokens with 20 % overlap.
const (
	chunkTokens   = 128
	overlapTokens = chunkTokens / 5
)

// corpus is the text of an open trace, joined to long documents and cut into chunks.
type corpus struct {
	texts  map[string]string // by document
	chunks []passage.Chunk
	of     map[string][]passage.Chunk
}

// splitter returns where a chunk of a text may begin.
type splitter func(text string) []int

var word = regexp.MustCompile(`\S+`)

func atWords(text string) []int {
	var at []int
	for _, m := range word.FindAllStringIndex(text, -1) {
		at = append(at, m[0])
	}
	return at
}

func atSentences(text string) []int {
	var at []int
	for start := range passage.Sentences(text) {
		at = append(at, start)
	}
	return at
}

// splitters are the two kinds that are in use: by length, through sentences, and by sentences.
var splitters = []struct {
	name  string
	split splitter
}{{"words", atWords}, {"sentences", atSentences}}

// load makes one document of all memories of a user, and of each 40 passages of an encyclopedia.
func load(t testing.TB, name string, split splitter) (*corpus, []trace.Request) {
	t.Helper()
	trc, blocks, err := trace.Load(testkit.Shared(t, "traces", name, "trace.jsonl"), testkit.Shared(t, "traces", name, "blocks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	c := &corpus{texts: map[string]string{}, of: map[string][]passage.Chunk{}}
	var names []string
	n := 0
	for b := range blocks.All() {
		doc, text := fmt.Sprint("d", n/40), b.Text
		if name == "memory-locomo-k100" {
			doc, _, _ = strings.Cut(b.ID, "m")
			_, text, _ = strings.Cut(b.Text, ": ") // the date
		}
		n++
		if c.texts[doc] == "" {
			names = append(names, doc)
		}
		c.texts[doc] += text + "\n\n"
	}
	for _, doc := range names {
		c.of[doc] = cut(doc, c.texts[doc], split)
		c.chunks = append(c.chunks, c.of[doc]...)
	}
	return c, trc
}

// cut makes chunks of whole pieces, as splitters do; a piece longer than a chunk is one.
func cut(doc, text string, split splitter) []passage.Chunk {
	at := append(split(text), len(text))
	size := func(i, j int) int { return tokens.Count(text[at[i]:at[j]]) }
	var out []passage.Chunk
	for i := 0; ; {
		j := i + 1
		for j < len(at)-1 && size(i, j+1) <= chunkTokens {
			j++
		}
		out = append(out, passage.Chunk{Doc: doc, Index: len(out), Start: -1, Text: strings.TrimSpace(text[at[i]:at[j]])})
		if j == len(at)-1 {
			return out
		}
		k := j
		for k > i+1 && size(k-1, j) <= overlapTokens {
			k--
		}
		i = k
	}
}

// If all chunks of a document are retrieved, what is sent is the document, every word of it once. Left out are
// documents that say something twice themselves, in chunks that are equal or hold each other, and lose the repeat.
func TestRealTextIsPutTogetherAgain(t *testing.T) {
	testkit.NotUnderRace(t)
	for _, name := range []string{"multihop-2wiki", "memory-locomo-k100"} {
		for _, s := range splitters {
			c, _ := load(t, name, s.split)
			repeated, left, skipped := 0, 0, 0
			for doc, chunks := range c.of {
				text := c.texts[doc]
				for _, form := range forms {
					sent := joined(passage.Make(chunks, passage.Options{Form: form}))
					if got, want := strings.Fields(sent), strings.Fields(text); !slices.Equal(got, want) {
						if saysTwice(chunks) {
							skipped++
							continue
						}
						t.Fatalf("%s, cut at %s, document %s, form %d: %d words are sent, it has %d", name, s.name, doc, form, len(got), len(want))
					}
					left += tokens.Count(sent) - tokens.Count(text)
					for _, c := range chunks {
						repeated += tokens.Count(c.Text)
					}
					repeated -= tokens.Count(text)
				}
			}
			t.Logf("%s, cut at %s: %d tokens of overlap, %d left; %d documents left out", name, s.name, repeated, left, skipped)
			if repeated == 0 || left*10 > repeated || skipped*25 > len(c.of) {
				t.Errorf("%s, cut at %s: %d of %d tokens of overlap are left, want less than a tenth; %d documents left out",
					name, s.name, left, repeated, skipped)
			}
		}
	}
}

// saysTwice reports whether a chunk is equal to another one, or holds all of its neighbour's words.
func saysTwice(chunks []passage.Chunk) bool {
	seen := map[string]bool{}
	for i, c := range chunks {
		if seen[c.Text] || i > 0 && (strings.Contains(c.Text, chunks[i-1].Text) || strings.Contains(chunks[i-1].Text, c.Text)) {
			return true
		}
		seen[c.Text] = true
	}
	return false
}

func joined(passages []passage.Passage) string {
	var b strings.Builder
	for _, p := range passages {
		b.WriteString(p.Text + " ")
	}
	return b.String()
}

// index finds chunks by BM25 with the usual constants.
type index struct {
	chunks []passage.Chunk
	post   map[string]map[int]int // word → chunk → how often
	length []float64
	mean   float64
}

var letters = regexp.MustCompile(`[\pL\pN]+`)

func newIndex(chunks []passage.Chunk) *index {
	x := &index{chunks: chunks, post: map[string]map[int]int{}, length: make([]float64, len(chunks))}
	for i, c := range chunks {
		for _, w := range letters.FindAllString(strings.ToLower(c.Text), -1) {
			if x.post[w] == nil {
				x.post[w] = map[int]int{}
			}
			x.post[w][i]++
			x.length[i]++
		}
		x.mean += x.length[i] / float64(len(chunks))
	}
	return x
}

// search returns the best k chunks that may be found, without the words that a fifth of them have.
func (x *index) search(query string, k int, may func(passage.Chunk) bool) []passage.Chunk {
	score := map[int]float64{}
	for _, w := range letters.FindAllString(strings.ToLower(query), -1) {
		post, n := x.post[w], float64(len(x.chunks))
		df := float64(len(post))
		if df > n/5 {
			continue
		}
		for i, tf := range post {
			if may(x.chunks[i]) {
				score[i] += math.Log(1+(n-df+0.5)/(df+0.5)) * float64(tf) * 2.2 / (float64(tf) + 1.2*(0.25+0.75*x.length[i]/x.mean))
			}
		}
	}
	found := slices.SortedFunc(maps.Keys(score), func(i, j int) int { return cmp.Or(cmp.Compare(score[j], score[i]), cmp.Compare(i, j)) })
	out := make([]passage.Chunk, 0, k)
	for _, i := range found[:min(k, len(found))] {
		out = append(out, x.chunks[i])
	}
	return out
}
