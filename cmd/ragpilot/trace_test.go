package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// runErr executes the command in process and returns what it says on standard error, too.
func runErr(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&notes)
	err = root.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func TestTraceGen(t *testing.T) {
	dir := t.TempDir()
	gen := func(ext string, args ...string) (requests []trace.Request, blocks *trace.Blocks, notes string) {
		t.Helper()
		trc, blk := filepath.Join(dir, "t"+ext), filepath.Join(dir, "b"+ext)
		out, notes, err := runErr(t, append([]string{"trace", "gen", "--trace", trc, "--blocks", blk}, args...)...)
		if err != nil || out != "" {
			t.Fatalf("printed %q, %v", out, err)
		}
		if requests, blocks, err = trace.Load(trc, blk); err != nil {
			t.Fatal(err)
		}
		return requests, blocks, notes
	}
	args := []string{"--seed", "1", "--contexts", "90", "--k", "5", "--pool", "200", "--zipf", "1.0", "--topics", "4"}
	plain, blocks, notes := gen(".jsonl", args...)
	if len(plain) != 90 || blocks.Len() != 200 || len(plain[0].Docs) != 5 {
		t.Errorf("%d requests, %d blocks, first with %v", len(plain), blocks.Len(), plain[0].Docs)
	}
	if want := "90 requests, 90 sessions, mean k 5.00, "; !strings.HasPrefix(notes, want) ||
		!strings.Contains(notes, " distinct blocks, overlap with the best earlier request 0.") || strings.Count(notes, "\n") != 1 {
		t.Errorf("summary %q, want %s…", notes, want)
	}
	packed, _, _ := gen(".jsonl.gz", args...)
	if fmt.Sprint(packed) != fmt.Sprint(plain) {
		t.Error("packed trace differs")
	}
	if zipf, _, _ := gen(".jsonl", append(args, "--zipf", "0")...); fmt.Sprint(zipf) == fmt.Sprint(plain) {
		t.Error("--zipf 0 is not the default")
	}
	all, _, notes := gen(".jsonl", "--sessions", "10", "--turns", "3", "--k", "6", "--k-spread", "2", "--drift", "0.5", "--bursts", "3",
		"--tenants", "2", "--block-tokens", "10", "--equal-blocks", "--growing", "--overlap", "0.5")
	if len(all) != 30 || !strings.HasPrefix(notes, "30 requests, 10 sessions, mean k ") {
		t.Errorf("%d requests, %s", len(all), notes)
	}
	named, blocks, _ := gen(".jsonl", "--workload", "ragcachepp", "--contexts", "12")
	if len(named) != 12 || len(named[0].Docs) != 5 || blocks.Len() != 500 {
		t.Errorf("%d requests, %d blocks, first with %v", len(named), blocks.Len(), named[0].Docs)
	}
	if none, _, notes := gen(".jsonl", "--contexts", "20", "--overlap", "0"); len(none) != 20 || !strings.HasSuffix(notes, " 0.00\n") {
		t.Errorf("%d requests, %s", len(none), notes)
	}
	out, _, err := runErr(t, "trace", "gen", "--contexts", "2", "--trace", "-", "--blocks", filepath.Join(dir, "b.jsonl"))
	if err != nil || strings.Count(out, "\n") != 2 {
		t.Errorf("standard output %q, %v", out, err)
	}
}

func TestTraceCut(t *testing.T) {
	in := write(t, "t.jsonl", someTrace)
	line := strings.SplitAfter(someTrace, "\n")
	short := strings.NewReplacer(`["a","b"]`, `["a"]`, `["b","a","c"]`, `["b"]`, `["c","a"]`, `["c"]`)
	tests := []struct {
		args string
		want string
	}{
		{"--k 1", short.Replace(someTrace)},
		{"--k 9", someTrace},
		{"--contexts 2", line[0] + line[1]},
		{"--contexts 9", someTrace},
		{"--sessions 1", line[0] + line[2]},
		{"--sessions 9", someTrace},
		{"--sessions 1 --contexts 2", line[0]},
		{"--k 1 --contexts 2", short.Replace(line[0] + line[1])},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			args := append([]string{"trace", "cut", "--trace", in, "--out"}, out)
			if _, err := run(t, append(args, strings.Fields(tt.args)...)...); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(out); err != nil || string(got) != tt.want {
				t.Errorf("got\n%swant\n%s%v", got, tt.want, err)
			}
		})
	}
	if out, err := run(t, "trace", "cut", "--trace", in, "--out", "-", "--k", "1"); err != nil || out != short.Replace(someTrace) {
		t.Errorf("standard output: %q, %v", out, err)
	}
}

