package prefixdiff_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// label is a finding that a run expects. Lines count from 1.
type label struct {
	Line    int    `json:"line"`
	Against int    `json:"against"`
	Also    []int  `json:"against_also"` // they share as much as Against does, and are right too
	Cause   string `json:"cause"`
	Path    string `json:"path"`
	Within  bool   `json:"within"` // a path below Path is right too
}

// clientRun is what one program sent, in order.
type clientRun struct {
	Name   string   `json:"run"`
	Count  int      `json:"bodies"`
	Want   []label  `json:"findings"` // none: the program has no fault
	Known  []string `json:"known"`
	bodies [][]byte
}

// clientRuns reads testdata/clients.jsonl.zst: a line of JSON for each run, and behind it the run's bodies, one a line. They were recorded once
// from programs that asked a fake server through openai-go 3.95.0, anthropic-sdk-go 1.84.0, langchaingo 0.1.14, Eino 0.7.36 (eino-ext's openai
// 0.1.7), ADK 1.4.0 with genai 1.57.0, and MCP's go-sdk 1.8.0. Each case ran twice: without a fault, and with one that spoils the prefix, such as a
// clock in the system text. The labels were written before the code that they judge, and checked against the bodies.
//
// "known" lists where the code does not agree with a label. One that it agrees with must be taken out:
//
//	zstd -d clients.jsonl.zst && $EDITOR clients.jsonl && zstd -f --ultra -22 --long=27 clients.jsonl
//
// Three are about tools, and found: the path leads further, to what was changed in the tool. In the other eight a name or a sentence at the end of
// the system text differs, and then the question: nothing behind the difference was sent before, so nothing is lost.
func clientRuns(t *testing.T) (runs []clientRun) {
	t.Helper()
	packed, err := os.ReadFile("testdata/clients.jsonl.zst")
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	data, err := reader.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")); len(lines) > 0; {
		var r clientRun
		if err := json.Unmarshal(lines[0], &r); err != nil || r.Count < 1 || r.Count >= len(lines) {
			t.Fatalf("%d bodies behind %.100q: %v", len(lines)-1, lines[0], err)
		}
		r.bodies, lines = lines[1:1+r.Count], lines[1+r.Count:]
		runs = append(runs, r)
	}
	return runs
}

// clientFindings returns what an index finds in the prompts of a run.
func clientFindings(t *testing.T, run string, prompts []prefixdiff.Prompt, cfg prefixdiff.Config) (found []label) {
	t.Helper()
	x := index(t, cfg)
	for i, p := range prompts {
		f, ok := x.Add(p)
		if !ok {
			continue
		}
		found = append(found, label{Line: f.Number + 1, Against: f.Against + 1, Cause: string(f.Cause), Path: f.Path})
		// What is estimated piece by piece may add up to a little more.
		if f.LostTokens < 0 || f.Token < 0 || f.Token+f.LostTokens > p.Tokens()*102/100 {
			t.Errorf("%s, line %d: %d tokens lost behind %d, of %d", run, i+1, f.LostTokens, f.Token, p.Tokens())
		}
	}
	return found
}

// disagreements says what of the findings is not as the labels want it.
func disagreements(found, want []label) (faults []string) {
	for _, w := range want {
		i := slices.IndexFunc(found, func(f label) bool { return f.Line == w.Line })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("line %d: nothing found, want %s at %s against %d", w.Line, w.Cause, w.Path, w.Against))
			continue
		}
		f := found[i]
		found = slices.Delete(found, i, i+1)
		if f.Cause != w.Cause {
			faults = append(faults, fmt.Sprintf("line %d: cause %s, want %s", w.Line, f.Cause, w.Cause))
		}
		if f.Path != w.Path && (!w.Within || !strings.HasPrefix(f.Path, w.Path+".") && !strings.HasPrefix(f.Path, w.Path+"[")) {
			faults = append(faults, fmt.Sprintf("line %d: path %s, want %s", w.Line, f.Path, w.Path))
		}
		if f.Against != w.Against && !slices.Contains(w.Also, f.Against) {
			faults = append(faults, fmt.Sprintf("line %d: against %d, want %d %d", w.Line, f.Against, w.Against, w.Also))
		}
	}
	for _, f := range found {
		faults = append(faults, fmt.Sprintf("line %d: found %s at %s against %d, want nothing", f.Line, f.Cause, f.Path, f.Against))
	}
	return faults
}

// TestClients: in what real clients send an index finds what is planted, and nothing else.
func TestClients(t *testing.T) {
	planted, stable := 0, 0
	for _, r := range clientRuns(t) {
		planted += len(r.Want)
		if len(r.Want) == 0 {
			stable += r.Count - 1
		}
		var prompts []prefixdiff.Prompt
		for _, body := range r.bodies {
			prompts = append(prompts, parse(t, string(body)))
		}
		for _, cfg := range []prefixdiff.Config{{}, {KeepTexts: true}} {
			if faults := disagreements(clientFindings(t, r.Name, prompts, cfg), r.Want); !slices.Equal(faults, r.Known) {
				t.Errorf("%s (texts kept: %t): %q, want %q", r.Name, cfg.KeepTexts, faults, r.Known)
			}
		}
	}
	if planted != 427 || stable != 6501 {
		t.Errorf("%d faults and %d pairs without one were read, want 427 and 6501", planted, stable)
	}
}
