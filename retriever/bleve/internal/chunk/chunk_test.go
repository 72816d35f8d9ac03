package chunk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
)

// small limits make short inputs show every kind of cut.
var small = chunk.Limits{Target: 64, Max: 96}

func texts(src string, chunks []chunk.Chunk) []string {
	var out []string
	for _, c := range chunks {
		out = append(out, c.Text(src))
	}
	return out
}

func TestMarkdown(t *testing.T) {
	fence := "```go\n" + strings.Repeat("x := 1 // no sentence. ends. here.\n", 2) + "```"
	long := "```\n" + strings.Repeat("0123456789 0123456789 0123456789\n", 5) + "```"
	for _, tc := range []struct {
		name, src string
		want      []string
	}{
		{"empty", "", nil},
		{"white space only", " \n\t\n\n", nil},
		{"no heading", "One.\n\nTwo.\n", []string{"One.\n\nTwo."}},
		{
			"heading path", "# Guide\nIntro.\n## Install\nRun it.\n# Other\nEnd.\n",
			[]string{"Guide\nIntro.", "Guide > Install\nRun it.", "Other\nEnd."},
		},
		{"level skipped", "# A\n### C\nc\n## B\nb\n", []string{"A > C\nc", "A > B\nb"}},
		{"closing marks", "## Title ##\nx\n", []string{"Title\nx"}},
		{"hash in title", "# C#\nx\n", []string{"C#\nx"}},
		{"not headings", "#tag\n####### seven\n    # code\n", []string{"#tag\n####### seven\n    # code"}},
		{"underlined", "Title\n=====\ntext\n\nSub\n---\nmore\n", []string{"Title\ntext", "Title > Sub\nmore"}},
		{"rule is no underline", "- item\n---\ntext\n", []string{"- item\n---\ntext"}},
		{"front matter", "---\ntitle: x\n---\n# A\na\n", []string{"---\ntitle: x\n---", "A\na"}},
		{"heading alone at the end", "text\n\n# End\n", []string{"text", "End"}},
		{"heading carried by the next", "# A\n## B\n# C\nc\n", []string{"A > B", "C\nc"}},
		{"heading in code", "```\n# no heading\n```\ntext", []string{"```\n# no heading\n```\ntext"}},
		{
			"code is kept whole", "Intro to the code below this line.\n\n" + fence,
			[]string{"Intro to the code below this line.", fence},
		},
		{
			"code above the maximum", long, []string{
				"```\n0123456789 0123456789 0123456789",
				"0123456789 0123456789 0123456789",
				"0123456789 0123456789 0123456789",
				"0123456789 0123456789 0123456789",
				"0123456789 0123456789 0123456789\n```",
			},
		},
		{"open fence runs to the end", "a\n\n~~~\n# x\n```\n\nb\n\n", []string{"a\n\n~~~\n# x\n```\n\nb"}},
		{
			"packed up to the target", strings.Repeat("A paragraph of thirty-one byte.\n\n", 3),
			[]string{"A paragraph of thirty-one byte.\n\nA paragraph of thirty-one byte.", "A paragraph of thirty-one byte."},
		},
		{
			"cut between sentences", "The first sentence has some words, e.g. These. Dr. Who wrote the second one at 3.14 o'clock! Third.",
			[]string{"The first sentence has some words, e.g. These.", "Dr. Who wrote the second one at 3.14 o'clock! Third."},
		},
		{
			"cut between items", "- one two three four five six seven\n- eight nine ten eleven twelve thirteen\n1. fourteen fifteen sixteen",
			[]string{
				"- one two three four five six seven",
				"- eight nine ten eleven twelve thirteen",
				"1. fourteen fifteen sixteen",
			},
		},
		{
			"long sentence whole below the maximum", strings.Repeat("word ", 18) + "end. Next one.",
			[]string{strings.Repeat("word ", 18) + "end.", "Next one."},
		},
		{
			"no space to cut at", strings.Repeat("é", 60),
			[]string{strings.Repeat("é", 32), strings.Repeat("é", 28)},
		},
		{
			"script without spaces", strings.Repeat("日本語の文。", 6),
			[]string{strings.Repeat("日本語の文。", 3), strings.Repeat("日本語の文。", 3)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := texts(tc.src, chunk.Markdown(tc.src, small))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			checkMarkdown(t, tc.src, small)
		})
	}
}

func TestPlain(t *testing.T) {
	src := "# not a heading\n\nOne paragraph\nof two lines.\n\n```\n\nand a mark that is no fence, with 64 bytes in its last line\n"
	want := []string{
		"# not a heading\n\nOne paragraph\nof two lines.\n\n```",
		"and a mark that is no fence, with 64 bytes in its last line",
	}
	if diff := cmp.Diff(want, texts(src, chunk.Plain(src, small))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNormalize(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "a\nb\n", "a\nb\n"},
		{"windows line ends", "a\r\nb\r\n", "a\nb\n"},
		{"lone carriage returns", "a\rb\r\r\nc", "a\nb\n\nc"},
		{"byte order mark", "\xef\xbb\xbfa", "a"},
		{"invalid UTF-8", "a\xff\xfeb\xc3", "a\uFFFDb\uFFFD"},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := chunk.Normalize([]byte(tc.in))
			if err != nil || got != tc.want {
				t.Errorf("Normalize(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
			}
		})
	}
	if _, err := chunk.Normalize([]byte("a\x00b")); !errors.Is(err, chunk.ErrBinary) {
		t.Errorf("NUL byte: err = %v, want ErrBinary", err)
	}
}

// TestHugeLine: one line of a megabyte takes time in proportion to its length, and every chunk stays small.
func TestHugeLine(t *testing.T) {
	for _, unit := range []string{"x", "word ", "1. ", "Dr. ", "A. ", "`", "# ", "日本"} {
		src := strings.Repeat(unit, (1<<20)/len(unit))
		lim := chunk.Limits{Target: 800, Max: 1600}
		for _, c := range chunk.Markdown(src, lim) {
			if c.End-c.Start > lim.Max {
				t.Fatalf("unit %q: chunk of %d bytes, want at most %d", unit, c.End-c.Start, lim.Max)
			}
		}
	}
}
