package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestMain lets a test run the command as a process of its own: the test binary, with an environment variable.
func TestMain(m *testing.M) {
	if os.Getenv("RAGPILOT_TEST_AS_COMMAND") == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "RAGPILOT_TEST_AS_COMMAND=1")
	return cmd
}

// run executes the command in process.
func run(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	stdout, _, err = runBoth(t, args...)
	return stdout, err
}

// runBoth executes the command in process and returns both outputs.
func runBoth(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, problems bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&problems)
	err = root.ExecuteContext(t.Context())
	return out.String(), problems.String(), err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	someBlocks = `{"id":"a","text":"alpha"}` + "\n" + `{"id":"b","text":"beta"}` + "\n" + `{"id":"c","text":"gamma"}` + "\n"
	someTrace  = `{"id":"1","session":"s","turn":1,"query":"?","docs":["a","b"]}` + "\n" +
		`{"id":"2","session":"t","turn":1,"query":"?","docs":["b","a","c"]}` + "\n" +
		`{"id":"3","session":"s","turn":2,"query":"?","docs":["c","a"]}` + "\n"
)

func TestPlan(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	out, err := run(t, "plan", "--trace", trc, "--blocks", blocks, "--policy", "knowledge-tree")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"1","session":"s","turn":1,"docs":["a","b"],"refs":[],"hint":""}
{"id":"2","session":"t","turn":1,"docs":["a","b","c"],"refs":[],"hint":"Relevance: [b] > [a] > [c]."}
{"id":"3","session":"s","turn":2,"docs":["c"],"refs":["a"],"hint":""}
`
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

func TestBadInput(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	refused := refusedURL(t)
	tests := []refusal{
		{"no trace", []string{"plan", "--blocks", blocks}, []string{"--trace"}},
		{"no blocks", []string{"plan", "--trace", trc}, []string{"--blocks"}},
		{"missing trace", []string{"plan", "--trace", missing, "--blocks", blocks}, []string{missing}},
		{"missing blocks", []string{"plan", "--trace", trc, "--blocks", missing}, []string{missing}},
		{
			"broken JSON",
			[]string{"plan", "--trace", write(t, "t.jsonl", someTrace+"{\"id\":\"4\",\n"), "--blocks", blocks},
			[]string{"t.jsonl", "4"},
		},
		{"broken blocks", []string{"plan", "--trace", trc, "--blocks", write(t, "b.jsonl", someBlocks+"nonsense\n")}, []string{"b.jsonl", "4"}},
		{
			"request twice",
			[]string{"plan", "--trace", write(t, "t.jsonl", someTrace+someTrace), "--blocks", blocks},
			[]string{"t.jsonl", "4", `"1"`},
		},
		{
			"document twice",
			[]string{"plan", "--trace", write(t, "t.jsonl", `{"id":"1","query":"?","docs":["a","a"]}`), "--blocks", blocks},
			[]string{"t.jsonl", "1", `"a"`},
		},
		{
			"block twice",
			[]string{"plan", "--trace", trc, "--blocks", write(t, "b.jsonl", someBlocks+someBlocks)},
			[]string{"b.jsonl", "4", `"a"`},
		},
		{
			"unknown block",
			[]string{"plan", "--trace", write(t, "t.jsonl", `{"id":"1","query":"?","docs":["z"]}`), "--blocks", blocks},
			[]string{"t.jsonl", `"z"`},
		},
		{"unknown policy", []string{"plan", "--trace", trc, "--blocks", blocks, "--policy", "zebra"}, []string{"--policy", `"zebra"`, "paper"}},
		{"empty policy", []string{"plan", "--trace", trc, "--blocks", blocks, "--policy", ""}, []string{"--policy", `""`, "paper"}},
		{"replay: no policy", []string{"replay", "--trace", trc, "--blocks", blocks, "--policy", ""}, []string{"--policy", `""`, "paper"}},
		{
			"replay: bad ID place",
			[]string{"replay", "--trace", trc, "--blocks", blocks, "--engine", refused, "--request-id", "body"},
			[]string{"--request-id", `"body"`, "header"},
		},
		{"bad switch", []string{"plan", "--trace", trc, "--blocks", blocks, "--dedup", "maybe"}, []string{"--dedup", `"maybe"`, "on"}},
		{"bad capacity", []string{"plan", "--trace", trc, "--blocks", blocks, "--capacity", "lots"}, []string{"--capacity", `"lots"`}},
		{"bad k", []string{"plan", "--trace", trc, "--blocks", blocks, "--k", "-2"}, []string{"--k", "-2"}},
		{"bad hint", []string{"plan", "--trace", trc, "--blocks", blocks, "--hint", "top-0"}, []string{"--hint", `"top-0"`, "top-N"}},
		{"bad limit", []string{"plan", "--trace", trc, "--blocks", blocks, "--pin", "-1"}, []string{"Pin", "-1"}},
		{
			"limits against each other",
			[]string{"plan", "--trace", trc, "--blocks", blocks, "--keep-top-at-end", "1", "--pin", "1"},
			[]string{"KeepTopAtEnd"},
		},
		{"lanes online", []string{"plan", "--trace", trc, "--blocks", blocks, "--concurrency", "2"}, []string{"--concurrency", "2", "--offline"}},
		{"no lanes", []string{"plan", "--trace", trc, "--blocks", blocks, "--offline", "--concurrency", "0"}, []string{"--concurrency", "0"}},
		{"nothing to explain", []string{"plan", "--trace", trc, "--blocks", blocks, "--explain", "9"}, []string{"--explain", `"9"`}},
		{"bench: too few requests", []string{"bench", "--trace", trc, "--blocks", blocks}, []string{"--timed", "3 requests"}},
		{"bench: nothing timed", []string{"bench", "--trace", trc, "--blocks", blocks, "--timed", "0"}, []string{"--timed", "0"}},
		{
			"bench: unknown policy",
			[]string{"bench", "--trace", many(t), "--blocks", blocks, "--timed", "2", "--policy", "zebra"},
			[]string{"--policy", `"zebra"`},
		},
		{"unknown flag", []string{"plan", "--tarce", trc}, []string{"--tarce"}},
		{
			"replay: one unknown policy",
			[]string{"replay", "--trace", trc, "--blocks", blocks, "--policy", "retrieval,zebra"},
			[]string{"--policy", `"zebra"`},
		},
		{"replay: unknown profile", []string{"replay", "--trace", trc, "--blocks", blocks, "--profile", "zebra"}, []string{"--profile", "zebra", "safe"}},
		{"replay: bad capacity", []string{"replay", "--trace", trc, "--blocks", blocks, "--capacity", "much"}, []string{"--capacity", `"much"`}},
		{
			"replay: bad URL",
			[]string{"replay", "--trace", trc, "--blocks", blocks, "--engine", "localhost:9"},
			[]string{"--engine", "localhost:9"},
		},
		{
			"replay: unreachable",
			[]string{"replay", "--trace", trc, "--blocks", blocks, "--engine", refused, "--model", "m"},
			[]string{refused, "unreachable"},
		},
	}
	checkRefused(t, nil, tests)
}

// refusal is a command line that is refused.
type refusal struct {
	name string
	args []string
	want []string // all in the message
}

// checkRefused runs each command line behind what all begin with.
func checkRefused(t *testing.T, begin []string, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := run(t, slices.Concat(begin, tt.args)...)
			if err == nil {
				t.Fatalf("no error; printed %q", out)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %s", err, w)
				}
			}
		})
	}
}

// started starts the command and returns what it writes to the pipe.
func started(t *testing.T, cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) io.Reader {
	t.Helper()
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return out
}

// many writes a trace of ten requests.
func many(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, `{"id":"m%d","query":"?","docs":["a","b","c"]}`+"\n", i)
	}
	return write(t, "m.jsonl", b.String())
}

func TestBench(t *testing.T) {
	args := []string{"bench", "--trace", many(t), "--blocks", write(t, "b.jsonl", someBlocks), "--timed", "2", "--policy", "best,retrieval"}
	out, err := run(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	for _, policy := range []string{"best", "retrieval"} {
		var row struct {
			Policy      string
			Live, Plans int
			P50         float64 `json:"p50_us"`
			Bytes       float64 `json:"bytes_per_live"`
		}
		if err := dec.Decode(&row); err != nil || row.Policy != policy || row.Live != 4 || row.Plans != 2 || row.P50 <= 0 {
			t.Errorf("%+v, %v", row, err)
		}
	}
	if out, err = run(t, args...); err != nil || strings.Count(out, "\n") != 3 || !strings.Contains(out, "p99") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPlanExplain(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	for _, more := range [][]string{nil, {"--offline"}} {
		out, err := run(t, append([]string{"plan", "--trace", trc, "--blocks", blocks, "--explain", "2"}, more...)...)
		if err != nil || !strings.HasPrefix(out, "request r2") || strings.Contains(out, `"docs"`) {
			t.Errorf("%v: %v\n%s", more, err, out)
		}
	}
}

// Lines of two lanes alternate, as long as both last; a session stays in its lane.
func TestPlanLanes(t *testing.T) {
	out, err := run(t, "plan", "--trace", many(t), "--blocks", write(t, "b.jsonl", someBlocks), "--offline", "--concurrency", "2", "--policy",
		"retrieval")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(out) {
		var p struct{ ID string }
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, p.ID)
	}
	if got := strings.Join(ids, " "); got != "m0 m5 m1 m6 m2 m7 m3 m8 m4 m9" {
		t.Errorf("order of execution %s", got)
	}
}

func TestPlanLimitsAndHints(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	for want, more := range map[string][]string{
		`"docs":["a","b","c"],"refs":[],"hint":"Relevance: [b]."`: {"--hint", "top-1", "--hint-always"},
		`"docs":["a","b","c"],"refs":[],"hint":""`:                {"--hint", "none"},
		`"docs":["a","c","b"],"refs":[],"hint":""`:                {"--keep-top-at-end", "1", "--hint", "none"},
		`"docs":["b","a","c"],"refs":[],"hint":""`:                {"--pin", "3"},
	} {
		out, err := run(t, append([]string{"plan", "--trace", trc, "--blocks", blocks, "--policy", "knowledge-tree"}, more...)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v\n%swant %s", more, err, out, want)
		}
	}
}

func TestNumbered(t *testing.T) {
	for id, want := range map[string]string{"guide#3": "guide 3", "a#b#12": "a#b 12", "plain": "plain 0", "guide#x": "guide#x 0", "#7": " 7"} {
		if doc, place := numbered(id, "#"); fmt.Sprint(doc, " ", place) != want {
			t.Errorf("%s: %q %d, want %s", id, doc, place, want)
		}
	}
}

// TestExitStatus: errors go to standard error with a status that is not zero, also after lines were written.
func TestExitStatus(t *testing.T) {
	trc := write(t, "t.jsonl", someTrace+"broken\n")
	blocks := write(t, "b.jsonl", someBlocks)
	for _, offline := range []bool{false, true} {
		cmd := command(t.Context(), "plan", "--trace", trc, "--blocks", blocks, fmt.Sprintf("--offline=%t", offline))
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("offline %t: %v", offline, err)
		}
		if !strings.Contains(errOut.String(), "ragpilot: ") || !strings.Contains(errOut.String(), "4") {
			t.Errorf("offline %t: %q", offline, errOut.String())
		}
		if lines := strings.Count(out.String(), "\n"); offline && lines != 0 || !offline && lines != 3 {
			t.Errorf("offline %t: %d lines were written", offline, lines)
		}
	}
}

// TestPipe: over a pipe, the answer to line i is there before line i+1 is.
func TestPipe(t *testing.T) {
	cmd := command(t.Context(), "plan", "--trace", "-", "--blocks", write(t, "b.jsonl", someBlocks))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(started(t, cmd, cmd.StdoutPipe))
	for i, line := range strings.SplitAfter(strings.TrimSuffix(someTrace, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\n") + "\n"
		if _, err := io.WriteString(in, line); err != nil {
			t.Fatal(err)
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		var p struct{ ID string }
		if err := json.Unmarshal([]byte(answer), &p); err != nil || p.ID != fmt.Sprint(i+1) {
			t.Errorf("line %d: %s (%v)", i+1, answer, err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("after the last line: %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestPackedPipe: standard input may be packed.
func TestPackedPipe(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, someTrace); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := command(t.Context(), "plan", "--trace", "-", "--blocks", write(t, "b.jsonl", someBlocks))
	cmd.Stdin = &packed
	if out, err := cmd.Output(); err != nil || bytes.Count(out, []byte("\n")) != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("RAGPILOT_TRACE", write(t, "t.jsonl", someTrace))
	t.Setenv("RAGPILOT_BLOCKS", write(t, "b.jsonl", someBlocks))
	t.Setenv("RAGPILOT_POLICY", "zebra")
	if _, err := run(t, "plan"); err == nil || !strings.Contains(err.Error(), "zebra") {
		t.Errorf("policy of the environment: %v", err)
	}
	if out, err := run(t, "plan", "--policy", "sorted"); err != nil || strings.Count(out, "\n") != 3 {
		t.Errorf("the flag wins: %v\n%s", err, out)
	}
	t.Setenv("RAGPILOT_K", "many")
	if _, err := run(t, "plan", "--policy", "sorted"); err == nil || !strings.Contains(err.Error(), `RAGPILOT_K="many"`) {
		t.Errorf("bad value: %v", err)
	}
}

func TestReplay(t *testing.T) {
	blocks, trc := write(t, "b.jsonl", someBlocks), write(t, "t.jsonl", someTrace)
	out, err := run(t, "replay", "--trace", trc, "--blocks", blocks, "--policy", "retrieval,knowledge-tree", "--capacity", "50%", "--json")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	for _, policy := range []string{"retrieval", "knowledge-tree"} {
		var row struct {
			Engine, Policy string
			Requests       int
			Prompt         int     `json:"prompt_tokens"`
			Cached         int     `json:"cached_tokens"`
			TTFT           float64 `json:"ttft_p50_ms"`
		}
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if row.Policy != policy || row.Requests != 3 || row.Cached <= 0 || row.Cached >= row.Prompt || row.TTFT <= 0 ||
			!strings.Contains(row.Engine, "simulator") {
			t.Errorf("%+v", row)
		}
	}
	if out, err = run(t, "replay", "--trace", trc, "--blocks", blocks); err != nil || !strings.Contains(out, "simulator") ||
		!strings.Contains(out, "best") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReplayEngineDies: an engine that breaks off in the middle of an answer ends the run; no table is printed.
func TestReplayEngineDies(t *testing.T) {
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half an\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer fake.Close()
	out, err := run(t, "replay", "--trace", write(t, "t.jsonl", someTrace), "--blocks", write(t, "b.jsonl", someBlocks), "--engine", fake.URL,
		"--model", "m")
	if err == nil || !strings.Contains(err.Error(), "interrupted") || !strings.Contains(err.Error(), fake.URL) {
		t.Errorf("got %v", err)
	}
	if out != "" {
		t.Errorf("printed %q", out)
	}
}

func TestVersion(t *testing.T) {
	if out, err := run(t, "version"); err != nil || !strings.HasPrefix(out, "ragpilot ") {
		t.Errorf("%q, %v", out, err)
	}
}

// refusedURL is an address on this machine without a listener.
func refusedURL(t *testing.T) string {
	t.Helper()
	return "http://" + testkit.FreeAddress(t)
}
