//go:build linux

package faulttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// logs is what a process has written; it may be read meanwhile.
type logs struct{ testkit.Log }

// until waits for a line and returns its submatches.
func (l *logs) until(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	re := regexp.MustCompile(pattern)
	if !eventually(t, "line "+pattern, func() bool { found = re.FindStringSubmatch(l.String()); return found != nil }) {
		t.Fatalf("the log:\n%s", l)
	}
	return found
}

// count counts the lines in which a pattern is found.
func (l *logs) count(pattern string) int {
	return len(regexp.MustCompile(pattern).FindAllString(l.String(), -1))
}

// trouble is what no log may hold, whatever happened.
var trouble = regexp.MustCompile(`(?m)^.*(panic|fatal error|DATA RACE|superfluous).*$`)

// process is a program that was started. It does not survive its test.
type process struct {
	cmd   *exec.Cmd
	log   *logs         // both of its outputs
	ended chan struct{} // closed when it has ended, and err is set
	err   error
}

// launch starts a program with variables on top of an environment that has none of ours.
func launch(t *testing.T, variables []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), name, args...), log: new(logs), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, variables...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		text := p.log.String()
		if bad := trouble.FindAllString(text, 10); bad != nil {
			t.Errorf("%s: in the log:\n%s", args, strings.Join(bad, "\n"))
		}
		if t.Failed() {
			t.Logf("%s: the end of the log:\n%s", args, text[max(0, len(text)-4000):])
		}
	})
	return p
}

// signal sends the process a signal.
func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process as the system's memory killer would, if it still runs, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // or it has ended already
	<-p.ended
}

// exit waits until the process has ended by itself and returns its status, -1 after a signal.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	if !eventually(t, "end of process", p.hasEnded) {
		t.FailNow()
	}
	if _, exited := errors.AsType[*exec.ExitError](p.err); p.err != nil && !exited {
		t.Fatal(p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// files counts the open file descriptors.
func (p *process) files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// peakMiB returns the most memory that the process has had.
func (p *process) peakMiB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmHWM in\n%s", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
