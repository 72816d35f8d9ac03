package demo_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/lab/demo"
)

func TestRight(t *testing.T) {
	for _, c := range []struct {
		answer, known string
		want          bool
	}{
		{"It is kept for Five  Days.", "five days", true},
		{"“Five-days”", "five days", true},
		{"Five working days.", "five days", false},
		{"Days: five", "five days", false},
		{"Twenty-five days.", "five days", true}, // words, not meaning
		{"It costs 15 euros.", "5 euros", false},
		{"40", "40 seats", false},
		{"", "five days", false},
		{"five days", "", false},
	} {
		if got := demo.Right(c.answer, c.known); got != c.want {
			t.Errorf("Right(%q, %q) = %v", c.answer, c.known, got)
		}
	}
}

// The facts that are asked for stand in the documents, each in one of them.
func TestLibraryAnswers(t *testing.T) {
	documents, script, err := demo.Library()
	if err != nil {
		t.Fatal(err)
	}
	if len(script) < 6 {
		t.Errorf("%d questions, want at least 6", len(script))
	}
	for _, q := range script {
		if q.Answer == "" {
			t.Errorf("%s has no known answer", q.ID())
		}
		if demo.Right(q.Question, q.Answer) {
			t.Errorf("%s gives its answer away", q.ID())
		}
		holding := 0
		names, err := fs.Glob(documents, "*.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(documents, name)
			if err != nil {
				t.Fatal(err)
			}
			if demo.Right(string(text), q.Answer) {
				holding++
			}
		}
		if holding != 1 {
			t.Errorf("%s: %q stands in %d documents, want 1", q.ID(), q.Answer, holding)
		}
	}
}

// says answers every request with the same text and keeps the requests.
type says struct {
	text string
	got  []engines.Request
}

func (*says) Name() string { return "parrot" }

func (s *says) Generate(_ context.Context, req engines.Request, _ func(string) error) (engines.Response, error) {
	s.got = append(s.got, req)
	return engines.Response{ID: req.ID, Text: s.text}, nil
}

func (*says) Subscribe(func(...contextpilot.Event)) func() { return func() {} }

// With known answers each answer is judged, and both sides' right ones are counted. An answer of one sentence is what the history has.
func TestKnownAnswers(t *testing.T) {
	c := config(t)
	c.Script = demo.Script{
		{User: "a", Turn: 1, Question: "What is a block?", Answer: "a text"},
		{User: "a", Turn: 2, Question: "What is a plan?", Answer: "an order"},
		{User: "a", Turn: 3, Question: "What is a policy?"},
		{User: "a", Turn: 4, Question: "What is a label?", Answer: "text"},
	}
	engine := &says{text: " It is a text! It is a text. And more"}
	c.NewEngine = func() (engines.Engine, error) { return engine, nil }
	c.System, c.OneSentence = "Be short.", true
	out := table(t, run(t, c))
	for _, want := range []string{
		"  known:          a text\n  without, right: It is a text!\n  with,    right: It is a text!\n",
		"  known:          an order\n  without, wrong: It is a text!\n  with,    wrong: It is a text!\n",
		"a-3: What is a policy?\n  without: It is a text!\n",
		"Without ragpilot, right answers: 2 of 3.\nWith ragpilot, right answers: 2 of 3.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if len(engine.got) != 8 {
		t.Fatalf("%d requests, want 8", len(engine.got))
	}
	for _, i := range []int{1, 5} {
		messages := engine.got[i].Messages
		if messages[0].Content != "Be short." || messages[2].Content != "It is a text!" {
			t.Errorf("system %q, history %q", messages[0].Content, messages[2].Content)
		}
		var stop []string
		if err := json.Unmarshal(engine.got[i].Extra["stop"], &stop); err != nil || !slices.Contains(stop, ". ") {
			t.Errorf("stop %q, error %v", stop, err)
		}
	}
}

// An answer that was stopped in front of its full stop gets one, and one without a sentence stays empty.
func TestOneSentence(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \n": "", "Five days": "Five days.", "Five days.": "Five days.", "1.5 euros. Or 2.": "1.5 euros.",
		"Five\nSix.": "Five.", "Is it? Yes.": "Is it?",
	} {
		c := config(t)
		c.Script, c.OneSentence = demo.Script{{User: "a", Turn: 1, Question: "What is a block?"}}, true
		c.NewEngine = func() (engines.Engine, error) { return &says{text: text}, nil }
		if got := run(t, c).With[0].Answer; got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}
