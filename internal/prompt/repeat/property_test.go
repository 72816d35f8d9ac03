package repeat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/prompt/repeat"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// number is a line number with the white space in front of it, which is what isSpace says.
var number = regexp.MustCompile(`(?m)^[\t\v\f\r \x1c-\x1f\x{85}\p{Z}]*\p{Nd}+\|`)

// wordsOf returns what a text says: the text, or the member of JSON that a tool's words are in.
func wordsOf(t failer, x repeat.Text) string {
	t.Helper()
	var object map[string]any
	if trimmed := strings.TrimFunc(x.Text, isSpace); x.Kind != repeat.ToolResult || !strings.HasPrefix(trimmed, "{") ||
		json.Unmarshal([]byte(trimmed), &object) != nil {
		return x.Text
	}
	for _, member := range []string{"content", "output", "result", "text", "stdout"} {
		if s, ok := object[member].(string); ok && utf8.RuneCountInString(s) >= 200 {
			return s
		}
	}
	return x.Text
}

// checkNothingLost fails unless every block of every text is still there, or a reference is in its place and an
// earlier text of another message says the block in full.
func checkNothingLost(t failer, in []repeat.Text, r repeat.Replaced, modulus int) {
	t.Helper()
	said := make([]string, len(in)) // what the texts say in the result
	replaced, saved := 0, 0
	for i, x := range in {
		was := wordsOf(t, x)
		saved += utf8.RuneCountInString(x.Text) - utf8.RuneCountInString(r.Texts[i])
		if r.Texts[i] == x.Text {
			said[i] = was
			continue
		}
		if x.Fixed || x.Kind == repeat.System {
			t.Fatalf("text %d must stay, became %q", i, r.Texts[i])
		}
		said[i] = r.Texts[i]
		if was != x.Text {
			var object map[string]any
			if json.Unmarshal([]byte(strings.TrimFunc(r.Texts[i], isSpace)), &object) != nil {
				t.Fatalf("text %d is no JSON any more: %q", i, r.Texts[i])
			}
			for _, v := range object { // the member may be short now
				if s, ok := v.(string); ok && strings.Contains(s, "— identical to earlier ") {
					said[i] = s
				}
			}
		}
		old, now := strings.Split(was, "\n"), strings.Split(said[i], "\n")
		for _, b := range repeat.Blocks(was, modulus) {
			block := strings.Join(old[:b.Lines], "\n")
			old = old[b.Lines:]
			if len(now) >= b.Lines && strings.Join(now[:b.Lines], "\n") == block {
				now = now[b.Lines:]
				continue
			}
			replaced++
			if len(now) == 0 || !strings.HasPrefix(now[0], `[... "`) || !strings.HasSuffix(now[0], " result, see above ...]") {
				t.Fatalf("text %d: block %q became %q", i, block, now)
			}
			now = now[1:]
			if !standsEarlier(in, said[:i], x, block) {
				t.Fatalf("text %d: block %q stands nowhere above, texts %q", i, block, said[:i])
			}
		}
		if len(now) > 0 {
			t.Fatalf("text %d: %q was put behind it", i, now)
		}
	}
	if replaced != r.BlocksDeduped || saved != r.CharsSaved || r.CharsBefore-r.CharsAfter != saved || r.BlocksTotal < replaced {
		t.Fatalf("%d blocks replaced, %d characters saved, but counts are %+v, %d, %d", replaced, saved, r.Counts, r.CharsBefore, r.CharsAfter)
	}
}

// trust is how far each kind may be followed, as documented.
var trust = map[repeat.Kind]int{repeat.System: 4, repeat.Message: 3, repeat.Assistant: 2, repeat.ToolResult: 1}

// standsEarlier reports whether an earlier text of another message, which is trusted as much or more, says the block,
// numbers of a listing left out.
func standsEarlier(in []repeat.Text, said []string, x repeat.Text, block string) bool {
	block = strings.TrimFunc(block, isSpace)
	numbers := len(number.FindAllString(block, -1)) == strings.Count(block, "\n")+1
	for j, s := range said {
		if in[j].Kind != repeat.System && in[j].Message == x.Message || trust[in[j].Kind] < trust[x.Kind] {
			continue
		}
		if strings.Contains(s, block) || numbers && strings.Contains(number.ReplaceAllString(s, ""), number.ReplaceAllString(block, "")) ||
			strings.Contains(number.ReplaceAllString(s, ""), block) {
			return true
		}
	}
	return false
}