func TestTraceBadInput(t *testing.T) {
	in, out := write(t, "t.jsonl", someTrace), filepath.Join(t.TempDir(), "out.jsonl")
	blocks := filepath.Join(t.TempDir(), "b.jsonl")
	gen := []string{"gen", "--trace", out, "--blocks", blocks}
	cut := []string{"cut", "--trace", in, "--out", out}
	tests := []refusal{
		{"gen: no trace", []string{"gen", "--blocks", blocks}, []string{"--trace"}},
		{"gen: no blocks", []string{"gen", "--trace", out}, []string{"--blocks"}},
		{"gen: one file", []string{"gen", "--trace", out, "--blocks", out}, []string{"--trace", "--blocks", out}},
		{"gen: no such folder", []string{"gen", "--trace", filepath.Join(out, "x"), "--blocks", blocks}, []string{filepath.Join(out, "x")}},
		{"gen: pool", append(gen, "--pool", "10"), []string{"--pool 10", "k 15"}},
		{"gen: pool and k", append(gen, "--pool", "10", "--k", "12", "--k-spread", "4"), []string{"--pool 10", "k 16"}},
		{"gen: nothing shared", append(gen, "--pool", "100", "--contexts", "10", "--overlap", "0"), []string{"--pool 100", "150"}},
		{"gen: zero", append(gen, "--contexts", "0"), []string{"--contexts 0", "at least 1"}},
		{"gen: negative", append(gen, "--k", "-3"), []string{"--k -3"}},
		{"gen: k-spread", append(gen, "--k-spread", "15"), []string{"--k-spread 15", "k 15"}},
		{"gen: overlap", append(gen, "--overlap", "1.5"), []string{"--overlap 1.5", "0 to 1"}},
		{"gen: zipf", append(gen, "--zipf", "-1"), []string{"--zipf -1"}},
		{"gen: no number", append(gen, "--zipf", "NaN"), []string{"--zipf NaN"}},
		{"gen: tenants", append(gen, "--tenants", "7", "--topics", "3"), []string{"--tenants 7", "topics 3"}},
		{"gen: topics", append(gen, "--topics", "500", "--pool", "400"), []string{"--topics 500", "pool 400"}},
		{
			"gen: sessions", append(gen, "--sessions", "7", "--turns", "3", "--contexts", "100"),
			[]string{"--sessions 7", "turns 3", "contexts 100"},
		},
		{"gen: workload", append(gen, "--workload", "zebra"), []string{"--workload", `"zebra"`, "ragcachepp"}},
		{"gen: not of this workload", append(gen, "--workload", "ragcachepp-geo", "--drift", "1"), []string{"--drift 1"}},
		{"gen: argument", append(gen, "more"), []string{"more"}},
		{"cut: no trace", []string{"cut", "--out", out, "--k", "1"}, []string{"--trace"}},
		{"cut: no out", []string{"cut", "--trace", in, "--k", "1"}, []string{"--out"}},
		{"cut: itself", []string{"cut", "--trace", in, "--out", in, "--k", "1"}, []string{"--out", in}},
		{"cut: missing", []string{"cut", "--trace", blocks, "--out", out, "--k", "1"}, []string{blocks}},
		{"cut: nothing to cut", cut, []string{"--k", "--contexts", "--sessions"}},
		{"cut: negative", append(cut, "--sessions", "-1"), []string{"--sessions -1"}},
		{"cut: broken", []string{"cut", "--trace", write(t, "t.jsonl", someTrace+"broken\n"), "--out", out, "--k", "1"}, []string{"t.jsonl:4"}},
		{"unknown", []string{"glue"}, []string{"glue"}},
	}
	checkRefused(t, []string{"trace"}, tests)
	if got, err := os.ReadFile(in); err != nil || string(got) != someTrace {
		t.Errorf("the trace that was to be cut: %q, %v", got, err)
	}
}
