package eval_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, by)
	}
}

func singles(values ...float64) []eval.Group {
	groups := make([]eval.Group, len(values))
	for i, v := range values {
		groups[i] = eval.Group{Sum: v, Rows: 1}
	}
	return groups
}

var usual = eval.Bootstrap{Resamples: 10_000, Seed: 1, Confidence: 0.95}

// TestBootstrapNormal: for values of a normal distribution the interval is that of the normal theory.
func TestBootstrapNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 2000)
	sum, squares := 0.0, 0.0
	for i := range values {
		values[i] = 3 + r.NormFloat64()
		sum += values[i]
		squares += values[i] * values[i]
	}
	mean := sum / 2000
	se := math.Sqrt((squares/2000 - mean*mean) / 2000)
	percentile, bca := usual.Mean(singles(values...))
	for _, i := range []eval.Interval{percentile, bca} {
		within(t, "mean", i.Mean, mean, 1e-9)
		within(t, "low", i.Low, mean-1.96*se, 0.08*se)
		within(t, "high", i.High, mean+1.96*se, 0.08*se)
	}
}

// TestBootstrapExact: of two groups, a quarter of the resamples has the lower twice and a quarter the higher.
func TestBootstrapExact(t *testing.T) {
	half := eval.Bootstrap{Resamples: 10_000, Seed: 3, Confidence: 0.4}
	p, _ := half.Mean(singles(0, 1))
	if p.Low != 0.5 || p.High != 0.5 {
		t.Errorf("40 %% of three values: %+v", p)
	}
	if p, _ = usual.Mean(singles(0, 1)); p.Low != 0 || p.High != 1 || p.Mean != 0.5 {
		t.Errorf("95 %%: %+v", p)
	}
}

// TestBootstrapSkewed: BCa moves the percentiles of a skewed sample towards its tail. With z₀ and a both a sixth of the mean's
// skewness (Efron 1987), and quantiles z + a(z² − 1) of the resamples, it is known how far.
func TestBootstrapSkewed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	values := make([]float64, 100)
	mean := 0.0
	for i := range values {
		values[i] = r.ExpFloat64()
		mean += values[i] / 100
	}
	var squares, cubes float64
	for _, x := range values {
		squares += (x - mean) * (x - mean) / 100
		cubes += (x - mean) * (x - mean) * (x - mean) / 100
	}
	se, a := math.Sqrt(squares/100), cubes/math.Pow(squares, 1.5)/60
	many := eval.Bootstrap{Resamples: 100_000, Seed: 2, Confidence: 0.95}
	p, bca := many.Mean(singles(values...))
	at := func(z float64) float64 { return z + a*(z*z-1) }
	for z, got := range map[float64]float64{-1.96: (bca.Low - p.Low) / se, 1.96: (bca.High - p.High) / se} {
		within(t, "shift", got, at(a+(a+z)/(1-a*(a+z)))-at(z), 0.025)
	}
}

// TestBootstrapGroups: rows of one conversation are drawn together, so that repeating every row changes nothing.
func TestBootstrapGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []float64 // whose sums are exact
		for _, eighths := range rapid.SliceOfN(rapid.IntRange(-8, 8), 1, 40).Draw(t, "eighths") {
			values = append(values, float64(eighths)/8)
		}
		b := eval.Bootstrap{Resamples: 150, Seed: rapid.Uint64().Draw(t, "seed"), Confidence: 0.9}
		one := singles(values...)
		three := make([]eval.Group, len(one))
		for i, g := range one {
			three[i] = eval.Group{Sum: 3 * g.Sum, Rows: 3}
		}
		p, bca := b.Mean(one)
		q, bcb := b.Mean(three)
		for _, d := range []float64{p.Low - q.Low, p.High - q.High, p.Mean - q.Mean, bca.Low - bcb.Low, bca.High - bcb.High} {
			if !(math.Abs(d) < 1e-9) {
				t.Fatalf("%+v and %+v; %+v and %+v", p, q, bca, bcb)
			}
		}
		if !(p.Low <= p.Mean+1e-12 && p.Mean <= p.High+1e-12) && len(values) > 8 {
			t.Fatalf("%+v", p)
		}
		if again, _ := b.Mean(one); again != p {
			t.Fatalf("the same seed gave %+v and %+v", p, again)
		}
	})
	if p, bca := usual.Mean(nil); !math.IsNaN(p.Low) || !math.IsNaN(bca.High) {
		t.Errorf("no rows: %+v %+v", p, bca)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	groups := make([]eval.Group, 2000)
	for i := range groups {
		groups[i] = eval.Group{Sum: float64(r.IntN(3) - 1), Rows: 1}
	}
	b.ReportAllocs()
	for b.Loop() {
		usual.Mean(groups)
	}
}

