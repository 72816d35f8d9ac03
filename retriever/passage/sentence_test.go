package passage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/retriever/passage"
)

func TestSentences(t *testing.T) {
	for name, want := range map[string][]string{
		"abbreviations": {"Dr. Smith met J. K. Rowling at 3 p.m. on Jan. 5, 1995. ", "He paid 3.14 to Acme Inc. for it. ", "Why?"},
		"speech":        {"Then \"Stop!\" he said. ", "\"Go.\" ", "(She went.) ", "“Well.” ", "Gone."},
		"footnotes":     {"It rains.[3] ", "It pours.[12][13] ", "It ends."},
		"ellipsis":      {"Well… perhaps not. ", "So... ", "No?! ", "Yes."},
		"small letters": {"The file a.txt is in /usr. it stays", "."},
		"ordinals":      {"Am 3. Mai kam z.B. Herr Dr. Müller. ", "Er blieb bis 1999. ", "Dann ging er."},
		"French":        {"M. Dupont habite av. Foch, n° 3 bis. ", "«Bonjour.» ", "Il part."},
		"Spanish":       {"El Sr. García llegó. ", "¿Cuándo? ", "¡Ayer!"},
		"Russian":       {"Он жил в г. Москве. ", "Потом уехал."},
		"Chinese":       {"今天下雨。", "我不出门！", "他说：“好。”", "你呢？"},
		"Japanese":      {"「はい。」と言った。", "値は３．５です。", "終わり"},
		"Hindi":         {"यह है। ", "वह है।"},
		"Arabic":        {"ما هذا؟ ", "هذا كتاب. ", "نعم"},
		"paragraphs": {
			"A heading\n\n", "A text\nover two lines.\n", "- first\n", "- second\n", "1. third\n", "# Next\n", "| a | b |\n",
			"• last",
		},
		"one":  {"no mark at all"},
		"none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "small letters" {
				want = []string{strings.Join(want, "")}
			}
			if diff := cmp.Diff(want, sentences(strings.Join(want, ""))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func sentences(text string) []string {
	var out []string
	for _, s := range passage.Sentences(text) {
		out = append(out, s)
	}
	return out
}

// A chunk has the sentences of its document, but for what its ends cut: whether a sentence begins at a place is decided
// by what stands near it.
func TestSentencesOfAPart(t *testing.T) {
	pieces := []string{
		"Dr. ", "Smith ", "e.g. ", "9", ".", "? ", "! ", "。", "“", "”", "\n", "\n\n", "- ", "[1] ", "word ", "Word ", "ß ",
		"世", " ", "U.S. ", "12. ",
	}
	const near = 48 // lookBack in front, and the longest piece behind
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 40, 80).Draw(t, "text"), "")
		from := runeAt(text, rapid.IntRange(0, len(text)-1).Draw(t, "from"))
		to := runeAt(text, rapid.IntRange(from, len(text)).Draw(t, "to"))
		inside := func(at int) bool { return at > from+near && at < to-near }
		if diff := cmp.Diff(starts(text, 0, inside), starts(text[from:to], from, inside)); diff != "" {
			t.Fatalf("%q\n%q\n%s", text, text[from:to], diff)
		}
	})
}

func starts(text string, offset int, keep func(int) bool) []int {
	var out []int
	for at := range passage.Sentences(text) {
		if keep(at + offset) {
			out = append(out, at+offset)
		}
	}
	return out
}

func runeAt(text string, at int) int {
	for at > 0 && at < len(text) && text[at]&0xC0 == 0x80 {
		at--
	}
	return at
}

func FuzzSentences(f *testing.F) {
	for _, seed := range []string{"", "A. B? C! d", "。」「。", "…", "\xff. \xff", "1. 2. 3.", "a.\n\n\n", "U.S.A. [1][2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := sentences(text)
		if joined := strings.Join(got, ""); joined != text {
			t.Fatalf("%q became %q", text, joined)
		}
		if slices.Contains(got, "") {
			t.Fatalf("an empty sentence in %q", got)
		}
		at := 0
		for start, s := range passage.Sentences(text) {
			if start != at {
				t.Fatalf("%q begins at %d, is said to begin at %d", s, at, start)
			}
			at += len(s)
		}
	})
}

