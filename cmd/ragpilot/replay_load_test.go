package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// loadPoint is what the tests read of a JSON line.
type loadPoint struct {
	Policy, Arrivals, Against, Engine string
	Seeds, Requests                   int
	Simulated                         bool
	TTFT                              struct{ Mean, Min, Max float64 } `json:"ttft_p95_ms"`
	Output                            struct{ Mean float64 }           `json:"output_tokens_per_s"`
	Hit                               struct{ Mean float64 }           `json:"hit_ratio"`
	Progress                          []struct{ Mean float64 }         `json:"hit_ratio_progress"`
	Peak                              struct{ Mean float64 }           `json:"peak_in_flight"`
}

// jsonLines reads what a command printed with --json.
func jsonLines[T any](t *testing.T, out string) (lines []T) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var x T
		if err := dec.Decode(&x); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, x)
	}
	return lines
}

func madeUp() []string {
	const dir = "../../docs/load/made-up/"
	return []string{"replay", "--trace", dir + "trace.jsonl", "--blocks", dir + "blocks.jsonl"}
}

func TestReplayLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "plots")
	args := append(madeUp(), "--arrivals", "poisson:2,6", "--sessions", "60", "--policy", "retrieval,paper", "--seeds", "3", "--engine-model",
		"cpu-tiny", "--capacity", "30%", "--think", "1s")
	out, err := run(t, append(args, "--json", "--plot", dir)...)
	if err != nil {
		t.Fatal(err)
	}
	points := jsonLines[loadPoint](t, out)
	if len(points) != 4 {
		t.Fatalf("%d lines:\n%s", len(points), out)
	}
	for i, p := range points {
		want := []string{"poisson:2 retrieval", "poisson:2 paper", "poisson:6 retrieval", "poisson:6 paper"}[i]
		if p.Arrivals+" "+p.Policy != want || p.Against != "retrieval" || p.Seeds != 3 || p.Requests < 60 || !p.Simulated || p.TTFT.Mean <= 0 ||
			p.TTFT.Min >= p.TTFT.Max ||
			p.Output.Mean <= 0 || p.Hit.Mean <= 0 || len(p.Progress) != 10 || !strings.Contains(p.Engine, "cpu-tiny") {
			t.Errorf("want %s, got %+v", want, p)
		}
	}
	if points[1].Hit.Mean <= points[0].Hit.Mean || points[2].TTFT.Mean <= points[0].TTFT.Mean {
		t.Errorf("hits %f and %f, TTFT %f and %f", points[0].Hit.Mean, points[1].Hit.Mean, points[0].TTFT.Mean, points[2].TTFT.Mean)
	}
	for _, name := range []string{"ttft.svg", "output.svg", "hits.svg"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(data), "<svg") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := run(t, append(args, "--json")...); err != nil || again != out {
		t.Errorf("another run prints something else (%v)", err)
	}
	text, err := run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cpu-tiny", "virtual time", "±", "poisson:6", "paper", "tokens/s", "each tenth"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestReplayFindRate(t *testing.T) {
	testkit.NotUnderRace(t)
	args := append(madeUp(), "--arrivals", "poisson:1", "--find-rate", "--slo", "500ms", "--policy", "retrieval,paper", "--seeds", "2",
		"--engine-model", "cpu-tiny")
	out, err := run(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var s struct {
			Policy, Against string
			Rates           []float64
			Vs              struct{ Mean float64 } `json:"vs_first"`
			Slo             float64                `json:"slo_ms"`
		}
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if len(s.Rates) != 2 || s.Against != "retrieval" || s.Slo != 500 || s.Policy == "retrieval" && s.Vs.Mean != 1 ||
			s.Policy != "retrieval" && s.Vs.Mean <= 1 {
			t.Errorf("%+v", s)
		}
		// The rate found is within the bound, 3 % more is not.
		if s.Policy == "retrieval" {
			for factor, within := range map[float64]bool{1: true, 1.03: false} {
				var p loadPoint
				out, err := run(t,
					append(madeUp(), "--arrivals", fmt.Sprintf("poisson:%g", s.Rates[0]*factor), "--policy", "retrieval", "--engine-model", "cpu-tiny",
						"--json")...)
				if err != nil || json.Unmarshal([]byte(out), &p) != nil || (p.TTFT.Mean <= 500) != within {
					t.Errorf("at %g times the rate: %v, %f ms", factor, err, p.TTFT.Mean)
				}
			}
		}
	}
	if text, err := run(t, args...); err != nil || !strings.Contains(text, "500ms") || !strings.Contains(text, "of retrieval") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestReplayLoadRequests: the trace can be cut by requests too, and without --max-tokens answers are as long as recorded.
func TestReplayLoadRequests(t *testing.T) {
	for _, args := range [][]string{{"--requests", "25"}, {"--requests", "25", "--max-tokens", "3"}} {
		var p loadPoint
		out, err := run(t, append(append(madeUp(), "--arrivals", "closed:3", "--policy", "retrieval", "--json"), args...)...)
		if err != nil || json.Unmarshal([]byte(out), &p) != nil || p.Requests != 25 || p.Peak.Mean != 3 {
			t.Errorf("%v: %v, %+v", args, err, p)
		}
	}
}

