package statement_test

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/memory/internal/statement"
)

// judged is a message and what is to be kept of it.
type judged struct{ text, want string }

// read returns the messages of a file, whose form messages.txt explains.
func read(t testing.TB, name string) (out []judged) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		sign, text, _ := strings.Cut(strings.ReplaceAll(lines.Text(), `\n`, "\n"), " ")
		switch sign {
		case "+":
			out = append(out, judged{text, text})
		case "-":
			out = append(out, judged{text, ""})
		case "~":
			whole, part, _ := strings.Cut(text, " => ")
			out = append(out, judged{whole, part})
		}
	}
	return out
}

func TestMessages(t *testing.T) {
	all := read(t, "messages.txt")
	if len(all) < 150 {
		t.Errorf("only %d messages", len(all))
	}
	for _, m := range all {
		if got := statement.Of(m.text); got != m.want {
			t.Errorf("%q: kept %q, want %q", m.text, got, m.want)
		}
	}
}

// A long text and a text with a structure are kept or dropped whole.
func TestWhole(t *testing.T) {
	long := strings.Repeat("I walked to the lake. Was it cold? ", 40)
	question := "What " + strings.Repeat("and what ", 200) + "is that?"
	code := "Hi!\n```\nif x == nil { return }\n```\nWhat does it do?"
	for text, want := range map[string]string{
		long: long, question: "", code: code, "  I keep bees. \n": "  I keep bees. \n", "": "",
		" \n ": "",
	} {
		if got := statement.Of(text); got != want {
			t.Errorf("%.60q: kept %.60q, want %.60q", text, got, want)
		}
	}
}

// What is kept consists of pieces of the text, in their order.
func FuzzOf(f *testing.F) {
	for _, m := range read(f, "messages.txt") {
		f.Add(m.text)
	}
	f.Add("a?\xff b. `c? d\n?")
	f.Fuzz(func(t *testing.T, text string) {
		got := statement.Of(text)
		if got == text {
			return
		}
		if again := statement.Of(text); again != got {
			t.Fatalf("%q, then %q", got, again)
		}
		rest := text
		for i := range len(got) {
			at := strings.IndexByte(rest, got[i])
			if at < 0 {
				t.Fatalf("%q is not made of pieces of %q in their order", got, text)
			}
			rest = rest[at+1:]
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// The share of messages judged right that the rules were not made for.
func TestUnseen(t *testing.T) {
	all := read(t, "unseen.txt")
	right := 0
	for _, m := range all {
		if got := statement.Of(m.text); got == m.want {
			right++
		} else {
			t.Logf("%q: kept %q, want %q", m.text, got, m.want)
		}
	}
	if len(all) < 100 || right*100 < 95*len(all) {
		t.Errorf("%d of %d are judged right, want 95 %%", right, len(all))
	}
}
