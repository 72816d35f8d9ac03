package passage_test

import (
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
