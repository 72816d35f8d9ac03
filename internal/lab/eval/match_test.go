package eval_test

import (
	"math"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// TestNormalise: what SQuAD's evaluation script, version 1.1, makes of the same texts.
func TestNormalise(t *testing.T) {
	for _, c := range [][2]string{
		{"The Eiffel Tower", "eiffel tower"},
		{"  a  an the ", ""},
		{"An apple, a day.", "apple day"},
		{"U.S.A.", "usa"},
		{"the-end", "theend"},
		{"a–b", "–b"},
		{"“The” quote", "“ ” quote"},
		{"THE Änderung", "änderung"},
		{"l'an 2000", "lan 2000"},
		{"x the\ty\nz", "x y z"},
		{"a_b", "ab"},
		{"4,821", "4821"},
		{"St. John's", "st johns"},
		{"an\u0301 x", "\u0301 x"},
		{"theatre", "theatre"},
		{"A", ""},
		{"été the été", "été été"},
		{"1.5 %", "15"},
		{"  the\u00a0cat ", "cat"},
		{"東京の the", "東京の"},
	} {
		if got := eval.Normalise(c[0]); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
}

// FuzzNormalise: what is normalised stays as it is, but for words that became articles; and nothing is a panic.
func FuzzNormalise(f *testing.F) {
	f.Add("")
	f.Add("The cat's \xff é́ a–b")
	f.Fuzz(func(t *testing.T, text string) {
		once := eval.Normalise(text)
		row := eval.Row{Answers: []string{text}}
		if m := eval.MatchText(once, &row); once != "" && eval.Normalise(once) == once && !m.Contains {
			t.Errorf("%q does not contain itself", text)
		}
	})
}

func TestMatchText(t *testing.T) {
	row := eval.Row{Answers: []string{"Oslo", "the city of Oslo"}, Lead: "The home port of the Swift Otter is"}
	for _, c := range []struct {
		text            string
		exact, contains bool
		f1              float64
	}{
		{"Oslo", true, true, 1},
		{" oslo.\n", true, true, 1},
		{"City of Oslo", true, true, 1},
		{"The home port of the Swift Otter is Oslo.", true, true, 1},
		{"Home port of Swift Otter is Oslo", true, true, 1},
		{"The home port of the Swift Otter is Oslo. The hull is red.", true, true, 1},
		{"Oslo\nRome", true, true, 1},
		{"Oslo Oslo", false, true, 2.0 / 3},
		{"The home port of the Swift Otter is Rome.", false, false, 0},
		{"The home port of the Swift Otter is in Oslo.", false, true, 2.0 / 3},
		{"Rome. Oslo", false, true, 0},
		{"The port is Oslo", false, true, 0.5},
		{"Oslofjord", false, false, 0},
		{"The home port of the Swift Otter is", false, false, 0},
		{"", false, false, 0},
	} {
		got := eval.MatchText(c.text, &row)
		if got.Exact != c.exact || got.Contains != c.contains || math.Abs(got.F1-c.f1) > 1e-9 {
			t.Errorf("%q: %+v, want %+v", c.text, got, c)
		}
	}
	stops := eval.Row{Answers: []string{"St. John's", "3.5 km"}, Lead: "The port is"}
	for text, want := range map[string]bool{
		"The port is St. John's. The hull is red.": true, "the port is st. john's.": true, "St. John's. It is red.": true,
		"3.5 km. No more.":                           true,
		"The port is St. John's harbour. It is red.": false, "3.5 kms. No more.": false, "The port is St. Johnson.": false,
	} {
		if got := eval.MatchText(text, &stops); got.Exact != want {
			t.Errorf("%q: exact %v, want %v", text, got.Exact, want)
		}
	}
	alone := eval.Row{Answers: []string{"New York City"}} // without a lead F1 is that of the first line
	if got := eval.MatchText("It is York. Then more", &alone); got.Exact || got.F1 != 2*(1.0/5)*(1.0/3)/(1.0/5+1.0/3) {
		t.Errorf("%+v", got)
	}
}
