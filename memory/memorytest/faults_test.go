package memorytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// faultVariable makes this program run the suite on a backend with that fault.
const faultVariable = "MEMORYTEST_FAULT"

// faulty is a fake backend: a right one with one thing wrong.
type faulty struct {
	memory.Backend
	fault string
}

// faults are what the suite has to find, each with a check that must notice it.
var faults = map[string]string{
	"loses rollback":         "RollBack",
	"leaks scopes":           "ScopesAreSeparate",
	"counts others' words":   "SearchIgnoresOthers",
	"keeps history texts":    "Delete",
	"keeps history of scope": "DeleteAll",
	"forgets history":        "Update",
	"loses space":            "Space",
	"keeps the window":       "Window",
	"follows nothing":        "Follow",
	"hides unembedded":       "Parts",
	"loses metadata":         "Fields",
	"keeps removed":          "Delete",
	"loses entities":         "Parts",
}

func (f *faulty) Change(ctx context.Context, change func(memory.Tx) error) error {
	var failed error
	err := f.Backend.Change(ctx, func(tx memory.Tx) error {
		failed = change(&faultyTx{tx, f.fault})
		if f.fault == "loses rollback" {
			return nil
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

func (f *faulty) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	if f.fault == "leaks scopes" {
		scope = memory.Scope{User: scope.User}
	}
	if f.fault == "hides unembedded" && part == memory.Unembedded {
		return nil
	}
	return f.Backend.Scan(ctx, scope, part, yield)
}

func (f *faulty) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (memory.State, error) {
	switch f.fault {
	case "counts others' words", "leaks scopes":
		scope = memory.Scope{}
	case "follows nothing":
		if since > 0 {
			return f.Backend.Follow(ctx, memory.Scope{User: "nobody"}, since, to)
		}
	}
	return f.Backend.Follow(ctx, scope, since, to)
}

type faultyTx struct {
	memory.Tx
	fault string
}

func (t *faultyTx) Put(ctx context.Context, r *memory.Record) error {
	bare := *r
	switch t.fault {
	case "loses metadata":
		bare.Memory.Metadata = nil
		r = &bare
	case "loses entities":
		bare.Entities = nil
		r = &bare
	}
	return t.Tx.Put(ctx, r)
}

func (t *faultyTx) SetSpace(ctx context.Context, space memory.Space) error {
	if t.fault == "loses space" {
		return nil
	}
	return t.Tx.SetSpace(ctx, space)
}

func (t *faultyTx) Remove(ctx context.Context, id string) (bool, error) {
	if t.fault == "keeps removed" {
		_, ok, err := t.Get(ctx, id)
		return ok, err
	}
	return t.Tx.Remove(ctx, id)
}

func (t *faultyTx) Append(ctx context.Context, r *memory.Revision) (bool, error) {
	if t.fault == "forgets history" && r.Event == memory.Updated {
		return true, nil
	}
	return t.Tx.Append(ctx, r)
}

func (t *faultyTx) Erase(ctx context.Context, scope memory.Scope, id string) (int, error) {
	if t.fault == "keeps history texts" && id != "" || t.fault == "keeps history of scope" && id == "" {
		return 1, nil
	}
	return t.Tx.Erase(ctx, scope, id)
}

func (t *faultyTx) SetMessages(ctx context.Context, log memory.Log, messages []memory.Message) error {
	if t.fault == "keeps the window" && len(messages) == 0 {
		return nil
	}
	return t.Tx.SetMessages(ctx, log, messages)
}

// TestFaulty runs the suite on a faulty backend, in the process that TestSuiteFindsFaults starts.
func TestFaulty(t *testing.T) {
	fault := os.Getenv(faultVariable)
	if fault == "" {
		t.Skip("is run by TestSuiteFindsFaults")
	}
	RunBackend(t, func(*testing.T) memory.Backend { return &faulty{memory.NewInMemory(), fault} })
}

// The suite fails for each of the faults, in the check that is about it: a suite that finds nothing proves nothing.
func TestSuiteFindsFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the suite once for each fault")
	}
	for fault, check := range faults {
		t.Run(fault, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaulty$", "-test.v", "-test.short", "-rapid.nofailfile",
				"-rapid.checks=5")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes; %s should have noticed", check)
			}
			if !strings.Contains(string(out), fmt.Sprintf("--- FAIL: TestFaulty/%s ", check)) &&
				!strings.Contains(string(out), fmt.Sprintf("--- FAIL: TestFaulty/Store/%s ", check)) {
				t.Errorf("%s did not notice:\n%s", check, out)
			}
		})
	}
}
