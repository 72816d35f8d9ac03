package passage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/passage"
)

func TestMake(t *testing.T) {
	const text = "First there is one. Then there are two. After that come three. At the end are four."
	at := func(index, from, to int) passage.Chunk {
		return passage.Chunk{Doc: "d", Index: index, Start: -1, Text: text[from:to]}
	}
	second, third, fourth := strings.Index(text, "Then"), strings.Index(text, "After"), strings.Index(text, "At the")
	for _, test := range []struct {
		name   string
		chunks []passage.Chunk
		opts   passage.Options
		want   []passage.Passage
	}{
		{
			"cut at a sentence",
			[]passage.Chunk{at(0, 0, third+5), at(1, second, len(text))},
			passage.Options{},
			[]passage.Passage{{text[:second-1], []int{0}}, {text[second:], []int{1}}},
		},
		{ // nothing is torn that one of them holds whole
			"cut behind a fragment",
			[]passage.Chunk{at(0, 0, third+5), at(1, second+5, len(text))},
			passage.Options{},
			[]passage.Passage{{text[:third-1], []int{0}}, {text[third:], []int{1}}},
		},
		{
			"a neighbour is missing",
			[]passage.Chunk{at(0, 0, third+5), at(2, second+5, len(text))},
			passage.Options{},
			[]passage.Passage{{text[:third-1], []int{0}}, {text[third:], []int{1}}},
		},
		{"too far apart", []passage.Chunk{at(0, 0, third), at(20, second, len(text))}, passage.Options{}, []passage.Passage{
			{text[:third], []int{0}}, {text[second:], []int{1}},
		}},
		{
			"another document",
			[]passage.Chunk{at(0, 0, third), {Doc: "e", Index: 1, Start: -1, Text: text[second:]}},
			passage.Options{},
			[]passage.Passage{
				{text[:third], []int{0}}, {text[second:], []int{1}},
			},
		},
		{"no document", []passage.Chunk{{Text: text[:third]}, {Index: 1, Text: text[second:]}}, passage.Options{}, []passage.Passage{
			{text[:third], []int{0}}, {text[second:], []int{1}},
		}},
		{
			"equal texts of two documents",
			[]passage.Chunk{at(0, 0, third), {Doc: "e", Index: 7, Start: -1, Text: text[:third]}},
			passage.Options{},
			[]passage.Passage{{text[:third], []int{0, 1}}},
		},
		{
			"a chunk in a larger one",
			[]passage.Chunk{at(1, second, third-1), at(1, 0, fourth)},
			passage.Options{},
			[]passage.Passage{{text[:fourth], []int{1, 0}}},
		},
		{
			"overlaps that reach over a chunk",
			[]passage.Chunk{at(0, 0, fourth-1), at(1, 10, fourth+5), at(2, second, len(text))},
			passage.Options{},
			[]passage.Passage{{text[:second-1], []int{0, 1}}, {text[second:], []int{2}}},
		},
		{
			"join without a gap",
			[]passage.Chunk{{Doc: "d", Index: -1, Start: second, Text: text[second:]}, {Doc: "d", Index: -1, Start: 0, Text: text[:second]}},
			passage.Options{Form: passage.Join},
			[]passage.Passage{{text, []int{1, 0}}},
		},
		{
			"join over a gap",
			[]passage.Chunk{{Doc: "d", Index: -1, Start: third, Text: text[third:]}, {Doc: "d", Index: -1, Start: 0, Text: text[:second]}},
			passage.Options{Form: passage.Join},
			[]passage.Passage{{text[third:], []int{0}}, {text[:second], []int{1}}},
		},
		{
			"trim less than half",
			[]passage.Chunk{at(0, second+5, third+5)},
			passage.Options{Trim: true},
			[]passage.Passage{{text[second+5 : third-1], []int{0}}},
		},
		{
			"trim both ends",
			[]passage.Chunk{at(0, second-5, fourth+5)},
			passage.Options{Trim: true},
			[]passage.Passage{{text[second : fourth-1], []int{0}}},
		},
		{
			"one short sentence",
			[]passage.Chunk{{Doc: "d", Index: 0, Text: "He came late. He died."}, {Doc: "d", Index: 1, Text: "He died. She stayed."}},
			passage.Options{},
			[]passage.Passage{{"He came late.", []int{0}}, {"He died. She stayed.", []int{1}}},
		},
		{
			"no sentence",
			[]passage.Chunk{{Doc: "d", Index: 0, Text: "He came late, to"}, {Doc: "d", Index: 1, Text: "to stay."}},
			passage.Options{},
			[]passage.Passage{{"He came late, to", []int{0}}, {"to stay.", []int{1}}},
		},
		{"nothing", nil, passage.Options{}, []passage.Passage{}},
		{"no text", []passage.Chunk{{Doc: "d"}, {Doc: "d"}}, passage.Options{}, []passage.Passage{{"", []int{0, 1}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, passage.Make(test.chunks, test.opts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each of two chunks ends as the other begins: they cannot both come first.
func TestChunksInACircle(t *testing.T) {
	const x, y = "This half of the text is one sentence. ", "And this other half of it is another one. "
	for _, form := range forms {
		var all strings.Builder
		for _, p := range passage.Make([]passage.Chunk{
			{Doc: "d", Index: -1, Start: -1, Text: x + y}, {Doc: "d", Index: -1, Start: -1, Text: y + x},
		}, passage.Options{Form: form}) {
			all.WriteString(p.Text + " ")
		}
		if n := strings.Count(all.String(), strings.TrimSpace(y)); n != 1 {
			t.Errorf("form %d: %d times in %q", form, n, all.String())
		}
	}
}

// A sentence longer than the overlap is whole in neither chunk; no word of it is lost or doubled.
func TestLongSentences(t *testing.T) {
	words := make([]string, 60)
	for i := range words {
		words[i] = fmt.Sprintf("word%02d", i)
	}
	part := func(i, from, to int) passage.Chunk {
		return passage.Chunk{Doc: "d", Index: i, Start: -1, Text: strings.Join(words[from:to], " ")}
	}
	got := passage.Make([]passage.Chunk{part(0, 0, 40), part(1, 30, 60)}, passage.Options{})
	if joined := got[0].Text + " " + got[1].Text; joined != strings.Join(words, " ") {
		t.Errorf("%q", joined)
	}
}

// BenchmarkMake is the cost for one search: chunks of 1,000 bytes, a third of them with their neighbour.
func BenchmarkMake(b *testing.B) {
	for _, k := range []int{5, 15, 50} {
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("k=%d/placed=%v", k, known), func(b *testing.B) {
				chunks := benchChunks(k, known)
				b.ReportAllocs()
				for b.Loop() {
					passage.Make(chunks, passage.Options{})
				}
			})
		}
	}
}

func benchChunks(k int, placed bool) []passage.Chunk {
	chunks := make([]passage.Chunk, k)
	for i := range chunks {
		doc, index := i/3, []int{0, 1, 7}[i%3]
		var text strings.Builder
		for word := index * 100; word < index*100+125; word++ {
			fmt.Fprintf(&text, "w%dd%d", word, doc)
			if word%12 == 11 {
				text.WriteString(". The")
			}
			text.WriteByte(' ')
		}
		chunks[i] = passage.Chunk{Doc: fmt.Sprint("d", doc), Index: index, Start: -1, Text: text.String()}
		if !placed {
			chunks[i].Index = -1
		}
	}
	return chunks
}

// BenchmarkMakeRepeats is text that repeats itself, where a comparison of all places would take quadratic time: the time
// for a byte must not grow with the length.
func BenchmarkMakeRepeats(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		for _, index := range []int{0, -1} {
			b.Run(fmt.Sprintf("bytes=%d/placed=%v", size, index == 0), func(b *testing.B) {
				chunks := []passage.Chunk{
					{Doc: "d", Index: index, Start: -1, Text: "x" + strings.Repeat("ab", size/2) + "c"},
					{Doc: "d", Index: index, Start: -1, Text: strings.Repeat("ab", size/2) + "d"},
				}
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				for b.Loop() {
					passage.Make(chunks, passage.Options{})
				}
			})
		}
	}
}
