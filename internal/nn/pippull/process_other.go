//go:build !unix

package pippull

import (
	"os"
	"os/exec"
)

// alive reports whether a process of this number runs.
func alive(process int) bool {
	p, err := os.FindProcess(process)
	if err != nil {
		return false
	}
	p.Release()
	return true
}

// group: a command is killed when its context ends, what it starts may go on; it writes into a folder that is removed.
func group(*exec.Cmd) {}
