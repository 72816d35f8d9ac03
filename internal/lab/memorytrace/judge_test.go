package memorytrace_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/memorytrace"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// Over a whole trace of a hundred memories a question, at least 1.8 times fewer prompt tokens are computed than for the
// prompts as found, order notes included. The judge is not part of this project.
func TestJudged(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the judge")
	}
	testkit.NotUnderRace(t)
	folder, judge := testkit.Shared(t, "traces", "memory-locomo-k100"), testkit.Shared(t, "eval", "prefixcache.py")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	trc, blocks, err := trace.Load(folder+"/trace.jsonl", folder+"/blocks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	out := write(t, trc, blocks, memorytrace.Options{K: 100})
	computed := func(flags ...string) float64 {
		args := append([]string{
			judge, "eval", "--trace", filepath.Join(out, "trace.jsonl"), "--blocks", filepath.Join(out, "blocks.jsonl"),
			"--mode", "online", "--capacity", "unlimited", "--json",
		}, flags...)
		answer, err := exec.CommandContext(t.Context(), python, args...).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		var report struct {
			Runs []struct {
				Computed float64 `json:"computed_per_request"`
			} `json:"runs"`
		}
		if err := json.Unmarshal(answer, &report); err != nil || len(report.Runs) != 1 {
			t.Fatalf("%v: %s", err, answer)
		}
		return report.Runs[0].Computed
	}
	plain, planned := computed(), computed("--plan", filepath.Join(out, "plan.jsonl"))
	t.Logf("computed tokens per request: %.0f as found, %.0f as planned, %.2f times fewer", plain, planned, plain/planned)
	if plain < 1.8*planned {
		t.Error("want at least 1.8 times fewer")
	}
}

// write puts trace, blocks and plan into a folder.
func write(t *testing.T, trc []trace.Request, blocks *trace.Blocks, opts memorytrace.Options) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := memorytrace.Write(t.Context(), trc, blocks, opts, folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A folder that is not there is an error that says so.
func TestWriteFails(t *testing.T) {
	trc, blocks := small(t)
	err := memorytrace.Write(t.Context(), trc, blocks, memorytrace.Options{}, filepath.Join(t.TempDir(), "absent"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want that it does not exist", err)
	}
}