// TestTango: at no difference the statistic is McNemar's; the limits solve it; without discordant rows they are z²/(n+z²).
func TestTango(t *testing.T) {
	within(t, "McNemar", eval.TangoScore(14, 5, 100, 0), 9/math.Sqrt(19), 1e-12)
	const z = 1.959963984540054
	none := eval.Tango(0, 0, 100, 0.95)
	within(t, "low of none", none.Low, -z*z/(100+z*z), 1e-9)
	within(t, "high of none", none.High, z*z/(100+z*z), 1e-9)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		gains := rapid.IntRange(0, n).Draw(t, "gains")
		losses := rapid.IntRange(0, n-gains).Draw(t, "losses")
		i, mirror := eval.Tango(gains, losses, n, 0.95), eval.Tango(losses, gains, n, 0.95)
		if !(i.Low <= i.Mean && i.Mean <= i.High) || math.Abs(i.Low+mirror.High) > 1e-9 {
			t.Fatalf("%d %d of %d: %+v, mirrored %+v", gains, losses, n, i, mirror)
		}
		if i.Low > -0.999 && math.Abs(eval.TangoScore(gains, losses, n, i.Low)-z) > 1e-3 {
			t.Fatalf("%d %d of %d: the statistic at %v is %v", gains, losses, n, i.Low, eval.TangoScore(gains, losses, n, i.Low))
		}
	})
}

// TestTangoCovers: the interval holds the true difference as often as it says.
func TestTangoCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	held := 0
	const runs = 4000
	for range runs {
		gains, losses := 0, 0
		for range 300 {
			switch x := r.Float64(); {
			case x < 0.05:
				gains++
			case x < 0.13:
				losses++
			}
		}
		if i := eval.Tango(gains, losses, 300, 0.95); i.Low <= -0.03 && -0.03 <= i.High {
			held++
		}
	}
	within(t, "coverage", float64(held)/runs, 0.95, 0.015)
}

// TestMeanPower: by hand, (1.95996 + 0.84162)² × 1.1² / 0.02² = 23,743 rows; and the power of as many is what was wanted.
func TestMeanPower(t *testing.T) {
	p := eval.MeanPower{SD: 1.1, Margin: 0.02, Alpha: 0.025, Power: 0.8}
	if n := p.Rows(); n != 23743 || math.Abs(p.Of(n)-0.8) > 1e-4 || math.Abs(p.Of(2000)-0.127) > 0.002 {
		t.Errorf("%d rows, power %v of these and %v of 2000", n, p.Of(n), p.Of(2000))
	}
}

// TestPower: figures worked out by hand, and the two directions agree.
func TestPower(t *testing.T) {
	for _, c := range []struct {
		p    eval.Power
		want int
	}{
		// (1.959964 + 0.841621)² = 7.848879
		{eval.Power{Discordance: 0.1, Margin: 0.02, Alpha: 0.025, Power: 0.8}, 1963},
		{eval.Power{Discordance: 0.05, Margin: 0.02, Alpha: 0.025, Power: 0.8}, 982},
		{eval.Power{Discordance: 0.1, Margin: 0.02, Alpha: 0.025, Power: 0.9}, 2627},
		{eval.Power{Discordance: 0.1, Difference: 0.01, Margin: 0.02, Alpha: 0.025, Power: 0.8}, 872},
	} {
		got, err := c.p.Rows()
		if err != nil || got != c.want {
			t.Errorf("%+v: %d rows, want %d (%v)", c.p, got, c.want, err)
		}
		if power, err := c.p.Of(got); err != nil || power < c.p.Power || power > c.p.Power+0.001 {
			t.Errorf("%+v: %d rows have power %v (%v)", c.p, got, power, err)
		}
	}
	for _, p := range []eval.Power{
		{Discordance: 0, Margin: 0.02, Alpha: 0.025, Power: 0.8},
		{Discordance: 1.1, Margin: 0.02, Alpha: 0.025, Power: 0.8},
		{Discordance: math.NaN(), Margin: 0.02, Alpha: 0.025, Power: 0.8},
		{Discordance: 0.1, Difference: 0.2, Margin: 0.02, Alpha: 0.025, Power: 0.8},
		{Discordance: 0.1, Difference: -0.02, Margin: 0.02, Alpha: 0.025, Power: 0.8},
		{Discordance: 0.1, Margin: 0, Alpha: 0.025, Power: 0.8},
		{Discordance: 0.1, Margin: 0.02, Alpha: 0.5, Power: 0.8},
		{Discordance: 0.1, Margin: 0.02, Alpha: 0.025, Power: 1},
	} {
		if n, err := p.Rows(); err == nil {
			t.Errorf("%+v: %d rows", p, n)
		}
	}
	if _, err := (eval.Power{Discordance: 0.1, Margin: 0.02, Alpha: 0.025}).Of(0); err == nil {
		t.Error("no rows have a power")
	}
}