// A run of marks is read once, however long it is.
func TestRunsOfMarks(t *testing.T) {
	for _, mark := range []string{".", "!", "…", "?!"} {
		run := strings.Repeat(mark, 1<<19)
		for text, want := range map[string]int{run + "x": 1, run + " x": 1, run + " X": 2, "Oh" + run + "\n\nx": 2} {
			n := 0
			for range passage.Sentences(text) {
				n++
			}
			if n != want {
				t.Errorf("%s, then %q: %d sentences, want %d", mark, text[len(text)-3:], n, want)
			}
		}
	}
}

// document is a text whose words occur once each, with the places of its words and sentences.
type document struct {
	text      string
	words     []int    // offsets, and the length of the text
	sentences []string // without white space around them
}

// drawDocument makes sentences of words that occur nowhere else; the marks are those of several scripts.
func drawDocument(t *rapid.T, name string) document {
	var d document
	var b strings.Builder
	word := 0
	for range rapid.IntRange(1, 25).Draw(t, "sentences") {
		from := b.Len()
		for i := range rapid.IntRange(1, 9).Draw(t, "words") {
			d.words = append(d.words, b.Len())
			if i == 0 {
				fmt.Fprintf(&b, "Begin%s%03dabcdefghijklmnopqrstuvwxyz ", name, word)
			} else {
				fmt.Fprintf(&b, "word%s%03dabcdefghijklmnopqrstuvwxyz ", name, word)
			}
			word++
		}
		text := strings.TrimSuffix(b.String(), " ") + rapid.SampledFrom([]string{". ", "! ", "?\" ", "。", ".\n\n", "।"}).Draw(t, "mark")
		b.Reset()
		b.WriteString(text)
		d.sentences = append(d.sentences, strings.TrimSpace(text[from:]))
	}
	d.text = b.String()
	d.words = append(d.words, len(d.text))
	return d
}

// chunks cuts a document into chunks of so many words, each beginning so many words before the end of the last one.
func (d document) chunks(name string, size, shared int, trimmed bool) []passage.Chunk {
	var out []passage.Chunk
	for at := 0; ; at += size - shared {
		to := min(at+size, len(d.words)-1)
		text := d.text[d.words[at]:d.words[to]]
		if trimmed {
			text = strings.TrimSpace(text)
		}
		out = append(out, passage.Chunk{Doc: name, Index: len(out), Start: d.words[at], Text: text})
		if to == len(d.words)-1 {
			return out
		}
	}
}

// drawRetrieved cuts a document and draws some of the chunks in some order, with more or less known of their places.
func drawRetrieved(t *rapid.T, d document, name string) []passage.Chunk {
	size := rapid.IntRange(8, 30).Draw(t, "size")
	// A word is more than MinOverlapUnplaced bytes. Large overlaps reach beyond the next chunk.
	all := d.chunks(name, size, rapid.IntRange(1, size*3/4).Draw(t, "shared"), rapid.Bool().Draw(t, "trimmed"))
	known := rapid.SampledFrom([]string{"index", "start", "both", "neither"}).Draw(t, "known")
	some := rapid.Permutation(all).Draw(t, "order")
	some = some[:rapid.IntRange(1, len(some)).Draw(t, "retrieved")]
	for i := range some {
		if known == "start" || known == "neither" {
			some[i].Index = -1
		}
		if known == "index" || known == "neither" {
			some[i].Start = -1
		}
	}
	return some
}

func drawChunks(t *rapid.T) (chunks []passage.Chunk, docs []document) {
	for i := range rapid.IntRange(1, 3).Draw(t, "documents") {
		name := string(rune('a' + i))
		d := drawDocument(t, name)
		docs = append(docs, d)
		chunks = append(chunks, drawRetrieved(t, d, name)...)
	}
	return rapid.Permutation(chunks).Draw(t, "ranks"), docs
}

var forms = []passage.Form{passage.Cut, passage.Join}

// What was retrieved can be put together again from what is sent, word for word, and nothing stands in it twice.
func TestEveryWordOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks, _ := drawChunks(t)
		want := map[string]int{}
		for _, c := range chunks {
			for w := range wordsOf(c.Text) {
				want[w] = 1
			}
		}
		for _, form := range forms {
			got := map[string]int{}
			for _, p := range passage.Make(chunks, passage.Options{Form: form}) {
				for w, n := range wordsOf(p.Text) {
					got[w] += n
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("form %d: %s", form, diff)
			}
		}
	})
}

