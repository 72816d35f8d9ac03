package sim_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// judged is what the evaluation's own cache model says of one run of a trace.
type judged struct {
	Plan     bool   // testdata/synthetic/plan.jsonl or, in TestJudge, references; else retrieval order
	History  bool   // later turns resend the conversation
	Capacity string // as asked for
	Tokens   int    // what that is in tokens; 0: unlimited
	Evicted  int
	Oversize int
	Prompt   []int // tokens of each request
	Cached   []int // of these, read from the cache
}

// check runs the simulator on the same input and compares every request.
func (want judged) check(t *testing.T, requests []trace.Request, blocks *trace.Blocks, plan []trace.Plan) {
	t.Helper()
	capacity, err := trace.CapacityTokens(want.Capacity, requests, blocks, want.History)
	if err != nil {
		t.Fatal(err)
	}
	if capacity != want.Tokens {
		t.Fatalf("capacity %s is %d tokens, the judge says %d", want.Capacity, capacity, want.Tokens)
	}
	if !want.Plan {
		plan = nil
	}
	e := sim.New(sim.Options{CapacityTokens: capacity, Reply: answering(requests)})
	usage := replay(t, e, requests, blocks, plan, want.History)
	if len(usage) != len(want.Cached) {
		t.Fatalf("%d requests, the judge has %d", len(usage), len(want.Cached))
	}
	wrong := 0
	for i, u := range usage {
		if u.PromptTokens == want.Prompt[i] && u.CachedTokens == want.Cached[i] {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("request %d (%s): prompt %d, cached %d; the judge says %d and %d",
				i, requests[i].ID, u.PromptTokens, u.CachedTokens, want.Prompt[i], want.Cached[i])
		}
	}
	s := e.Stats()
	if wrong > 0 || s.EvictedBlocks != want.Evicted || s.Oversize != want.Oversize {
		t.Errorf("%d of %d requests differ; evicted %d, oversize %d; the judge says %d and %d",
			wrong, len(usage), s.EvictedBlocks, s.Oversize, want.Evicted, want.Oversize)
	}
	t.Logf("capacity %s (%d tokens): %d requests, hit ratio %.4f, evicted %d, oversize %d",
		want.Capacity, capacity, len(usage), s.HitRatio(), s.EvictedBlocks, s.Oversize)
}

// TestSynthetic compares with the judge's figures for a made-up trace; testdata/make.py wrote the files.
func TestSynthetic(t *testing.T) {
	const dir = "testdata/synthetic/"
	requests, blocks, err := trace.Load(dir+"trace.jsonl", dir+"blocks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := trace.LoadPlan(dir + "plan.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(dir + "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []judged
	if err := json.Unmarshal(raw, &runs); err != nil {
		t.Fatal(err)
	}
	for _, want := range runs {
		name := want.Capacity
		if want.Plan {
			name += ",plan"
		}
		if !want.History {
			name += ",no history"
		}
		t.Run(name, func(t *testing.T) { want.check(t, requests, blocks, plan) })
	}
}

// driver asks the judge for the figures of every request, as a list of judged.
const driver = `
import json, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import prefixcache as judge
trace, blocks = judge.load(sys.argv[2], sys.argv[3])
plan = judge.read_jsonl(sys.argv[4]) if sys.argv[4] else None
if plan:
    errors = judge.validate(trace, plan)
    assert not errors, errors
prompts = judge.Prompts(trace, blocks)
runs = []
for spec in ("unlimited", "20%", "5%"):
    per, cap = [], judge.capacity_tokens(spec, trace, blocks)
    m = judge.simulate(trace, blocks, plan, cap, prompts=prompts, plain_total=1, per_request=per)
    runs.append({"plan": plan is not None, "history": True, "capacity": spec, "tokens": cap or 0,
                 "evicted": m["evicted_blocks"], "oversize": m["oversize"],
                 "prompt": [x[1] for x in per], "cached": [x[2] for x in per]})
json.dump(runs, sys.stdout)
`

// TestJudge compares with the judge itself on whole traces, where both are at hand.
func TestJudge(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("replays whole traces twice; TestSynthetic covers a small one")
	}
	judge := testkit.Shared(t, "eval", "prefixcache.py") // TestSynthetic covers a small trace without it
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is needed to run the judge; TestSynthetic covers a small trace without it")
	}
	for _, tt := range []struct {
		name, folder string
		dedup        bool
	}{
		{"multihop", "multihop-2wiki", false},
		{"memory", "memory-locomo-k100", false},
		{"chat", "chat-mtragun", false},
		{"chat with references", "chat-mtragun", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of the time goes into Python
			tracePath := testkit.Shared(t, "traces", tt.folder, "trace.jsonl")
			blocksPath := testkit.Shared(t, "traces", tt.folder, "blocks.jsonl")
			requests, blocks, err := trace.Load(tracePath, blocksPath)
			if err != nil {
				t.Fatal(err)
			}
			var plan []trace.Plan
			planPath := ""
			if tt.dedup {
				plan = referToShown(requests)
				planPath = filepath.Join(t.TempDir(), "plan.jsonl")
				writePlan(t, planPath, plan)
			}
			cmd := exec.CommandContext(t.Context(), python, "-B", "-c", driver, filepath.Dir(judge), tracePath, blocksPath, planPath)
			cmd.Stderr = os.Stderr
			raw, err := cmd.Output()
			if err != nil {
				t.Fatalf("the judge: %v", err)
			}
			var runs []judged
			if err := json.Unmarshal(raw, &runs); err != nil {
				t.Fatal(err)
			}
			for _, want := range runs {
				t.Run(want.Capacity, func(t *testing.T) { want.check(t, requests, blocks, plan) })
			}
		})
	}
}

// referToShown plans references for what a session has been shown already, and a hint beside them.
func referToShown(requests []trace.Request) []trace.Plan {
	shown := map[string]map[string]bool{}
	var plan []trace.Plan
	for _, q := range requests {
		p := trace.Plan{ID: q.ID, Session: q.Session, Turn: q.Turn}
		if shown[q.Session] == nil {
			shown[q.Session] = map[string]bool{}
		}
		for _, d := range q.Docs {
			if shown[q.Session][d] {
				p.Refs = append(p.Refs, d)
			} else {
				p.Docs = append(p.Docs, d)
			}
			shown[q.Session][d] = true
		}
		if len(p.Refs) > 0 {
			p.Hint = "Documents by importance: " + strings.Join(q.Docs, ", ")
		}
		plan = append(plan, p)
	}
	return plan
}

func writePlan(t *testing.T, path string, plan []trace.Plan) {
	t.Helper()
	w, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan {
		if err := w.WritePlan(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := trace.LoadPlan(path)
	if err != nil || len(again) != len(plan) {
		t.Fatalf("plan read again: %d lines, %v", len(again), err)
	}
	if diff := cmp.Diff(plan[len(plan)-1].Refs, again[len(plan)-1].Refs); diff != "" {
		t.Fatalf("plan read again (-want +got):\n%s", diff)
	}
}
