package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func routePoints(t *testing.T, out string) []load.RoutePoint {
	t.Helper()
	var points []load.RoutePoint
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var p load.RoutePoint
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		points = append(points, p)
	}
	return points
}

func TestBenchRoute(t *testing.T) {
	testkit.NotUnderRace(t)
	args := []string{
		"bench", "route", "--workload", "topics", "--contexts", "120", "--replicas", "2,3", "--arrivals", "poisson:1,4",
		"--seeds", "2",
	}
	out, err := run(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	points := routePoints(t, out)
	if len(points) != 2*2*4 {
		t.Fatalf("%d lines:\n%s", len(points), out)
	}
	var got []string
	for _, p := range points {
		if p.Seeds != 2 || p.Requests != 120 || !p.Simulated || !p.HitKnown || p.Against != "joint" || p.Prefill.Mean <= 0 ||
			p.TTFT95.Mean <= 0 || p.Imbalance.Mean < 1 || !strings.Contains(p.Engine, "h100") {
			t.Errorf("%+v", p)
		}
		if (p.Arm == "joint") != (p.VsFirst.Mean == 1) || p.VsFirst.Mean < 1 {
			t.Errorf("%s computes %g times joint's", p.Arm, p.VsFirst.Mean)
		}
		got = append(got, p.Arrivals+" "+p.Arm)
	}
	if got[0] != "poisson:2 joint" || got[5] != "poisson:8 order+least-load" || got[15] != "poisson:12 prefix-only" {
		t.Errorf("%q", got)
	}
	if again, err := run(t, append(args, "--json")...); err != nil || again != out {
		t.Errorf("another run prints something else (%v)", err)
	}
	text, err := run(t, append(args, "--arms", "prefix-only,joint", "--capacity", "20%")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of prefix-only", "virtual time", "caches of", "120 requests", "±", "poisson:12", "share"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "round-robin") {
		t.Errorf("an arm that was not asked for:\n%s", text)
	}
}

func TestBenchRouteOnEngines(t *testing.T) {
	args := append(madeUp(), "--sessions", "25", "--arrivals", "closed:2", "--json", "--arms", "joint,order+round-robin", "--max-tokens", "2")
	args = append([]string{"bench", "route"}, args[1:]...)
	for range 2 {
		server := httptest.NewServer(upstream.New(upstream.Options{}))
		defer server.Close()
		args = append(args, "--engine", server.URL)
	}
	out, err := run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	points := routePoints(t, out)
	if len(points) != 2 || points[0].Replicas != 2 || points[0].Arrivals != "closed:4" || points[0].Simulated ||
		points[0].Engine != "2 × sim (ragpilot)" {
		t.Fatalf("%+v", points)
	}
	for _, p := range points { // both begin with empty caches: what comes first is computed
		if p.Hit.Mean <= 0 || p.Hit.Mean > 0.9 || p.Prefill.Mean < 1000 {
			t.Errorf("%+v", p)
		}
	}
	if _, err := run(t, append(args, "--engine", "http://127.0.0.1:1")...); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a replica that is not there: %v", err)
	}
}

func TestBenchRouteFlags(t *testing.T) {
	made := []string{"bench", "route", "--workload", "topics", "--contexts", "20"}
	for want, args := range map[string][]string{
		"--trace is required":            {"bench", "route"},
		"--contexts 5: only with":        {"bench", "route", "--contexts", "5"},
		"--workload topics: not with":    append(made, "--trace", "t", "--blocks", "b"),
		`--workload "nothing"`:           {"bench", "route", "--workload", "nothing"},
		`--arms "nothing"`:               append(made, "--arms", "nothing"),
		"--arms is required":             append(made, "--arms", ""),
		"--replicas 65: want":            append(made, "--replicas", "2,65"),
		"--replicas 0: want":             append(made, "--replicas", "0"),
		"--arrivals":                     append(made, "--arrivals", "fast"),
		"--seeds 0: want":                append(made, "--seeds", "0"),
		"--think -1s":                    append(made, "--think", "-1s"),
		"--max-share 0.5":                append(made, "--max-share", "0.5"),
		"--max-share NaN":                append(made, "--max-share", "NaN"),
		"--engine-model":                 append(made, "--engine-model", "nothing"),
		"--capacity":                     append(made, "--capacity", "nothing"),
		"--engine:":                      append(made, "--engine", "ftp://x"),
		"--model m: only with":           append(made, "--model", "m"),
		"--reset true: only with":        append(made, "--reset", "true"),
		"--replicas [2]: not with":       append(made, "--engine", "http://x", "--replicas", "2"),
		"--capacity unlimited: not with": append(made, "--engine", "http://x", "--capacity", "unlimited"),
		"--max-tokens 0: want":           append(made, "--max-tokens", "0"),
	} {
		if out, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v\n%s", want, err, out)
		}
	}
}
