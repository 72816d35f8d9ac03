package load_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/load"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][]string{
		"poisson:2": {"poisson:2"}, "poisson:0.5,4": {"poisson:0.5", "poisson:4"},
		"bursts:2,8": {"bursts:2,8"}, "bursts:2,4,8": {"bursts:2,8", "bursts:4,8"}, "closed:1,16": {"closed:1", "closed:16"},
	} {
		got, err := load.Parse(text)
		var names []string
		for _, a := range got {
			names = append(names, a.String())
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{
		"", "poisson", "poisson:", "poisson:0", "poisson:-1", "poisson:x", "poisson:NaN", "poisson:Inf", "poisson:1,", "bursts:4", "bursts:4,0",
		"bursts:,4",
		"bursts:4,1.5", "closed:0", "closed:1.5", "closed:", "uniform:3", "Poisson:3",
	} {
		if got, err := load.Parse(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestPoissonRate(t *testing.T) {
	const n = 200_000
	for _, arrivals := range []string{"poisson:4", "bursts:4,8"} {
		a, err := load.Parse(arrivals)
		if err != nil {
			t.Fatal(err)
		}
		starts := a[0].Starts(n, 3)
		if rate := n / starts[n-1].Seconds(); math.Abs(rate-4) > 0.08 {
			t.Errorf("%s: rate %f", arrivals, rate)
		}
		size := max(a[0].Size, 1)
		mean, square := 0.0, 0.0
		for i := size; i < n; i += size {
			gap := (starts[i] - starts[i-1]).Seconds()
			mean += gap * float64(size) / n
			square += gap * gap * float64(size) / n
		}
		if spread := math.Sqrt(square-mean*mean) / mean; math.Abs(spread-1) > 0.03 {
			t.Errorf("%s: coefficient of variation %f, want 1", arrivals, spread)
		}
		double := a[0]
		double.Rate *= 2
		for i, s := range double.Starts(1000, 3) {
			if d := 2*s - starts[i]; d.Abs() > 2 {
				t.Fatalf("%s: start %d at %v, at twice the rate at %v", arrivals, i, starts[i], s)
			}
		}
		if size > 1 && (starts[0] != starts[size-1] || starts[0] == starts[size]) {
			t.Errorf("%s: not bursts: %v", arrivals, starts[:size+1])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"poisson:2", "bursts:1,2,3", "closed:4", "poisson:1e309", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := load.Parse(text)
		if err == nil && len(got) == 0 {
			t.Errorf("%q: nothing", text)
		}
		for _, a := range got {
			if !(a.Level() > 0) || math.IsInf(a.Level(), 0) {
				t.Errorf("%q: %+v", text, a)
			}
		}
	})
}
