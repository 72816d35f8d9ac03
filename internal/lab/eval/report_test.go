package eval_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// made is a report of the fake reader.
func made(t testing.TB) *eval.Report {
	t.Helper()
	run := newRun(t, 200, &fakeTeller{fakeReader{sight: 3}})
	head, err := run.Header()
	if err != nil {
		t.Fatal(err)
	}
	report, err := eval.Judge(head, do(t, run), eval.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestReportGolden: the table and the picture as people see them.
func TestReportGolden(t *testing.T) {
	r := made(t)
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"report.txt": text.Bytes(), "quality.svg": r.Plot()} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; -update rewrites it\n%s", path, got)
		}
	}
}

// TestPlot: the picture is well formed, escapes names and has a line for each arm with its verdict.
func TestPlot(t *testing.T) {
	r := made(t)
	r.Header.Scorer = `a "model" <b> & c`
	svg := r.Plot()
	texts := ""
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		if c, ok := token.(xml.CharData); ok {
			texts += string(c) + "\n"
		}
	}
	for _, want := range []string{r.Header.Scorer, "order\n", "default\n", "permute-2\n", ", inferior", "nats per token"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q in %s", want, texts)
		}
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
		t.Errorf("%s", svg)
	}
}

// TestReportJSON: it holds everything and can be read again.
func TestReportJSON(t *testing.T) {
	r := made(t)
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again eval.Report
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if twice, err := json.Marshal(&again); err != nil || !bytes.Equal(twice, data) {
		t.Errorf("%v\n%s\n%s", err, data, twice)
	}
}

// TestJudgeErrors: settings that make no sense.
func TestJudgeErrors(t *testing.T) {
	run := newRun(t, 3, &fakeReader{sight: 3})
	outcomes := do(t, run)
	head, err := run.Header()
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]eval.Settings{
		"margin 0":     {NLLMargin: 1, Resamples: 1},
		"nll margin 0": {Margin: 0.02, Resamples: 1},
		"resamples 0":  {Margin: 0.02, NLLMargin: 1},
	} {
		if _, err := eval.Judge(head, outcomes, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := eval.Judge(head, nil, eval.DefaultSettings()); err == nil {
		t.Error("a report of nothing")
	}
}

// TestChoice: the default if it is not inferior, else the arm that is not and computes least.
func TestChoice(t *testing.T) {
	arm := func(name string, v eval.Verdict, computed int) eval.ArmReport {
		r := eval.ArmReport{Verdict: v, Layouts: eval.Layouts{Computed: computed}}
		if name == "permute-1" {
			r.Arm = eval.Permutations(1)[0]
		} else {
			r.Arm = arms(t, name)[0]
		}
		return r
	}
	good, bad := eval.NotInferior, eval.Undecided
	for _, c := range []struct {
		name string
		arms []eval.ArmReport
		want profile.Profile
		ok   bool
	}{
		{
			"default",
			[]eval.ArmReport{arm("plain", "", 9), arm("pin-1", good, 1), arm("default", good, 2)},
			profile.Profile{Name: "default"},
			true,
		},
		{"safe", []eval.ArmReport{
			arm("plain", "", 9), arm("pin-1", good, 3), arm("pin-2", good, 4), arm("order", bad, 1),
			arm("default", bad, 2),
		}, profile.Profile{Name: "safe", Pin: 1}, true},
		{"none", []eval.ArmReport{arm("plain", "", 9), arm("default", eval.Inferior, 2), arm("permute-1", good, 1)}, profile.Profile{}, false},
	} {
		r := eval.Report{Arms: c.arms}
		if got, ok := r.Choice(); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
}
