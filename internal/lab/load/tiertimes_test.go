package load_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/model"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/jsonlines"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// tierRecording is what docs/load/tier-times.sh measured.
const tierRecording = "../../../docs/load/tier-times.jsonl"

// isRequest reports whether a sample is one of the 60 requests. All others are for the simulator's constants.
func (s tierSample) isRequest() bool { return strings.HasPrefix(s.Case, "request") }

// tierCalibration are the requests that the constants are found with, by an engine of their own: documents of four lengths that are
// computed, read from memory, and loaded, with a short question and with a long one; and answers of 16 tokens.
func tierCalibration(t *testing.T, e *tierEngine) (steps []func() tierSample) {
	part := 0
	next := func(tokens int) [2]int { part++; return [2]int{part, tokens} }
	ask := func(name string, output int, parts ...[2]int) {
		steps = append(steps, func() tierSample {
			if strings.HasPrefix(name, "files") {
				e.Clear()
			}
			s := e.ask(t, name, parts, output)
			s.Parts = nil
			return s
		})
	}
	for _, n := range []int{150, 400, 800, 1200} {
		document := next(n)
		ask(fmt.Sprint("computed-", n), 1, document, next(25))
		ask(fmt.Sprint("memory-", n), 1, document, next(25))
		ask(fmt.Sprint("files-", n), 1, document, next(25))
		ask(fmt.Sprint("memory-half-", n), 1, document, next(n/2))
		ask(fmt.Sprint("files-half-", n), 1, document, next(n/2))
	}
	ask("decode-400", 16, next(400))
	ask("decode-1200", 16, next(1200))
	return steps
}

