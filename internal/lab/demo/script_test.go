package demo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ragpilot/ragpilot/internal/lab/demo"
)

// users returns the users of a script in order of their first question.
func users(s demo.Script) []string {
	var names []string
	for _, t := range s {
		if t.Turn == 1 {
			names = append(names, t.User)
		}
	}
	return names
}

func TestReadScript(t *testing.T) {
	const good = `{"user":"a","turn":1,"question":"one?"}` + "\n\n" + `{"user":"b","turn":1,"question":"two?","answer":"2 days"}` + "\n" +
		`{"user":"a","turn":2,"question":"three?"}`
	s, err := demo.ReadScript(strings.NewReader(good), "f")
	if err != nil || len(s) != 3 || !slices.Equal(users(s), []string{"a", "b"}) || s[2].ID() != "a-2" || s[0].Answer != "" ||
		s[1].Answer != "2 days" {
		t.Errorf("%v, %v", s, err)
	}
}

func TestReadScriptErrors(t *testing.T) {
	const first = `{"user":"a","turn":1,"question":"one?"}` + "\n"
	tests := []struct{ name, script, want string }{
		{"nothing", "\n\n", "f: no question"},
		{"broken JSON", first + `{"user":`, "f, line 2: broken JSON at byte 8"},
		{"no object", first + `["a"]`, "f, line 2: want a JSON object"},
		{"null", "null", `f, line 1: "user" is missing`},
		{"no user", `{"turn":1,"question":"x"}`, `f, line 1: "user" is missing`},
		{"no turn", first + `{"user":"a","question":"x"}`, `f, line 2: "turn" is missing`},
		{"no question", `{"user":"a","turn":1}`, `f, line 1: "question" is missing`},
		{"null question", `{"user":"a","turn":1,"question":null}`, `"question" is null, want a string`},
		{"empty question", `{"user":"a","turn":1,"question":" "}`, `"question" is empty`},
		{"empty user", `{"user":"","turn":1,"question":"x"}`, `"user" is empty`},
		{"user with a space", `{"user":"a b","turn":1,"question":"x"}`, `"user" is "a b"`},
		{"user with a control", `{"user":"a\u001bb","turn":1,"question":"x"}`, `"user" is "a\x1bb"`},
		{"long user", `{"user":"` + strings.Repeat("a", 33) + `","turn":1,"question":"x"}`, `"user" is longer`},
		{"turn is text", `{"user":"a","turn":"1","question":"x"}`, `"turn" is "1", want a whole number`},
		{"turn is a fraction", `{"user":"a","turn":1.5,"question":"x"}`, `"turn" is 1.5`},
		{"begins late", `{"user":"a","turn":2,"question":"x"}`, `f, line 1: "turn" is 2, want 1`},
		{"turn twice", first + first, `f, line 2: "turn" is 1, want 2`},
		{"member unknown", `{"user":"a","turn":1,"question":"x","reply":"y"}`, `"reply" is not a member`},
		{"answer is a number", `{"user":"a","turn":1,"question":"x","answer":5}`, `"answer" is 5, want a string`},
		{"answer without a word", `{"user":"a","turn":1,"question":"x","answer":"…"}`, `"answer" is "…", want a word in it`},
		{"long line", first + strings.Repeat("x", 70_000), "f, line 2: longer than"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s, err := demo.ReadScript(strings.NewReader(tc.script), "f")
			if s != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("script %v, error %v; want none and %q", s, err, tc.want)
			}
		})
	}
}

func folder(n int) fstest.MapFS {
	fsys := fstest.MapFS{"empty.txt": {}, ".git/config.txt": {Data: []byte("a\n\nb\n\nc\n\nd\n")}, "picture.png": {Data: []byte("x")}}
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, "# Pump model %d\n\n", i)
		for _, section := range []string{"Install", "Run", "Service", "Faults", "Spare `parts`"} {
			fmt.Fprintf(&b, "## %s\n\nHow to do it.\n\n```\n# no heading\n```\n\n", section)
		}
		fsys[fmt.Sprintf("pump%d.md", i)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return fsys
}

func TestDerive(t *testing.T) {
	s, err := demo.Derive(context.Background(), folder(6))
	if err != nil {
		t.Fatal(err)
	}
	again, err := demo.Derive(context.Background(), folder(6))
	if err != nil || !slices.Equal(s, again) {
		t.Errorf("two scripts of one folder differ (error %v)", err)
	}
	asked := map[string]bool{}
	for i, q := range s {
		asked[q.Question] = true
		if want := i/4 + 1; q.Turn != want {
			t.Errorf("question %d is turn %d, want %d", i, q.Turn, want)
		}
		if !strings.Contains(q.Question, "Pump model") {
			t.Errorf("question %q does not name its document", q.Question)
		}
	}
	if len(s) != 16 || len(asked) != 16 || len(users(s)) != 4 {
		t.Errorf("%d questions, %d different, of %v", len(s), len(asked), users(s))
	}
}

func TestDerivePlainText(t *testing.T) {
	fsys := fstest.MapFS{}
	for _, name := range []string{"a", "b", "c", "d"} {
		fsys["notes/"+name+"_log.txt"] = &fstest.MapFile{Data: []byte("First thing.\nmore\n\nSecond thing!\n\nThird " +
			"thing\n\n4\n\nFourth thing\n")}
	}
	s, err := demo.Derive(context.Background(), fsys)
	if err != nil || len(s) != 16 {
		t.Fatalf("%d questions, error %v", len(s), err)
	}
	if want := "What does a log say about First thing?"; s[0].Question != want {
		t.Errorf("first question %q, want %q", s[0].Question, want)
	}
}

// A small folder gives a whole script, too: users share documents and no question is asked twice.
func TestDeriveSmall(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"one line": {"a.txt": {Data: []byte("Only this.")}},
		"five pages": {
			"a.md": shortPage("A"), "b.md": shortPage("B"), "c.md": shortPage("C"), "d.md": shortPage("D"),
			"e.md": shortPage("E"),
		},
		"two, one empty": {"a.md": shortPage("A"), "b.md": {}},
	} {
		s, err := demo.Derive(context.Background(), fsys)
		if err != nil || len(s) != 16 {
			t.Errorf("%s: %d questions, error %v", name, len(s), err)
		}
		asked := map[string]bool{}
		for _, q := range s {
			if asked[q.Question] {
				t.Errorf("%s: asked twice: %s", name, q.Question)
			}
			asked[q.Question] = true
		}
	}
}

func shortPage(title string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("# " + title + "\n\nThe first paragraph.\n\nThe second one.\n")}
}

func TestDeriveNothing(t *testing.T) {
	_, err := demo.Derive(context.Background(), fstest.MapFS{"a.txt": {}, "b.bin": {Data: []byte("text")}})
	if !errors.Is(err, demo.ErrNoDocuments) || !strings.Contains(err.Error(), "1 files") {
		t.Errorf("error %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := demo.Derive(ended, folder(4)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func FuzzReadScript(f *testing.F) {
	f.Add(`{"user":"a","turn":1,"question":"one?"}` + "\n" + `{"user":"a","turn":2,"question":"two?"}`)
	f.Add(`{"user":"a","turn":1e0,"question":"\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := demo.ReadScript(strings.NewReader(text), "f")
		if (err == nil) == (len(s) == 0) {
			t.Errorf("%d questions, error %v", len(s), err)
		}
		last := map[string]int{}
		for _, q := range s {
			if last[q.User]++; q.Turn != last[q.User] || strings.TrimSpace(q.Question) == "" {
				t.Errorf("%+v was accepted", q)
			}
		}
	})
}
