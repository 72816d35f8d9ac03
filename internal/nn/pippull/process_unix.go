//go:build unix

package pippull

import (
	"errors"
	"os/exec"
	"syscall"
)

// alive reports whether a process of this number runs.
func alive(process int) bool {
	err := syscall.Kill(process, 0)
	return process > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

// group makes a command and all it starts end together when its context does.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
