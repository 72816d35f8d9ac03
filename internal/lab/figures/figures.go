// Package figures has what the lab's reports share: quantiles, intervals, units, aligned tables, and the memory of processes.
package figures

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Quantile returns the value that the share q of the sorted values does not exceed; the zero value of none.
func Quantile[T any](sorted []T, q float64) (value T) {
	if len(sorted) > 0 {
		value = sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
	}
	return value
}

// Ratio returns a over b; 0 if b is 0.
func Ratio[T int | float64](a, b T) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Millis returns a time in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Micros returns a time in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Megabytes returns a size in units of 10^6 bytes.
func Megabytes(n int64) float64 { return float64(n) / 1e6 }

// Interval is what runs with different seeds measured: their mean, and the half width of the mean's 95 % confidence
// interval by Student's t distribution, 0 with one run.
type Interval struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_95"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// NewInterval summarises the values of the runs. It is zero without any.
func NewInterval(values []float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	out := Interval{Min: slices.Min(values), Max: slices.Max(values)}
	for _, v := range values {
		out.Mean += v / float64(n)
	}
	if n == 1 {
		return out
	}
	variance := 0.0
	for _, v := range values {
		variance += (v - out.Mean) * (v - out.Mean) / float64(n-1)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	out.Half = math.Round(1000*t) / 1000 * math.Sqrt(variance/float64(n)) // with the three decimals of printed tables of t
	return out
}

// Show writes the mean, and with several runs the half width behind it, each in a format such as "%.3f".
func (i Interval) Show(format string) string {
	if i.Half == 0 {
		return fmt.Sprintf(format, i.Mean)
	}
	return fmt.Sprintf(format+" ± "+format, i.Mean, i.Half)
}

// Table returns a writer that aligns columns to the right. Cells end with a tab; the caller flushes it.
func Table(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// LeftTable returns a writer that aligns columns to the left. Cells are separated by tabs; the caller flushes it.
func LeftTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// Row returns the cells as a line of a [Table].
func Row(cells ...string) string { return strings.Join(cells, "\t") + "\t" }

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