func wordsOf(text string) map[string]int {
	n := map[string]int{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n.!?\"。।", r) }) {
		n[w]++
	}
	return n
}

// A sentence that some chunk holds whole is whole in one passage, and only there, even without torn ends.
func TestNoSentenceIsTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks, docs := drawChunks(t)
		var opts passage.Options
		opts.Form = rapid.SampledFrom(forms).Draw(t, "form")
		opts.Trim = rapid.Bool().Draw(t, "trim")
		passages := passage.Make(chunks, opts)
		for _, d := range docs {
			for _, s := range d.sentences {
				if !slices.ContainsFunc(chunks, func(c passage.Chunk) bool { return strings.Contains(c.Text, s) }) {
					continue
				}
				n := 0
				for _, p := range passages {
					n += strings.Count(p.Text, s)
				}
				if n != 1 {
					t.Fatalf("%d times: %q\nchunks %+v\npassages %+v", n, s, chunks, passages)
				}
			}
		}
	})
}

// Every chunk is in one passage, which stands where its best chunk stood.
func TestEveryChunkIsCited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks, _ := drawChunks(t)
		chunks = append(chunks, rapid.SampledFrom(chunks).Draw(t, "again"))
		form := rapid.SampledFrom(forms).Draw(t, "form")
		var cited []int
		best := -1
		for _, p := range passage.Make(chunks, passage.Options{Form: form}) {
			if first := slices.Min(p.Chunks); first <= best {
				t.Fatalf("passage of %v behind one of rank %d", p.Chunks, best)
			} else {
				best = first
			}
			cited = append(cited, p.Chunks...)
		}
		slices.Sort(cited)
		for i, c := range cited {
			if c != i || len(cited) != len(chunks) {
				t.Fatalf("%d chunks, cited %v", len(chunks), cited)
			}
		}
	})
}

// The text of a block must not depend on how the retriever ranked the chunks, or equal sets would make different prompts.
func TestTextsDoNotDependOnTheRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks, _ := drawChunks(t)
		opts := passage.Options{Form: rapid.SampledFrom(forms).Draw(t, "form"), Trim: rapid.Bool().Draw(t, "trim")}
		texts := func(chunks []passage.Chunk) []string {
			var out []string
			for _, p := range passage.Make(chunks, opts) {
				out = append(out, p.Text)
			}
			slices.Sort(out)
			return out
		}
		if diff := cmp.Diff(texts(chunks), texts(rapid.Permutation(chunks).Draw(t, "other ranks"))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A text without sentences, repeats, or sense is not lost either.
func FuzzMake(f *testing.F) {
	f.Add("One sentence here. Another one th", "Another one there. The end.", "a", 0, 1, uint8(0))
	f.Add(strings.Repeat("ab", 100), strings.Repeat("ab", 90), strings.Repeat("ba", 95), -1, -1, uint8(1))
	f.Add("\xff\xfe. \xf0", "。。。", "", 3, 3, uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c string, i, j int, opts uint8) {
		chunks := []passage.Chunk{
			{Doc: "d", Index: i, Start: -1, Text: a}, {Doc: "d", Index: j, Start: -1, Text: b}, {Doc: "d", Index: -1, Start: j, Text: c},
		}
		if opts&4 != 0 {
			chunks = chunks[:2]
		}
		form := forms[opts&1]
		var all strings.Builder
		cited := 0
		for _, p := range passage.Make(chunks, passage.Options{Form: form, Trim: opts&2 != 0}) {
			all.WriteString(p.Text)
			cited += len(p.Chunks)
		}
		if cited != len(chunks) {
			t.Fatalf("%d of %d chunks are cited", cited, len(chunks))
		}
		if opts&2 != 0 {
			return
		}
		for _, c := range chunks { // every character is still there
			for _, r := range c.Text {
				if r != ' ' && r > 0x20 && r < 0x7f && !strings.ContainsRune(all.String(), r) {
					t.Fatalf("%q is lost of %q", r, c.Text)
				}
			}
		}
	})
}
