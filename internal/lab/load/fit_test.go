package load_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/load"
)

// constants lists those of a cost.
func constants(c sim.StepCost) []float64 {
	return []float64{c.Step, c.Prefill, c.PrefillContext, c.Decode, c.DecodeContext, c.Arrival, c.ArrivalToken}
}

// made are samples that a known cost made.
func made(cost sim.StepCost) []load.Sample {
	var out []load.Sample
	for _, n := range []int{50, 200, 1000, 2500, 6000} {
		for _, cached := range []int{0, n / 2, n - 10} {
			w := sim.PrefillWork(n, cached, 2048)
			ms := float64(cost.Duration(w)+cost.Delay(n)) / 1e6
			for _, factor := range []float64{0.7, 1, 4} { // the median is the truth
				out = append(out, load.Sample{Case: "prefill", Requests: 1, Prompt: n, Cached: cached, Millis: ms * factor})
				out[len(out)-1].Case += strings.Repeat("+", n/50) + strings.Repeat("-", cached)
			}
		}
		for _, k := range []int{1, 4, 8} {
			w := sim.Work{Steps: 1, Decodes: k, DecodeContext: k * (n + 24)}
			out = append(out,
				load.Sample{Case: "decode" + strings.Repeat("+", n+k), Requests: k, Prompt: n, Output: 48, Millis: float64(cost.Duration(w)) / 1e6})
		}
	}
	return out
}

func TestFit(t *testing.T) {
	for _, want := range []sim.StepCost{
		{Step: 3.5e6, Prefill: 1e5, PrefillContext: 30, Decode: 4e5, DecodeContext: 120, Arrival: 1.6e7, ArrivalToken: 2800},
		{Step: 5e6, Prefill: 7e4, DecodeContext: 20}, // some are 0
	} {
		got, residuals, err := load.Fit(made(want), 2048)
		if err != nil {
			t.Fatal(err)
		}
		w := constants(want)
		for i, x := range constants(got) {
			if math.Abs(x-w[i]) > 1e-3*max(w[i], 10) {
				t.Errorf("constant %d: %g, want %g", i, x, w[i])
			}
		}
		for _, r := range residuals {
			if math.Abs(r.Relative()) > 1e-3 {
				t.Errorf("%+v", r)
			}
		}
	}
	for name, samples := range map[string][]load.Sample{
		"nothing":           nil,
		"no time":           {{Case: "a", Requests: 1, Prompt: 10}},
		"one case":          {{Case: "a", Requests: 1, Prompt: 10, Millis: 3}},
		"cached altogether": {{Case: "a", Requests: 1, Prompt: 10, Cached: 10, Millis: 3}},
	} {
		if c, _, err := load.Fit(samples, 2048); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestCPUTiny: the constants are those of the measurements that are kept.
func TestCPUTiny(t *testing.T) {
	samples, err := load.ReadSamples("../../../docs/load/cpu-tiny.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m := load.CPUTiny()
	got, residuals, err := load.Fit(samples, m.BatchTokens)
	if err != nil {
		t.Fatal(err)
	}
	want := constants(m.Cost)
	for i, x := range constants(got) {
		if math.Abs(x-want[i]) > 1e-3*want[i] {
			t.Errorf("constant %d: the measurements say %.3f, the model has %.3f", i, x, want[i])
		}
	}
	var errs []float64
	for _, r := range residuals {
		errs = append(errs, math.Abs(r.Relative()))
	}
	slices.Sort(errs)
	t.Logf("relative errors: median %.3f, largest %.3f", errs[len(errs)/2], errs[len(errs)-1])
	if errs[len(errs)/2] > 0.10 {
		t.Errorf("median error %.3f", errs[len(errs)/2])
	}
}

func TestReadModel(t *testing.T) {
	for _, want := range []load.EngineModel{load.H100(), load.CPUTiny()} {
		if got, err := load.ReadModel(want.Name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "mine.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write(`{"name":"mine","cost":{"step_ns":5e6,"prefill_ns":100},"batch_tokens":512}`)
	if got, err := load.ReadModel(path); err != nil || got.Name != "mine" || got.Cost.Step != 5e6 || got.BatchTokens != 512 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{
		"a100", filepath.Join(t.TempDir(), "missing.json"), write(`{"cost":{"step":5}}`), write(`{"cost":{"step_ns":-5}}`), write(`{}`),
		write(`nonsense`),
	} {
		if got, err := load.ReadModel(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestReadSamples(t *testing.T) {
	if _, err := load.ReadSamples(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte("{}\nbroken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load.ReadSamples(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}

// TestPlots: pictures are well-formed, hold every policy, and put nothing outside of themselves.
func TestPlots(t *testing.T) {
	var points []load.Point
	for _, arrivals := range []string{"poisson:2", "poisson:8"} {
		for _, policy := range []string{"retrieval", "context<pilot>"} {
			j := job(t, "retrieval", arrivals)
			run := simulate(t, j, 0)
			run.Policy = policy
			p := load.Summarise([]load.Run{run, run}, []load.Run{run, run})
			p.Engine = "simulator & co"
			points = append(points, p)
		}
	}
	plots := load.Plots(points)
	if len(plots) != 3 || load.Plots(nil) != nil {
		t.Fatalf("%d plots", len(plots))
	}
	for name, svg := range plots {
		text := string(svg)
		dec := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, want := range []string{"retrieval", "context&lt;pilot&gt;", "simulator &amp; co", "<title>"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
