package tools_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a copy of .ci/run over steps, which are scripts by name, and returns its output and status.
func run(t *testing.T, steps map[string]string, args ...string) (string, int) {
	t.Helper()
	script, err := os.ReadFile("../run")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), ".ci")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("run", string(script))
	for name, text := range steps {
		write(name+".sh", "#!/usr/bin/env bash\n"+text)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "run"), args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

func TestRun(t *testing.T) {
	steps := map[string]string{
		"whole":  "echo all of it",
		"absent": "echo 'not run: absent (no server)'; exit 77",
		"part":   "echo 'not run: browser (no chromium)' >&2; echo ok; echo 'not run go      Cloud'; echo 'not run: browser (no chromium)'",
		"quoted": "echo 'skip p TestA: a_test.go:7: not run: no b'",
		"broken": "echo 'not run: half of it (no half)'; exit 3",
		"signal": "kill -KILL $$",
	}
	for _, tc := range []struct {
		steps  []string
		status int
		want   []string // lines, the last one last
		not    string
	}{
		{[]string{"whole"}, 0, []string{"-- whole: passed after 0 s", "not run: 0; passed in part: 0", "1 passed, 0 failed"}, "passed in part after"},
		{[]string{"absent"}, 0, []string{"not run: absent (no server)", "not run: 1; passed in part: 0", "0 passed, 0 failed"}, ""},
		{
			[]string{"whole", "part"}, 0,
			[]string{"-- part: passed in part", "                       not run: browser (no chromium)\n                       not run: go ", "not run: 0; passed in part: 1", "1 passed, 0 failed"},
			"",
		},
		{[]string{"quoted"}, 0, []string{"-- quoted: passed after", "1 passed, 0 failed"}, ""},
		{[]string{"part", "broken"}, 1, []string{"-- broken: FAILED (3)", "passed in part: 1", "0 passed, 1 failed"}, ""},
		{[]string{"signal"}, 1, []string{"-- signal: FAILED (137)", "0 passed, 1 failed"}, ""},
		{[]string{"part", "none"}, 1, []string{"no such step: none", "-- none: FAILED (2)", "0 passed, 1 failed"}, "-- none: passed"},
	} {
		t.Run(strings.Join(tc.steps, " "), func(t *testing.T) {
			out, status := run(t, steps, tc.steps...)
			if status != tc.status {
				t.Errorf("status %d, want %d", status, tc.status)
			}
			for _, text := range tc.want {
				if !strings.Contains(out, text) {
					t.Errorf("it lacks %q", text)
				}
			}
			if last := tc.want[len(tc.want)-1]; !strings.HasSuffix(out, "\n"+last+"\n") {
				t.Errorf("the last line is not %q", last)
			}
			if tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("it has %q", tc.not)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}
