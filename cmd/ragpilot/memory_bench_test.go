package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/membench"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// small runs memory bench without a model, on little.
func small(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	return runErr(t, append([]string{"memory", "bench", "--embedder", "lexical", "--users", "2", "--turns", "20"}, args...)...)
}

func TestMemoryBench(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "c.svg")
	out, _, err := small(t, "--store", "inmem,sqlite", "--chart", chart)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"generated with seed 1, 20 turns of chat each; 2 users", "have no content stem in common", "inmem   lexical   facts alone",
		"sqlite  lexical   after the chat",
		"ADD P50", "whole history  40",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if svg, err := os.ReadFile(chart); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("chart %.20q, %v", svg, err)
	}
}

// The same seed finds the same, in whatever order stores and embedders run.
func TestMemoryBenchJSON(t *testing.T) {
	var first membench.Report
	for i := range 2 {
		out, _, err := small(t, "--store", "inmem", "--seed", "7", "--k", "5", "--json")
		var r membench.Report
		if err != nil || json.Unmarshal([]byte(out), &r) != nil || len(r.Recall) != 1 || len(r.Prompts) != 1 || r.Prompts[0].K != 5 {
			t.Fatalf("%v: %s", err, out)
		}
		if i == 0 {
			first = r
		}
		for j, s := range r.Recall[0].Stages {
			if s != first.Recall[0].Stages[j] {
				t.Errorf("%+v, then %+v", first.Recall[0].Stages[j], s)
			}
		}
		for j, a := range r.Prompts[0].Arms {
			if a != first.Prompts[0].Arms[j] {
				t.Errorf("%+v, then %+v", first.Prompts[0].Arms[j], a)
			}
		}
	}
}

func TestMemoryBenchData(t *testing.T) {
	rows := write(t, "rows.jsonl", `{"user":"ana","sessions":[{"turns":[{"id":"1","speaker":"Ana","text":"My cello is in the cellar."}]}],`+
		`"questions":[{"question":"Where is the cello?","answer":"cellar","evidence":["1"]}]}`)
	out, _, err := small(t, "--store", "inmem", "--data", rows)
	if err != nil || !strings.Contains(out, "rows.jsonl; 1 users") || !strings.Contains(out, "100.0 %") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMemoryBenchLoad(t *testing.T) {
	out, notes, err := small(t, "--load", "200", "--writers", "2", "--pause", "10ms", "--searches", "20")
	if err != nil || !strings.Contains(out, "200 memories of one user; store sqlite, embedder lexical") ||
		!strings.Contains(out, "search, 2 writers") || !strings.Contains(out, "on disk") || !strings.Contains(notes, "filling") {
		t.Errorf("%v: %s\n%s", err, out, notes)
	}
}

func TestMemoryBenchBadInput(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no users", []string{"--users", "0"}, "--users 0: want at least 1"},
		{"turns", []string{"--turns", "-1"}, "--turns -1"},
		{"k", []string{"--k", "0"}, "--k 0"},
		{"store", []string{"--store", "mysql://h"}, `--store "mysql://h"`},
		{"embedder", []string{"--embedder", "word2vec"}, `--embedder "word2vec"`},
		{"embedder's folder", []string{"--embedder", "minilm:/nowhere"}, `--embedder "minilm:/nowhere": minilm: open`},
		{"writers", []string{"--writers", "2"}, "--writers is for --load"},
		{"load", []string{"--load", "10", "--chart", "x.svg"}, "--load measures nothing else"},
		{"chart", []string{"--chart", "/nowhere/x.svg"}, "--chart: stat /nowhere"},
		{"data", []string{"--data", "/nowhere"}, "--data: open /nowhere"},
		{"rows", []string{"--data", write(t, "bad.jsonl", `{"user":""}`)}, `bad.jsonl: line 1: user ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, _, err := small(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
				t.Errorf("%v, want %s; printed %q", err, tc.want, out)
			}
		})
	}
}

// PostgreSQL finds what a store in memory does, and is empty afterwards.
func TestMemoryBenchPostgres(t *testing.T) {
	dsn := storetest.Postgres(t)
	out, _, err := small(t, "--users", "1", "--store", "inmem,"+dsn, "--json")
	var r membench.Report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || len(r.Recall) != 2 || r.Recall[1].Store != "postgres" {
		t.Fatalf("%v: %s", err, out)
	}
	for i, s := range r.Recall[0].Stages {
		if other := r.Recall[1].Stages[i]; math.Abs(s.At5-other.At5) > 0.01 {
			t.Errorf("in memory %+v, in PostgreSQL %+v", s, other)
		}
	}
	backend, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: benchName})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	left := 0
	err = backend.Scan(t.Context(), memory.Scope{}, memory.Memories, func(*memory.Record) bool {
		left++
		return true
	})
	if err != nil || left != 0 {
		t.Errorf("%d memories are left, %v", left, err)
	}
}
