package tokens_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

func pieces(text string) []string {
	out := []string{}
	for _, p := range tokens.Pieces(text) {
		out = append(out, p)
	}
	return out
}

func TestPieces(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{}},
		{"only space", " \t\r\n\v\f\x1c\x1d\x1e\x1f\u0085\u00a0\u3000", []string{}},
		{"mixed", "Hello, worldwide_web 2", []string{"Hello", ",", "worldw", "ide", "_", "web", "2"}},
		{"exactly six", "abcdef", []string{"abcdef"}},
		{"seven", "abcdefg", []string{"abcdef", "g"}},
		{"six of two bytes each", "éééééééé", []string{"éééééé", "éé"}},
		{"combining mark is alone", "e\u0301a", []string{"e", "\u0301", "a"}},
		{"zero width space is visible", "a\u200bb", []string{"a", "\u200b", "b"}},
		{"stray bytes", "a\xff\xfeb\xc3", []string{"a", "\xff", "\xfe", "b", "\xc3"}},
		{"cut character", "ab\xe4\xbd", []string{"ab", "\xe4", "\xbd"}},
		{"encoded surrogate", "\xed\xa0\x80", []string{"\xed", "\xa0", "\x80"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, pieces(tt.text)); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
			if got := tokens.Count(tt.text); got != len(tt.want) {
				t.Errorf("Count = %d, want %d", got, len(tt.want))
			}
		})
	}
}

// TestGolden compares with what Python's re makes of awkward texts; testdata/golden.py wrote the file.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text   string
		Pieces []string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.Pieces, pieces(c.Text)); diff != "" {
			t.Errorf("pieces of %q (-python +go):\n%s", c.Text, diff)
		}
	}
}

// TestEveryCharacter asks Python for the class of every character that both sides know.
func TestEveryCharacter(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is needed to classify all characters; TestGolden covers a selection without it")
	}
	const script = `
import re, sys, unicodedata
word, space = re.compile(r"[^\W_]"), re.compile(r"\s")
out = []
for c in range(0x110000):
    ch = chr(c)
    if unicodedata.category(ch) in ("Cn", "Cs"): out.append("?")
    else: out.append("a" if word.match(ch) else " " if space.match(ch) else ".")
sys.stdout.write("".join(out))`
	classes, err := exec.CommandContext(t.Context(), python, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(classes) != unicode.MaxRune+1 {
		t.Fatalf("python3 classified %d characters", len(classes))
	}
	known := 0
	for r, class := range classes {
		if class == '?' {
			continue
		}
		known++
		ch := string(rune(r))
		want := []string{"x", ch, "x"}
		switch class {
		case 'a':
			want = []string{"x" + ch + "x"}
		case ' ':
			want = []string{"x", "x"}
		}
		if got := pieces("x" + ch + "x"); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("U+%04X: pieces %q, want %q", r, got, want)
		}
	}
	t.Logf("%d characters agree", known)
}

func TestCountDoesNotAllocate(t *testing.T) {
	text := strings.Repeat("Hello, wörldwide_web 世界 2\n", 20)
	if n := testing.AllocsPerRun(20, func() { tokens.Count(text) }); n != 0 {
		t.Errorf("Count allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		for range tokens.Pieces(text) {
		}
	}); n != 0 {
		t.Errorf("walking Pieces allocates %v times", n)
	}
}

func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "Hello, worldwide_web 2", "\x1c\x1f\u0085", "e\u0301\xff\xc3", "世界世界世界世界"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, at := 0, 0
		for start, p := range tokens.Pieces(text) {
			if start < at || text[start:start+len(p)] != p {
				t.Fatalf("piece %q at %d after %d is not where it says", p, start, at)
			}
			if c := utf8.RuneCountInString(p); c == 0 || c > tokens.MaxPiece {
				t.Fatalf("piece %q has %d characters", p, c)
			}
			if gap := text[at:start]; tokens.Count(gap) != 0 {
				t.Fatalf("text %q between tokens was lost", gap)
			}
			n, at = n+1, start+len(p)
		}
		if tokens.Count(text[at:]) != 0 || tokens.Count(text) != n {
			t.Fatalf("Count = %d, walked %d, rest %q", tokens.Count(text), n, text[at:])
		}
	})
}

func BenchmarkCount(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"ascii", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 200)},
		{"cjk", strings.Repeat("こんにちは、世界。", 300)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.text)))
			for b.Loop() {
				tokens.Count(bb.text)
			}
		})
	}
}
