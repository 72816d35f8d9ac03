//go:build unix

package queue

import (
	"errors"
	"syscall"
)

// alive reports whether a process of this machine exists, and whether that is known.
func alive(pid int) (exists, known bool) {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), true
}
