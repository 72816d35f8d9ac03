//go:build linux || darwin

package journal_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/state/journal"
)

// fullDisk marks the process whose files are limited.
const fullDisk = "RAGPILOT_JOURNAL_FULL"

// limitFiles makes every write beyond an offset fail, after what fits was written: as on a full disk, short writes
// included. It holds for the whole process until the returned function is called.
func limitFiles(t testing.TB, offset uint64) (restore func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limited := old
	limited.Cur = offset
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// However often the disk is full and for how long: an Append that fails leaves nothing, one that succeeds is replayed.
//
// The limit holds for the whole process, and go test writes files of its own from it: the test is a process of its own.
func TestFullDisk(t *testing.T) {
	if os.Getenv(fullDisk) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), fullDisk+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		return
	}
	root := fastDir(t)
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o := journal.Options{MaxRecords: 1000, MaxBytes: 8192}
		j, err := journal.Open(dir, o)
		if err != nil {
			rt.Fatal(err)
		}
		var kept []string
		for i := range rapid.IntRange(1, 30).Draw(rt, "appends") {
			rec := fmt.Sprint(i, " ", strings.Repeat("x", rapid.IntRange(0, 400).Draw(rt, "length")))
			var restore func()
			if rapid.Bool().Draw(rt, "limited") {
				restore = limitFiles(t, uint64(rapid.IntRange(0, 5000).Draw(rt, "room")))
			}
			err := j.Append([]byte(rec))
			if restore != nil {
				restore()
			}
			if err == nil {
				kept = append(kept, rec)
				continue
			}
			refused++
			if restore == nil {
				rt.Fatalf("with room: %v", err)
			}
		}
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
		if j, err = journal.Open(dir, o); err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		var got []string
		if _, err := j.Replay(func(rec []byte) error { got = append(got, string(rec)); return nil }); err != nil {
			rt.Fatal(err)
		}
		if len(got) > len(kept) || !slices.Equal(got, kept[len(kept)-len(got):]) {
			rt.Fatalf("replayed %q\nacknowledged %q", got, kept)
		}
		total := 0
		for _, r := range kept {
			total += len(r) + 20
		}
		if total+3*32 <= 4096 && len(got) != len(kept) {
			rt.Fatalf("replayed %d of %d", len(got), len(kept))
		}
		if r := j.Recovery(); r.TornBytes != 0 || r.SkippedBytes != 0 {
			rt.Fatalf("a refused record left something: %+v", r)
		}
	})
	if refused == 0 {
		t.Error("no write was ever refused")
	}
	t.Logf("%d appends were refused", refused)
}
