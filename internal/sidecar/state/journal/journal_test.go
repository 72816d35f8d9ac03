package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/state/journal"
)

func open(t testing.TB, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

var fastDir = journal.FastDir

func closeIt(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, j *journal.Journal, records ...string) {
	t.Helper()
	for _, r := range records {
		if err := j.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
}

func replay(t testing.TB, j *journal.Journal) []string {
	t.Helper()
	var out []string
	n, err := j.Replay(func(rec []byte) error {
		out = append(out, string(rec))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n != len(out) {
		t.Fatalf("Replay returned %d, gave %d", n, len(out))
	}
	return out
}

// files returns the names in a directory.
func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func numbered(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint("record ", i))
	}
	return out
}

func TestWhatWasAppendedIsReplayedInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	j := open(t, dir, journal.Options{Version: 7})
	if got := replay(t, j); len(got) != 0 {
		t.Fatalf("a new journal has %q", got)
	}
	want := []string{"one", "", "three\x00\xff", strings.Repeat("long ", 40_000)}
	add(t, j, want...)
	closeIt(t, j)
	for range 2 { // opening changes nothing
		j = open(t, dir, journal.Options{Version: 7})
		if got := replay(t, j); !slices.Equal(got, want) {
			t.Fatalf("got %d records, want %d", len(got), len(want))
		}
		if got := replay(t, j); !slices.Equal(got, want) {
			t.Fatal("a second replay differs")
		}
		if r := j.Recovery(); r.Records != len(want) || r.Segments != 1 || r.TornBytes != 0 || r.SkippedBytes != 0 {
			t.Fatalf("recovery: %+v", r)
		}
		closeIt(t, j)
	}
	j = open(t, dir, journal.Options{Version: 7})
	add(t, j, "later")
	closeIt(t, j)
	j = open(t, dir, journal.Options{Version: 7})
	if got := replay(t, j); !slices.Equal(got, append(slices.Clone(want), "later")) {
		t.Fatalf("got %d records after going on", len(got))
	}
	if got := files(t, dir); len(got) != 2 {
		t.Fatalf("going on began another segment: %q", got)
	}
}

func TestOrderOfCalls(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	add(t, j, "a", "b")
	if _, err := j.Replay(nil); !errors.Is(err, journal.ErrOrder) {
		t.Errorf("Replay after Append: %v", err)
	}
	closeIt(t, j)
	closeIt(t, j)
	if err := j.Append(nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	if err := j.Sync(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Sync after Close: %v", err)
	}
	if _, err := j.Replay(nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Replay after Close: %v", err)
	}
	j = open(t, dir, journal.Options{})
	enough := errors.New("enough")
	n, err := j.Replay(func([]byte) error {
		if err := j.Append(nil); !errors.Is(err, journal.ErrOrder) {
			t.Errorf("Append within Replay: %v", err)
		}
		return enough
	})
	if n != 1 || !errors.Is(err, enough) {
		t.Errorf("Replay that the callback stopped: %d, %v", n, err)
	}
	add(t, j, "c")
}

func TestOneOpener(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, journal.Options{})
	_, err := journal.Open(dir, journal.Options{})
	if !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("a second opener got %v", err)
	}
	if runtime.GOOS == "linux" && !strings.Contains(err.Error(), fmt.Sprintf("%s, process %d", dir, os.Getpid())) {
		t.Errorf("the error does not say who has it: %v", err)
	}
	add(t, first, "the first is not disturbed")
	closeIt(t, first)
	second := open(t, dir, journal.Options{})
	if got := replay(t, second); len(got) != 1 {
		t.Fatalf("got %q", got)
	}
}

func TestAnotherVersionStartsEmpty(t *testing.T) {
	dir := t.TempDir()
	o := journal.Options{Version: 1, MaxRecords: 4}
	j := open(t, dir, o)
	add(t, j, numbered(0, 4)...)
	closeIt(t, j)

	o.Version = 2
	j = open(t, dir, o)
	if got := replay(t, j); len(got) != 0 {
		t.Fatalf("records of another version: %q", got)
	}
	want := []string{"0000000000000001.journal.old", "0000000000000002.journal.old"}
	if got := j.Recovery().OtherVersion; !slices.Equal(got, want) {
		t.Fatalf("reported %q, want %q", got, want)
	}
	if got := files(t, dir); !slices.Equal(got, append(want, "lock")) {
		t.Fatalf("files: %q", got)
	}
	add(t, j, "of version 2")
	closeIt(t, j)

	o.Version = 1 // back again: what is old now replaces what was
	j = open(t, dir, o)
	if got := replay(t, j); len(got) != 0 {
		t.Fatalf("records of another version: %q", got)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"0000000000000003.journal.old", "lock"}) {
		t.Fatalf("files: %q", got)
	}
	add(t, j, "of version 1 again")
	closeIt(t, j)
	j = open(t, dir, o)
	if got := replay(t, j); !slices.Equal(got, []string{"of version 1 again"}) || len(j.Recovery().OtherVersion) != 0 {
		t.Fatalf("got %q, %+v", got, j.Recovery())
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has other permissions")
	}
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir, journal.Options{MaxRecords: 2})
	add(t, j, "a", "b", "c")
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	for _, name := range files(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestOptionsAndSizes(t *testing.T) {
	for _, o := range []journal.Options{{MaxRecords: -1}, {MaxRecords: 1}, {MaxBytes: -1}, {MaxBytes: 1023}} {
		if j, err := journal.Open(t.TempDir(), o); err == nil {
			_ = j.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
	dir := t.TempDir()
	j := open(t, dir, journal.Options{MaxBytes: 1024})
	const largest = 1024/2 - 32 - 20
	if err := j.Append(make([]byte, largest+1)); !errors.Is(err, journal.ErrTooLarge) {
		t.Errorf("a record too large: %v", err)
	}
	add(t, j, strings.Repeat("x", largest), "y")
	records, segments, size := j.Size()
	if records != 2 || segments != 2 || size != 512+32+21 {
		t.Errorf("size: %d records, %d segments, %d bytes", records, segments, size)
	}
}

func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	foreign := []string{"README", "1.journal", "000000000000000G.journal", "0000000000000000A.journal", "000000000000000A.journal"}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not ours"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(dir, "0000000000000009.journal.tmp") // of a process that was killed while it began a segment
	if err := os.WriteFile(left, []byte("RPJ"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, journal.Options{})
	add(t, j, "ours")
	for _, name := range foreign {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "not ours" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file is still there: %v", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	dir := t.TempDir()
	o := journal.Options{MaxRecords: 2000}
	j := open(t, dir, o)
	var wg sync.WaitGroup
	const writers, each = 8, 200
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := j.Append(fmt.Appendf(nil, "%d %d %s", w, i, bytes.Repeat([]byte{'x'}, i))); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if err := j.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	closeIt(t, j)
	j = open(t, dir, o)
	next := map[int]int{}
	for _, r := range replay(t, j) {
		var w, i int
		if _, err := fmt.Sscan(r, &w, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[w] {
			t.Fatalf("writer %d: %d after %d", w, i, next[w]-1)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != each {
			t.Errorf("writer %d: %d of %d records", w, next[w], each)
		}
	}
}
