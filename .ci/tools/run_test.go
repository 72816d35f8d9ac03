package tools_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stage lays a copy of .ci/run over steps, which are scripts by name, into a new folder and returns the folder.
func stage(t *testing.T, table string, steps map[string]string) string {
	t.Helper()
	script, err := os.ReadFile("../run")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, ".ci")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("run", string(script))
	write("steps", table)
	for name, text := range steps {
		write(name+".sh", "#!/usr/bin/env bash\n"+text)
	}
	return root
}

// run calls .ci/run of the folder, and returns its output and status.
func run(t *testing.T, root string, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "run"), args...)
	cmd.Env = append(append(os.Environ(), "CI="), env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

func TestTable(t *testing.T) {
	steps := map[string]string{"one": "echo first", "two": "echo second", "named": "echo third"}
	table := "# step cold warm paths\none 10 2 \\.go$\n\ntwo 20 1 .\nnamed - - \n"
	for _, x := range []struct {
		table, env string
		args       []string
		status     int
		want, not  string
	}{
		{table, "", nil, 0, "== 2/2 two", "third"},
		{table, "", []string{"named"}, 0, "third", "warning"},
		{strings.Replace(table, "20", "4792", 1), "", nil, 0, "warning: from empty caches the steps of .ci/steps take 2401 s, two at a time, more than 40 minutes", "third"},
		{table, "", []string{"--all"}, 2, "unknown flag --all", "first"},
		{table, "", []string{"--changed"}, 2, "--changed wants one commit", "first"},
		{table, "", []string{"--changed", "nothing"}, 2, "--changed nothing: no such commit", "first"},
		{table, "CI=true", []string{"--changed", "HEAD"}, 2, "not for CI", "first"},
	} {
		out, status := run(t, stage(t, x.table, steps), []string{x.env}, x.args...)
		if status != x.status || !strings.Contains(out, x.want) || strings.Contains(out, x.not) {
			t.Errorf("%q: status %d, want %d, with %q and without %q:\n%s", x.args, status, x.status, x.want, x.not, out)
		}
	}
}

// What has changed concerns the steps whose patterns say so, and the packages that import it.
func TestChanged(t *testing.T) {
	root := stage(t, "code 1 1 \\.go$\npages 1 1 ^docs/\nnamed - - .\n", map[string]string{
		"code": "echo \"packages: $RAGPILOT_PACKAGES\"", "pages": "echo pages", "named": "echo never",
	})
	tools, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if err := os.Symlink(tools, filepath.Join(root, ".ci", "tools")); err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("a/a.go", "package a\n")
	write("b/b.go", "package b\n\nimport _ \"m/a\"\n")
	write("c/c.go", "package c\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	out, status := run(t, root, nil, "--changed", "HEAD")
	if status != 0 || !strings.Contains(out, "nothing has changed since HEAD") {
		t.Errorf("status %d:\n%s", status, out)
	}
	write("a/new.go", "package a\n")
	out, status = run(t, root, nil, "--changed", "HEAD")
	if status != 0 || !strings.Contains(out, "== 1/1 code") || !strings.Contains(out, "packages: ./a ./b\n") {
		t.Errorf("status %d:\n%s", status, out)
	}
	write("docs/a.md", "text\n")
	git("add", ".")
	git("commit", "-qm", "second")
	out, status = run(t, root, nil, "--changed", "HEAD~1")
	if status != 0 || !strings.Contains(out, "== 2/2 pages") || strings.Contains(out, "never") {
		t.Errorf("status %d:\n%s", status, out)
	}
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
		{[]string{"whole"}, 0, []string{"-- whole: passed after", "not run: 0; passed in part: 0", "1 passed, 0 failed"}, "passed in part after"},
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
			out, status := run(t, stage(t, "", steps), nil, tc.steps...)
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
