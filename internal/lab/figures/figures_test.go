package figures

import (
	"math"
	"testing"
)

// The factors of Student's t are those of printed tables.
func TestInterval(t *testing.T) {
	for n, factor := range map[int]float64{2: 12.706, 3: 4.303, 4: 3.182, 6: 2.571, 11: 2.228, 21: 2.086, 31: 2.042} {
		values := make([]float64, n)
		values[0] = float64(n) // variance n
		if i := NewInterval(values); math.Abs(i.Half-factor) > 1e-9 || i.Mean != 1 || i.Min != 0 || i.Max != float64(n) {
			t.Errorf("%d values: %+v, want a half width of %g", n, i, factor)
		}
	}
	if i := NewInterval([]float64{3}); i != (Interval{3, 0, 3, 3}) || i.Show("%.1f") != "3.0" {
		t.Errorf("one value: %+v", i)
	}
	if NewInterval(nil) != (Interval{}) {
		t.Error("no values have an interval")
	}
}

func TestQuantile(t *testing.T) {
	all := []int{1, 2, 3, 4}
	if Quantile(all, 0) != 1 || Quantile(all, 0.5) != 3 || Quantile(all, 1) != 4 || Quantile([]int{}, 0.5) != 0 {
		t.Error("wrong quantiles")
	}
}

func TestStatusBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"Name:\tx\nVmHWM:\t   99 kB\nVmRSS:\t    12 kB\nVmData:\t7 kB\n": 12 << 10,
		"VmRSS:\t0 kB": 0, "VmRSS:\t12 MB\n": -1, "VmRSS:\t-1 kB\n": -1, "VmRSS: kB\n": -1, "Name:\tx\nState:\tZ (zombie)\n": -1, "": -1,
		"VmRSS:\t9223372036854775807 kB\n": -1,
	} {
		got, err := statusBytes([]byte(text), "VmRSS:")
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d (%v)", text, got, want, err)
		}
	}
}

// FuzzStatus: no status makes a size below 0, or a panic.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("VmRSS:\t  12 kB\n"))
	f.Add([]byte("VmRSS:\n"))
	f.Fuzz(func(t *testing.T, status []byte) {
		if n, err := statusBytes(status, "VmRSS:"); n < 0 || err != nil && n != 0 {
			t.Errorf("%d, %v", n, err)
		}
	})
}
