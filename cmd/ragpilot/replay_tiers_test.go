package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplayTiers(t *testing.T) {
	loogle := []string{
		"replay", "--workload", "loogle", "--engine-model", "h200-qwen2.5-14b", "--arrivals", "closed:32",
		"--requests", "300", "--page", "64",
	}
	out, err := run(t, append(loogle, "--tiers", "none,gpu", "--order", "fifo,strata", "--json", "--in-flight", "20")...)
	if err != nil {
		t.Fatal(err)
	}
	type point struct {
		loadPoint
		Stall    struct{ Mean float64 }
		Rate     struct{ Mean float64 } `json:"requests_per_s"`
		Tokens   struct{ Mean float64 } `json:"loaded_mtokens"`
		MeanTTFT struct{ Mean float64 } `json:"ttft_mean_ms"`
	}
	points := jsonLines[point](t, out)
	if len(points) != 4 {
		t.Fatalf("%d lines:\n%s", len(points), out)
	}
	for i, p := range points {
		want := []string{"none/64/fifo", "none/64/defer+balance+bubble", "gpu/64/fifo", "gpu/64/defer+balance+bubble"}[i]
		if tiers := i >= 2; p.Policy != want || p.Requests != 300 || p.Peak.Mean > 20 || p.MeanTTFT.Mean <= 0 || (p.Tokens.Mean > 0) != tiers ||
			(p.Stall.Mean > 0) != tiers {
			t.Errorf("want %s, got %+v", want, p)
		}
	}
	if points[2].Rate.Mean < points[0].Rate.Mean || points[3].Rate.Mean < points[2].Rate.Mean {
		t.Errorf("%+v", points)
	}
	text, err := run(t, append(loogle, "--tiers", "dma,gpu")...)
	if err != nil || !strings.Contains(text, "of dma/64/fifo") || !strings.Contains(text, "stall") {
		t.Errorf("%v\n%s", err, text)
	}
	// Traces have policies, too.
	text, err = run(t, append(madeUp(), "--policy", "retrieval,best", "--arrivals", "poisson:2", "--capacity", "20%", "--tiers",
		"gpu", "--order", "strata")...)
	if err != nil || !strings.Contains(text, "retrieval gpu/defer+balance+bubble") ||
		!strings.Contains(text, "best gpu/defer+balance+bubble") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestReplayTiersRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const cost = `"cost":{"prefill_ns":1},"capacity_tokens":100000,`
	for want, args := range map[string][]string{
		`--order "lifo"`:                       {"--order", "lifo"},
		`--tiers "ssd"`:                        {"--tiers", "gpu,ssd"},
		`--tiers []`:                           {"--tiers", ""},
		`layers 2000000`:                       {"--engine-model", file("layers.json", `{`+cost+`"memory":{"host_tokens":1,"token_bytes":1,"layers":2000000,"link":1,"block_rate":1}}`)},
		`--page -1`:                            {"--page", "-1"},
		`--in-flight -1`:                       {"--in-flight", "-1"},
		`--workload "novels"`:                  {"--workload", "novels"},
		`--distance "far"`:                     {"--distance", "far"},
		`--capacity 5%`:                        {"--capacity", "5%"},
		`--policy [best]: not with --workload`: {"--policy", "best"},
		`engine model cpu-tiny says nothing`:   {"--engine-model", "cpu-tiny", "--capacity", "100000", "--tiers", "gpu"},
		`the cache is unlimited`:               {"--engine-model", "h100", "--tiers", "dma"},
		`block_tokens -1: want at least 0`:     {"--engine-model", file("block.json", `{`+cost+`"block_tokens":-1}`)},
		`publish 3: want 0, 1 or 2`:            {"--engine-model", file("publish.json", `{`+cost+`"publish":3}`)},
		`memory: link 0: want at least 1 byte`: {"--engine-model", file("link.json", `{`+cost+`"memory":{"host_tokens":1,"token_bytes":1,"layers":1}}`)},
		`memory: host_tokens 0`:                {"--engine-model", file("host.json", `{`+cost+`"memory":{"token_bytes":1,"layers":1,"link":1}}`)},
		`only on the simulator`:                {"--engine", "http://127.0.0.1:1", "--model", "m"},
	} {
		all := append([]string{"replay", "--workload", "loogle", "--requests", "5", "--arrivals", "poisson:1"}, args...)
		if out, err := run(t, all...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if _, err := run(t, append(madeUp(), "--arrivals", "poisson:1", "--warm")...); err == nil ||
		!strings.Contains(err.Error(), "only with --workload") {
		t.Errorf("--warm: %v", err)
	}
	if _, err := run(t, append(madeUp(), "--order", "strata")...); err == nil || !strings.Contains(err.Error(), "only with --arrivals") {
		t.Errorf("--order: %v", err)
	}
}