// TestRecordTiers measures what TestRecordedTiers judges. It takes minutes, and is run by docs/load/tier-times.sh only.
func TestRecordTiers(t *testing.T) {
	out := os.Getenv("RAGPILOT_TIERS_RECORD")
	if out == "" {
		t.Skip("measures times: RAGPILOT_TIERS_RECORD is not set")
	}
	file, ok := model.Find("smollm2")
	if !ok {
		t.Fatal("needs SmolLM2: run ragpilot model pull smollm2")
	}
	setup := tierSetup{Model: "SmolLM2-135M-Instruct, Q4_1", Threads: 1, Memory: 170 * pageTokens, Step: local.DefaultStep, TokenBytes: 46080}
	busy := func() string {
		data, _ := os.ReadFile("/proc/loadavg")
		return strings.Join(strings.Fields(string(data))[:3], " ")
	}
	setup.Busy = busy()
	var all []tierSample
	const rounds = 3
	for round := range rounds {
		config := local.Config{Model: file, Threads: setup.Threads}
		e, other := openTiers(t, config, setup.Memory, setup.TokenBytes), openTiers(t, config, 1<<14, setup.TokenBytes)
		setup.Engine = e.Name()
		calibration := tierCalibration(t, other)
		for i, parts := range tierRequests(7, 150) { // in turn, so that both have as much of what else the machine does
			all = append(all, e.ask(t, fmt.Sprintf("request-%02d", i), parts, 1))
			all[len(all)-1].Round = round
			if i%2 == 0 && len(calibration) > 0 {
				all = append(all, calibration[0]())
				calibration = calibration[1:]
				all[len(all)-1].Round = round
			}
		}
		if len(calibration) > 0 {
			t.Fatalf("%d cases were not measured", len(calibration))
		}
		e.Close()
		other.Close()
		t.Logf("round %d of %d, processes that ran: %s", round+1, rounds, busy())
		setup.Busy += ", " + busy()
		var b bytes.Buffer
		for _, err := range []error{jsonlines.Write(&b, []tierSetup{setup}), jsonlines.Write(&b, all), os.WriteFile(out, b.Bytes(), 0o644)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fitTiers finds the constants of the simulator: those of steps by what read no files, then how long a page takes to load.
func fitTiers(t *testing.T, setup tierSetup, samples []tierSample) (sim.StepCost, sim.Copy) {
	t.Helper()
	var steps []load.Sample
	for _, s := range samples {
		if s.Loaded == 0 {
			steps = append(steps, s.Sample)
		}
	}
	cost, residuals, err := load.Fit(steps, setup.Step)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range residuals {
		t.Logf("%-16s %7.1f ms, fitted %7.1f", r.Case, r.Measured, r.Fitted)
	}
	var rates []float64
	for _, s := range samples {
		if s.Loaded > 0 && s.Prompt-s.Cached < 64 { // the less it computes, the more its time says of loading
			computing := cost.Duration(sim.PrefillWork(s.Prompt, s.Cached, setup.Step)) + cost.Delay(s.Prompt)
			rates = append(rates, (s.Millis*1e6-float64(computing))/float64(s.Loaded/pageTokens))
		}
	}
	slices.Sort(rates)
	page := rates[len(rates)/2]
	t.Logf("%+v; a page is loaded in %.2f ms (quarters %.2f, %.2f)", cost, page/1e6, rates[len(rates)/4]/1e6, rates[len(rates)*3/4]/1e6)
	// With pages of one size, what is for each page and what is for its bytes cannot be kept apart.
	return cost, sim.Copy{BytesPerSecond: float64(setup.TokenBytes*pageTokens) / page * 1e9}
}

// readTiers reads a recording.
func readTiers(t *testing.T, path string) (setup tierSetup, calibration []tierSample, rounds [][]tierSample) {
	t.Helper()
	f := testkit.Must(os.Open(path))(t)
	defer f.Close()
	err := jsonlines.Read(f, bufio.MaxScanTokenSize, func(number int, line []byte) error {
		if number == 1 {
			return json.Unmarshal(line, &setup)
		}
		var s tierSample
		err := json.Unmarshal(line, &s)
		switch {
		case !s.isRequest():
			calibration = append(calibration, s)
		case s.Round == len(rounds):
			rounds = append(rounds, []tierSample{s})
		default:
			rounds[s.Round] = append(rounds[s.Round], s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return setup, calibration, rounds
}

// TestRecordedTiers: with constants that were found with other requests, a simulated server reads what the real model's engine read from
// memory and from files, request by request, and its mean time to the first token is that engine's up to 15 %. Writing is in the
// background, beside computing: what that costs is in the constants.
func TestRecordedTiers(t *testing.T) {
	setup, calibration, rounds := readTiers(t, cmp.Or(os.Getenv("RAGPILOT_TIERS_RECORDED"), tierRecording))
	cost, files := fitTiers(t, setup, calibration)
	var requests [][][2]int
	for _, s := range rounds[0] {
		requests = append(requests, s.Parts)
	}
	if len(requests) != 60 {
		t.Fatalf("%d requests, want 60", len(requests))
	}
	predicted := predict(setup.server(cost, files), requests)
	for i, got := range rounds {
		memory, fromFiles, computed := equalHits(t, got, predicted)
		t.Logf("round %d: %d requests read memory, %d files, %d computed a document", i, memory, fromFiles, computed)
		if min(memory, fromFiles, computed) < 15 {
			t.Error("want many of each")
		}
	}
	for kind, s := range timesByKind(rounds, predicted) {
		off := s.predicted/s.measured - 1
		t.Logf("%-16s %3.0f requests, mean %7.1f ms, predicted %7.1f: %+.1f %%", kind, s.requests, s.measured, s.predicted, 100*off)
		if math.Abs(off) > 0.15 {
			t.Errorf("%s: mean time to the first token %.1f ms, predicted %.1f", kind, s.measured, s.predicted)
		}
	}
}

// meanTimes are mean times to the first token, in milliseconds.
type meanTimes struct{ requests, measured, predicted float64 }

// timesByKind returns the mean times of all requests, with the median of a request's rounds; of each round; and of requests by where most
// of what they needed was.
func timesByKind(rounds [][]tierSample, predicted []sim.Served) map[string]*meanTimes {
	out := map[string]*meanTimes{}
	add := func(kind string, ms float64, p sim.Served) {
		if out[kind] == nil {
			out[kind] = &meanTimes{}
		}
		m := out[kind]
		m.requests++
		m.measured += ms
		m.predicted += float64(p.First-p.At) / 1e6
	}
	for i, p := range predicted {
		var times []float64
		for n, r := range rounds {
			times = append(times, r[i].Millis)
			add(fmt.Sprint("round ", n), r[i].Millis, p)
		}
		slices.Sort(times)
		median := times[len(times)/2]
		s := rounds[0][i]
		kind := "memory only"
		switch loaded, computed := s.Loaded > 0, s.Prompt-s.Cached > 64; {
		case loaded && computed:
			kind = "files, computed"
		case loaded:
			kind = "files"
		case computed:
			kind = "computed"
		}
		add("all", median, p)
		add(kind, median, p)
	}
	for _, m := range out {
		m.measured /= m.requests
		m.predicted /= m.requests
	}
	return out
}
