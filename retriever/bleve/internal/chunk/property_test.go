package chunk_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/retriever/bleve/internal/chunk"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkMarkdown fails unless the chunks of src, put side by side, give src back: ranges in order, none
// overlapping, and between them only white space and headings that the next chunk carries.
func checkMarkdown(t failer, src string, lim chunk.Limits) {
	t.Helper()
	chunks := chunk.Markdown(src, lim)
	at := 0
	for i, c := range chunks {
		checkRange(t, src, c, at, i, lim)
		for gap := range strings.Lines(src[at:c.Start]) {
			checkHeading(t, gap, c)
		}
		at = c.End
	}
	if rest := strings.TrimSpace(src[at:]); rest != "" {
		t.Fatalf("lost at the end of %q: %q", src, rest)
	}
}

// checkPlain is the same for plain text, which has no headings.
func checkPlain(t failer, src string, lim chunk.Limits) {
	t.Helper()
	at := 0
	for i, c := range chunk.Plain(src, lim) {
		checkRange(t, src, c, at, i, lim)
		if gap := strings.TrimSpace(src[at:c.Start]); gap != "" || len(c.Path) > 0 {
			t.Fatalf("chunk %d of %q: lost %q, path %q", i, src, gap, c.Path)
		}
		at = c.End
	}
	if rest := strings.TrimSpace(src[at:]); rest != "" {
		t.Fatalf("lost at the end of %q: %q", src, rest)
	}
}

func checkRange(t failer, src string, c chunk.Chunk, at, i int, lim chunk.Limits) {
	t.Helper()
	if c.Start < at || c.End < c.Start {
		t.Fatalf("chunk %d of %q: range [%d,%d) after %d: text repeated or out of order", i, src, c.Start, c.End, at)
	}
	body, full := src[c.Start:c.End], c.Text(src)
	if len(body) > lim.Max {
		t.Fatalf("chunk %d of %q: %d bytes, want at most %d", i, src, len(body), lim.Max)
	}
	if strings.TrimSpace(full) == "" || !utf8.ValidString(full) {
		t.Fatalf("chunk %d of %q: text %q is empty or cut inside a character", i, src, full)
	}
}

// checkHeading fails if a line outside all chunks is neither blank nor a heading of the chunk that follows.
func checkHeading(t failer, line string, next chunk.Chunk) {
	t.Helper()
	text := strings.TrimSpace(line)
	if strings.Trim(text, "-=") == "" { // blank, or the line under a title
		return
	}
	for _, title := range next.Path {
		rest := strings.Replace(text, title, "", 1)
		if rest != text && strings.TrimFunc(rest, func(r rune) bool { return r == '#' || unicode.IsSpace(r) }) == "" || text == title {
			return
		}
	}
	t.Fatalf("line %q is in no chunk and in no path; next path %q", line, next.Path)
}

// markdown draws texts that are dense in everything the splitter looks at.
func markdown() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"\n", "\n\n", " ", "    ", "# ", "## Title", "###", "Title\n===\n", "x\n---\n", "```\n", "~~~~", "- item ", "1. ", "| a | b |",
		"Word. ", "e.g. ", "3.14", "Ends! ", "(quoted.) ", "日本。", "é", "\u2028", "\u0085", "wordwordwordwordword", "> q", "\t", "#", "`", "\v", "\uFFFD",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(piece, rapid.StringN(0, 8, 32)), 0, 60).Draw(t, "pieces"), "")
	})
}

func limits(t *rapid.T) chunk.Limits {
	target := rapid.IntRange(chunk.MinTarget, 200).Draw(t, "target")
	return chunk.Limits{Target: target, Max: rapid.IntRange(target, 400).Draw(t, "max")}
}

func TestNothingLostNothingRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, err := chunk.Normalize([]byte(markdown().Draw(t, "src")))
		if err != nil {
			t.Skip("binary")
		}
		lim := limits(t)
		checkMarkdown(t, src, lim)
		checkPlain(t, src, lim)
	})
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("# A\n\ntext. More text.\n\n```go\ncode\n```\n"), uint8(0), uint8(0))
	f.Add([]byte("\xef\xbb\xbfTitle\r\n=====\r\n- a\r\n- b\r\n"), uint8(3), uint8(9))
	f.Add([]byte("a\xff\xfeb\x00"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, target, more uint8) {
		src, err := chunk.Normalize(raw)
		if err != nil {
			return
		}
		lim := chunk.Limits{Target: chunk.MinTarget + int(target), Max: chunk.MinTarget + int(target) + int(more)}
		checkMarkdown(t, src, lim)
		checkPlain(t, src, lim)
	})
}
