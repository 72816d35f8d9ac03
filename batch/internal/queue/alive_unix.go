//go:build unix

package queue

import (
	"errors"
	"syscall"
)

// alive reports whether a process of this machine exists.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
