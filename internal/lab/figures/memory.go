package figures

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Memory returns the resident memory of a process, and the most that it had, in bytes. It is an error where the system has no
// /proc as Linux has it, or has no such process.
func Memory(pid int) (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	if now, err = statusBytes(status, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	peak, err = statusBytes(status, "VmHWM:")
	return now, peak, err
}

// statusBytes finds a size, which Linux gives in kB of 1024 bytes, in a process's status.
func statusBytes(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		value, ok = bytes.CutSuffix(bytes.TrimSpace(value), []byte(" kB"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		if !ok || err != nil || n < 0 || n > 1<<52 {
			return 0, fmt.Errorf("a process's status: %q", line)
		}
		return n << 10, nil
	}
	return 0, errors.New("no " + name + " in the process's status: it has ended")
}