func isSpace(r rune) bool { return strings.TrimSpace(string(r)) == "" || r >= 0x1c && r <= 0x1f }

// sources draws texts that share pieces.
func sources(t *rapid.T) []repeat.Text {
	a := file("a", 0, 30)
	pieces := []string{
		a, file("a", 30, 60), file("b", 0, 45), numbered(a, 1, 1), numbered(a, 90, 1), numbered(a, 1, 7), numbered(a, 2, 7),
		"tail", "", "  ", "é\"quoted\"\\n\tx", "\u00a0", "\x1c", strings.Repeat("y", 60), strings.Repeat("same\n", 50),
		"[... \"line 000 of a\" — identical to earlier read result, see above ...]",
	}
	n := rapid.IntRange(rapid.SampledFrom([]int{1, 6}).Draw(t, "least texts"), 10).Draw(t, "texts")
	out := make([]repeat.Text, n)
	kinds := []repeat.Kind{repeat.Message, repeat.ToolResult, repeat.System, repeat.Assistant}
	if rapid.Bool().Draw(t, "one kind") { // or most repeats would be trusted less than what repeats them
		kinds = []repeat.Kind{rapid.SampledFrom(kinds).Draw(t, "kinds")}
	}
	for i := range out {
		words := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), rapid.IntRange(0, 2).Draw(t, "least"), 5).Draw(t, "pieces"), "\n")
		x := repeat.Text{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Label: fmt.Sprintf("t%d", i),
			Message: rapid.IntRange(0, 4).Draw(t, "message"), Fixed: rapid.IntRange(0, 3).Draw(t, "fixed") == 3, Text: words,
		}
		if rapid.Bool().Draw(t, "json") {
			raw, err := json.Marshal(map[string]string{"path": "p", rapid.SampledFrom([]string{"content", "stdout", "other"}).Draw(t,
				"member"): words})
			if err != nil {
				t.Fatal(err)
			}
			x.Text = string(raw)
		}
		out[i] = x
	}
	return out
}

func TestNothingIsLost(t *testing.T) {
	replaced := 0
	rapid.Check(t, func(t *rapid.T) {
		in := sources(t)
		modulus := rapid.IntRange(-1, 20).Draw(t, "modulus")
		r := repeat.Replace(in, modulus)
		checkNothingLost(t, in, r, modulus)
		replaced += r.BlocksDeduped
	})
	t.Log(replaced, "blocks replaced")
	if replaced == 0 {
		t.Error("no block was replaced: the test shows nothing")
	}
}

func FuzzReplace(f *testing.F) {
	a := file("a", 0, 70)
	f.Add(a, a, false, 0)
	f.Add("x\n"+a, `{"content": `+quoted(f, a)+`}`, true, 13)
	f.Add(numbered(a, 1, 1), numbered(a, 9, 1)+"\n\x1c", false, 1)
	f.Add(numbered(a, 1, 1), strings.Replace(numbered(a, 9, 1), "    42|", " \x1e  42|", 1), false, 0)
	f.Add(`{"output":"`+strings.Repeat(`\u000a\ud800\u000a\\n\"`, 90)+`"}`, strings.Repeat("\n\ufffd\n\\n\"", 90), true, 2)
	f.Fuzz(func(t *testing.T, a, b string, system bool, modulus int) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // JSON bodies are not like that, and the check decodes JSON in another way
		}
		in := []repeat.Text{tool(1, a), tool(2, b), tool(3, a+"\n"+b), tool(4, b+"\n"+a)}
		if system {
			in[0].Kind = repeat.System
		}
		checkNothingLost(t, in, repeat.Replace(in, modulus), modulus)
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add("", 0)
	f.Add(file("a", 0, 90), 7)
	f.Add("  1|a\n  2|b\n\n\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, modulus int) {
		blocks := repeat.Blocks(text, modulus)
		lines := 0
		for i, b := range blocks {
			lines += b.Lines
			if b.Lines > 42 || len(blocks) > 1 && b.Lines < 3 || len(b.Hash) != 20 {
				t.Errorf("block %d of %d: %+v", i, len(blocks), b)
			}
		}
		if want := strings.Count(text, "\n") + 1; lines != want {
			t.Errorf("%d lines, want %d", lines, want)
		}
	})
}