// TestReplayLoadEngine: the same flags in real time, against a server that streams.
func TestReplayLoadEngine(t *testing.T) {
	var asked, ignoring atomic.Int64
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			MaxTokens int  `json:"max_tokens"`
			IgnoreEOS bool `json:"ignore_eos"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		asked.Add(1)
		if body.IgnoreEOS {
			ignoring.Add(1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w,
			`data: {"choices":[{"delta":{"content":"some"}}]}`+"\n\n"+`data: {"choices":[{"delta":{},"finish_reason":"length"}]}`+"\n\n"+
				fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":25}}}`,
					body.MaxTokens)+"\n\ndata: [DONE]\n\n")
	}))
	defer fake.Close()
	out, err := run(t,
		append(madeUp(), "--engine", fake.URL, "--model", "m", "--arrivals", "poisson:500", "--seeds", "2", "--policy", "retrieval,sorted",
			"--requests", "40", "--ignore-eos", "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); n++ {
		var p loadPoint
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Simulated || p.Requests != 40 || p.Hit.Mean != 0.25 || p.TTFT.Mean <= 0 || !strings.Contains(p.Engine, fake.URL) {
			t.Errorf("%+v", p)
		}
	}
	if n != 2 || asked.Load() != 160 || ignoring.Load() != 160 {
		t.Errorf("%d lines, %d requests, %d of them with ignore_eos", n, asked.Load(), ignoring.Load())
	}
}

func TestReplayLoadBadInput(t *testing.T) {
	tests := []struct {
		args []string
		want []string // all in the message
	}{
		{[]string{"--arrivals", "uniform:3"}, []string{"--arrivals", `"uniform:3"`, "poisson"}},
		{[]string{"--arrivals", "poisson:0"}, []string{"--arrivals", `"poisson:0"`, "RATE"}},
		{[]string{"--arrivals", "poisson:2,x"}, []string{"--arrivals", `"x"`}},
		{[]string{"--arrivals", "bursts:2"}, []string{"--arrivals", `"bursts:2"`, "SIZE"}},
		{[]string{"--arrivals", "closed:-1"}, []string{"--arrivals", `"closed:-1"`, "closed:N"}},
		{[]string{"--arrivals", "poisson:2", "--seeds", "0"}, []string{"--seeds", "0", "1"}},
		{[]string{"--arrivals", "poisson:2", "--sessions", "-3"}, []string{"--sessions", "-3"}},
		{[]string{"--arrivals", "poisson:2", "--requests", "-4"}, []string{"--requests", "-4"}},
		{[]string{"--arrivals", "poisson:2", "--batch-tokens", "-5"}, []string{"--batch-tokens", "-5"}},
		{[]string{"--arrivals", "poisson:2", "--max-running", "-6"}, []string{"--max-running", "-6"}},
		{[]string{"--arrivals", "poisson:2", "--think", "-1s"}, []string{"--think", "-1s"}},
		{[]string{"--arrivals", "poisson:2", "--slo", "0s"}, []string{"--slo", "0s"}},
		{[]string{"--arrivals", "poisson:2", "--slo", "soon"}, []string{"--slo", `"soon"`}},
		{[]string{"--arrivals", "poisson:2", "--max-tokens", "0"}, []string{"--max-tokens", "0"}},
		{[]string{"--arrivals", "poisson:2", "--engine-model", "a100"}, []string{"--engine-model", `"a100"`, "h100", "cpu-tiny"}},
		{[]string{"--arrivals", "poisson:2", "--engine-model", "missing.json"}, []string{"--engine-model", "missing.json"}},
		{[]string{"--arrivals", "poisson:2", "--capacity", "much"}, []string{"--capacity", `"much"`}},
		{[]string{"--arrivals", "poisson:2", "--policy", "zebra"}, []string{"--policy", `"zebra"`}},
		{[]string{"--arrivals", "poisson:2", "--offline"}, []string{"--offline", "--arrivals"}},
		{[]string{"--arrivals", "closed:2", "--find-rate"}, []string{"--find-rate", "closed:2"}},
		{[]string{"--arrivals", "poisson:2,4", "--find-rate"}, []string{"--find-rate", "poisson:2,4"}},
		{[]string{"--arrivals", "poisson:2", "--find-rate", "--plot", "dir"}, []string{"--plot", "dir", "--find-rate"}},
		{[]string{"--arrivals", "poisson:2", "--find-rate", "--slo", "1ns"}, []string{"--find-rate", "retrieval", "1ns"}},
		{[]string{"--arrivals", "poisson:2", "--plot", "replay_load_test.go"}, []string{"--plot", "load_test.go"}},
		{[]string{"--arrivals", "poisson:2", "--engine", "localhost:9"}, []string{"--engine", "localhost:9"}},
		{[]string{"--arrivals", "poisson:50", "--engine", refusedURL(t), "--model", "m"}, []string{"unreachable", "retrieval"}},
		{[]string{"--seeds", "3"}, []string{"--seeds", "3", "--arrivals"}},
		{[]string{"--find-rate"}, []string{"--find-rate", "--arrivals"}},
		{[]string{"--engine-model", "h100"}, []string{"--engine-model", "h100", "--arrivals"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			out, err := run(t, append(madeUp(), tt.args...)...)
			if err == nil || out != "" {
				t.Fatalf("%v; printed %q", err, out)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %s", err, w)
				}
			}
		})
	}
}
