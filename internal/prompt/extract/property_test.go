package extract_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/prompt/extract"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// words returns s without white space.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f {
			return -1
		}
		return r
	}, s)
}

// sameBytes reports whether two texts are made of the same bytes, in any order.
func sameBytes(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// check fails unless what was found in text can be written in every way without losing anything.
func check(t failer, text string, o extract.Options, f extract.Found, order []int) {
	t.Helper()
	n := len(f.Docs)
	if got := f.Permute(inOrder(f)); got != text {
		t.Fatalf("%q permuted by nothing: %q", text, got)
	}
	if got := f.Without(nil); got != text {
		t.Fatalf("%q without nothing: %q", text, got)
	}
	permuted := f.Permute(order)
	if !sameBytes(permuted, text) {
		t.Fatalf("%q permuted by %v has other bytes: %q", text, order, permuted)
	}
	want := make([]string, n)
	for i, d := range order {
		want[i] = f.Docs[d].Key
	}
	if f.Mode != extract.Numbered && n > 1 { // labels that moved do not count any more
		checkAgain(t, permuted, o, want)
	}
	if n > 1 {
		checkAgain(t, f.Rebuild(order), o, want)
	}
	if same := words(f.Rebuild(inOrder(f))) == words(text); f.Plain() && !same {
		t.Fatalf("%q is said to be plain, but becomes %q", text, f.Rebuild(inOrder(f)))
	}
	if n > 2 {
		drop := map[int]bool{order[0]: true}
		kept := slices.Delete(slices.Clone(keys(f)), order[0], order[0]+1)
		rest := f.Without(drop)
		if len(rest) > len(text) {
			t.Fatalf("%q without document %d grew: %q", text, order[0], rest)
		}
		if f.Mode != extract.Numbered {
			checkAgain(t, rest, o, kept)
		}
	}
	if !strings.Contains(f.Collapse("only words"), "only words") {
		t.Fatalf("%q collapsed: %q", text, f.Collapse("only words"))
	}
}

// checkAgain fails unless a text that was written has the documents want.
func checkAgain(t failer, text string, o extract.Options, want []string) {
	t.Helper()
	f, ok := extract.Find(text, o)
	if !ok || !slices.Equal(keys(f), want) {
		t.Fatalf("wrote %q\n got %q\nwant %q", text, keys(f), want)
	}
}

var modes = []extract.Mode{extract.Auto, extract.XMLTag, extract.Numbered, extract.JSONResults, extract.Separator, extract.MarkdownHeader}

func shuffled(seed uint64, n int) []int { return rand.New(rand.NewPCG(seed, 0)).Perm(n) }

// write puts documents into a text of one mode.
func write(mode extract.Mode, docs []string, gap string) string {
	var b strings.Builder
	for i, d := range docs {
		if i > 0 {
			b.WriteString(gap)
		}
		switch mode {
		case extract.XMLTag:
			b.WriteString("<doc>" + d + "</doc>")
		case extract.Numbered:
			fmt.Fprintf(&b, "[%d] %s\n", i+1, d)
		case extract.Separator:
			b.WriteString(strings.Repeat("\n---\n", min(i, 1)) + d)
		case extract.MarkdownHeader:
			fmt.Fprintf(&b, "# %d\n%s\n", i, d)
		}
	}
	if mode == extract.XMLTag {
		return "intro <docs>" + b.String() + "</docs> end"
	}
	return b.String()
}

// Documents that hold no marks are found, all of them and as they are.
func TestCleanDocumentsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]extract.Mode{extract.XMLTag, extract.Numbered, extract.Separator, extract.MarkdownHeader}).Draw(t, "mode")
		docs := rapid.SliceOfN(rapid.StringMatching(`[a-zé日.,!&"'{}() ]{0,8}[a-z](\n[a-z =-]{0,6}[a-z])?`), 2, 9).Draw(t, "docs")
		text := write(mode, docs, rapid.SampledFrom([]string{"", "\n", "  \n\n"}).Draw(t, "gap"))
		o := extract.Options{Mode: mode}
		f, ok := extract.Find(text, o)
		if !ok || len(f.Docs) != len(docs) || !f.Plain() {
			t.Fatalf("%q: found %v, %q, plain %v", text, ok, keys(f), f.Plain())
		}
		for i, d := range docs {
			if got := f.Docs[i].Text; !strings.HasSuffix(got, strings.TrimSpace(d)) {
				t.Fatalf("document %d is %q, want %q", i, got, d)
			}
		}
		check(t, text, o, f, rapid.Permutation(inOrder(f)).Draw(t, "order"))
	})
}

// marks is dense in everything that parts documents.
func marks() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"<doc>", "</doc>", "<docs>", "</docs>", "<doc", "</doc", ">", "<file>", "</file>", "<files>", "</files>", `<doc id="1">`, "<doc/>",
		"</doc >", "<", "/", `"`, "'",
		"\n[1] ", "\n[2] ", "\n[3] ", "[2]", "[3] ", "[", "]", "1", "a", "b c", " ", "\n", "\n---\n", "---", " ---", "\n# ", "#", "```\n",
		"~~~", "\u00a0", "\x1c", "é", "\xff",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(s []string) string { return strings.Join(s, "") })
}

