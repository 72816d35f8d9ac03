//go:build linux

package faulttest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for what must happen. Nothing waits that long when all is well, but the machine may
// have other things to do.
const patience = time.Minute

// engineRecord names the file in which a process that is an upstream, see runEngine, keeps what it got.
const engineRecord = "RAGPILOT_FAULTTEST_RECORD"

// folder is for what all tests share, and is removed in the end.
var folder string

func TestMain(m *testing.M) {
	if record := os.Getenv(engineRecord); record != "" {
		if err := runEngine(record, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// They mostly wait: more of them fit beside each other than there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	var err error
	if folder, err = os.MkdirTemp("", "faulttest"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}))
}

// program builds the program once and returns its name.
var program = sync.OnceValues(func() (string, error) {
	out := filepath.Join(folder, "ragpilot")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", out, "./cmd/ragpilot")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return out, nil
})

// faults begins a test of this package: they run beside each other, as they mostly wait.
func faults(t *testing.T) {
	t.Helper()
	if os.Getenv("RAGPILOT_FAULTS") != "1" {
		t.Skip("starts and kills processes, and needs the machine for itself: set RAGPILOT_FAULTS=1, as .ci/run long does")
	}
	t.Parallel()
}

// eventually waits until a condition holds that no channel signals.
func eventually(t *testing.T, what string, holds func() bool) bool {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Errorf("%s: did not happen within %v", what, patience)
			return false
		}
	}
	return true
}
