package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// TestDoctorLocal: the figure of a model in this process, the same each time.
func TestDoctorLocal(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "doctor", "--engine", "local", "--model", model)
	if err != nil || !strings.Contains(out, blockReuse) || !strings.Contains(out, "4 made-up prompts") ||
		!strings.Contains(out, "random weights have up to 65") {
		t.Errorf("%v\n%s", err, out)
	}
	if again, _ := run(t, "doctor", "--engine", "local", "--model", model); again != out {
		t.Errorf("another report:\n%s", again)
	}
	out, err = run(t, "doctor", "--engine", "local", "--model", model, "--no-probe", "--json")
	var report doctor.Report
	if jsonErr := json.Unmarshal([]byte(out), &report); err != nil || jsonErr != nil || report.Kind != doctor.Local ||
		report.Sent.Prompts != 0 {
		t.Errorf("%v, %v: %s", err, jsonErr, out)
	}
	out, err = run(t, "doctor", "--engine", "local", "--model", write(t, "no.gguf", "nothing"))
	if err == nil || exitStatus(err) != 1 || !strings.Contains(out, "problem") {
		t.Errorf("no model: %v\n%s", err, out)
	}
	if _, err := run(t, "doctor", "--engine", "local", "--model", model, "--serve", "http://127.0.0.1:1"); err == nil || exitStatus(err) != 2 {
		t.Errorf("a flag about servers: %v", err)
	}
}

func TestJudgeOverlap(t *testing.T) {
	for _, c := range []struct {
		overlaps []float64
		result   doctor.Result
		want     string
	}{
		{[]float64{0.75, 0.77}, doctor.OK, "76 % (75 to 77 in 2 generated rows; random weights have up to 65): the model suits"},
		{[]float64{0.7, 0.79}, doctor.Warning, "it is not clear"},
		{[]float64{0.65}, doctor.Warning, "it is not clear"},
		{[]float64{0.64}, doctor.Warning, "does not suit"},
	} {
		if got := judgeOverlap(c.overlaps); got.Result != c.result || !strings.Contains(got.Saw, c.want) {
			t.Errorf("%v: %+v", c.overlaps, got)
		}
	}
}