// A document that holds marks may be taken for two, but never makes one of two, never leaves the list, and takes no
// other one out of it.
func TestDocumentsForgeNothing(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]extract.Mode{extract.XMLTag, extract.Numbered, extract.Separator}).Draw(t, "mode")
		docs := rapid.SliceOfN(marks(), 2, 4).Draw(t, "docs")
		for i := range docs {
			docs[i] = fmt.Sprintf("(%d)", i) + docs[i]
		}
		text := write(mode, docs, "")
		o := extract.Options{Mode: rapid.SampledFrom([]extract.Mode{mode, extract.Auto}).Draw(t, "asked")}
		f, ok := extract.Find(text, o)
		if !ok || f.Mode != mode {
			return // nothing was sure, or auto, which reads tags first
		}
		found++
		begins := 0
		for _, d := range f.Docs {
			n := strings.Count(d.Text, "(")
			if n > 1 {
				t.Fatalf("%q: one document of two: %q", text, d.Text)
			}
			begins += n
		}
		if begins != len(docs) {
			t.Fatalf("%q: %d of %d documents in %q", text, begins, len(docs), keys(f))
		}
		check(t, text, o, f, rapid.Permutation(inOrder(f)).Draw(t, "order"))
	})
	if found == 0 {
		t.Error("no text had documents: the test shows nothing")
	}
}

// Whatever is found in whatever text, nothing is lost by writing it again.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(marks(), 1, 4).Draw(t, "parts"), "")
		}).Draw(t, "text")
		o := extract.Options{
			Mode: rapid.SampledFrom(modes).Draw(t, "mode"), Tag: rapid.SampledFrom([]string{"", "doc", "file", "documents"}).Draw(t, "tag"),
			Separator: rapid.SampledFrom([]string{"", "a", "[2]"}).Draw(t, "separator"),
		}
		if f, ok := extract.Find(text, o); ok {
			check(t, text, o, f, rapid.Permutation(inOrder(f)).Draw(t, "order"))
		}
	})
}

func FuzzFind(f *testing.F) {
	for i, text := range []string{
		"p <documents>\n<document id=\"1\">A</document>\n<document> B </document></documents> s", "x <doc>A</doc> mid <doc>B</doc> y",
		"Intro [1] A [2] B [3] C", "S:\n[1] A [9]\n[2] B\n", `{"results": [{"url": "u1", "x": 1}, {"path": "p2"}, {"z": 3}], "k": "v"}`,
		"A\n---\nB\n---\nC", "i\n# H1\na\n## H2\n```\n# x\n```\n### H3\nc", "<items><item>A</item><item>B</item></items>",
		"<docs><doc>A</doc></docs><doc>x</doc></docs>", "<context><documents><document>A</document></documents></context>",
	} {
		f.Add(text, uint8(i), "item", "", uint64(i))
		f.Add(text, uint8(0), "", "***", uint64(i))
	}
	f.Fuzz(func(t *testing.T, text string, mode uint8, tag, separator string, seed uint64) {
		o := extract.Options{Mode: modes[int(mode)%len(modes)], Tag: tag, Separator: separator}
		found, ok := extract.Find(text, o)
		if !ok {
			return
		}
		check(t, text, o, found, shuffled(seed, len(found.Docs)))
	})
}

// Texts made to be slow to read: a reader that looks ahead from each mark would take hours, and Go's own limit for a test
// ends it.
func TestHostileTextsAreQuick(t *testing.T) {
	testkit.NotUnderRace(t)
	const n = 100_000
	for _, piece := range []string{
		"<document>", "</document>", "<document ", "<document a=\"", "<documents><document>", "<document></document>",
		"<documents></documents>", "<",
		"[1] ", "\n[1] ", "[1", "[", "[1]\t", `{"results":[`, `{"a":`, "[[", "\"", "\\\"", "# \n", "```\n", "---\n", "\n", " ", "\xff",
	} {
		for _, mode := range modes {
			extract.Find(strings.Repeat(piece, n), extract.Options{Mode: mode})
			extract.Find("{"+strings.Repeat(piece, n), extract.Options{Mode: mode})
		}
	}
	for _, text := range []string{
		"<docs>" + strings.Repeat("<doc>a</doc> ", n) + "</docs>", `{"results":[` + strings.Repeat(`{"url":"a"},`, n) + `1]}`,
		strings.Repeat("\nx\n---", n), strings.Repeat("# a\n", n),
	} {
		for _, mode := range modes {
			if f, ok := extract.Find(text, extract.Options{Mode: mode}); ok {
				f.Permute(backwards(f))
				f.Rebuild(backwards(f))
				f.Without(map[int]bool{1: true})
			}
		}
	}
}
