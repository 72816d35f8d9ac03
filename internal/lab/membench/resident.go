package membench

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// resident returns the resident memory of the process and the most there was, in bytes, after what is not used was given back; 0
// where there is no /proc as Linux has it.
func resident() (now, peak int64) {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "VmRSS:":
			now = n << 10
		case fields[0] == "VmHWM:":
			peak = n << 10
		}
	}
	return now, peak
}

// resetPeak has the peak begin anew where Linux allows that.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak then includes the filling, and nothing else is wrong
}
