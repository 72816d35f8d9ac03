package pippull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Package is one version of a Python package.
type Package struct {
	Name, Version string
	// Size is the length of its wheel in bytes, for the progress of [Package.Pull].
	Size int64
	// Program is the command that fetches, with its first arguments. Empty: the first that is there and works of pip,
	// pip3, python3 -m pip, python -m pip and uv tool run pip.
	Program []string
}

// Pull fetches the package into a temporary folder beside path, has unpack write what is wanted of the wheel to a new path there, and
// moves that to path. The temporary folder's name begins with prefix, and is gone at the end; [RemoveStale] removes those of earlier pulls
// that were killed. progress is as in Fetch, and reaches Size when all is there, and only then.
func (p Package) Pull(ctx context.Context, path, prefix string, progress func(bytes int64), unpack func(wheel, to string) error) error {
	temp, err := NewTemp(filepath.Dir(path), prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	// pip may write the package twice, and moves it at the end.
	wheel, err := p.Fetch(ctx, temp, func(bytes int64) { progress(min(bytes, max(p.Size-1, 0))) })
	made := filepath.Join(temp, "model")
	if err == nil {
		progress(p.Size)
		err = unpack(wheel, made)
	}
	if err != nil {
		return OrCause(ctx, err)
	}
	return os.Rename(made, path)
}

// Fetch downloads the package into temp, an empty folder of this call's, and returns the path of the one wheel that came.
// A package that has none is not taken: to build one would run its own program.
//
// progress is called at the beginning and now and then, by the goroutine that called Fetch, with how many bytes lie in temp:
// they may stand still, jump and shrink. nil: it is not called. The error wraps one of the package's, or is the context's with
// its cause.
func (p Package) Fetch(ctx context.Context, temp string, progress func(bytes int64)) (wheel string, err error) {
	if progress == nil {
		progress = func(int64) {}
	}
	program, err := p.program(ctx)
	if err != nil {
		return "", err
	}
	into, scratch := filepath.Join(temp, "package"), filepath.Join(temp, "scratch")
	for _, dir := range []string{into, scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
	}
	cmd := command(ctx, with(program, p.arguments(into)...))
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch, "TEMP="+scratch, "TMP="+scratch)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	name := strings.Join(program, " ")
	switch err := watch(cmd, temp, progress); {
	case ctx.Err() != nil:
		return "", OrCause(ctx, err)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w: %w", ErrNoTool, err)
	case err != nil:
		return "", failure(name, err, said.String())
	}
	wheels, err := filepath.Glob(filepath.Join(into, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("%w: %s left %d wheels", ErrDownload, name, len(wheels))
	}
	return wheels[0], nil
}

func (p Package) program(ctx context.Context) ([]string, error) {
	if len(p.Program) > 0 {
		return p.Program, nil
	}
	return works(ctx, programs())
}

func (p Package) arguments(into string) []string {
	return []string{
		"download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar", "off",
		"--retries", "2", "--dest", into, p.Name + "==" + p.Version,
	}
}

// watch runs a command and reports how much it has written into a folder.
func watch(cmd *exec.Cmd, dir string, progress func(bytes int64)) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	progress(0)
	for {
		select {
		case err := <-done: // which comes soon when the context ends
			return err
		case <-ticker.C:
			progress(written(dir))
		}
	}
}

// written returns the length of all files in a folder. Files come and go meanwhile.
func written(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// programs are what fetches Python packages, the most usual first, each as far as "download".
func programs() [][]string {
	return [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"uv", "tool", "run", "pip"}}
}

// works returns the first of some programs that is there and answers.
func works(ctx context.Context, programs [][]string) ([]string, error) {
	names := make([]string, 0, len(programs))
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err == nil {
			cmd := command(ctx, with(p, "--version"))
			if cmd.Run() == nil {
				return p, nil
			}
			if ctx.Err() != nil {
				return nil, OrCause(ctx, nil)
			}
		}
		names = append(names, strings.Join(p, " "))
	}
	return nil, fmt.Errorf("%w (looked for %s)", ErrNoTool, strings.Join(names, ", "))
}

// with returns a program with more arguments, in a slice of its own.
func with(program []string, args ...string) []string { return slices.Concat(program, args) }

// closing bounds how long a program that has ended, or was killed, is waited for: what it started may hold its output.
const closing = 5 * time.Second

// command is a program that ends with the context, and all it starts with it.
func command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	group(cmd)
	cmd.WaitDelay = closing
	return cmd
}
