package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

func openList(t testing.TB, dir string, maxRecords, maxBytes int64) *notes {
	t.Helper()
	n, aside, err := openNotes(dir, maxRecords, maxBytes)
	if err != nil || aside != nil {
		t.Fatal(err, aside)
	}
	t.Cleanup(func() { _ = n.db.Close() })
	return n
}

func contents(t testing.TB, n *notes) (records []string) {
	t.Helper()
	if damaged, err := n.each(func(rec []byte) { records = append(records, string(rec)) }); err != nil || damaged != 0 {
		t.Fatalf("%d damaged, %v", damaged, err)
	}
	return records
}

// Whatever is appended and however often the list is opened again: what is kept are the last records, within both limits, and of each limit at
// least what trimming in steps leaves.
func TestKeepsTheLastRecordsWithinLimits(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		maxRecords, maxBytes := rapid.Int64Range(1, 200).Draw(rt, "records"), rapid.Int64Range(100, 2000).Draw(rt, "bytes")
		n := openList(t, dir, maxRecords, maxBytes)
		var all []string
		for i := range rapid.IntRange(1, 60).Draw(rt, "appends") {
			rec := fmt.Sprint(i, strings.Repeat("x", rapid.IntRange(0, 90).Draw(rt, "length")))
			if err := n.append([]byte(rec)); err != nil {
				rt.Fatal(err)
			}
			all = append(all, rec)
			if rapid.IntRange(0, 9).Draw(rt, "again") == 0 {
				if err := n.close(); err != nil {
					rt.Fatal(err)
				}
				n = openList(t, dir, maxRecords, maxBytes)
			}
			got, size := contents(t, n), int64(0)
			for _, r := range got {
				size += int64(len(r))
			}
			if !slices.Equal(got, all[len(all)-len(got):]) || len(got) == 0 {
				rt.Fatalf("%q is kept of %q", got, all)
			}
			if int64(len(got)) > maxRecords || size > maxBytes || int64(len(got)) != n.records || size != n.bytes {
				rt.Fatalf("%d records of %d bytes, counted %d of %d, limits %d and %d", len(got), size, n.records, n.bytes, maxRecords, maxBytes)
			}
			// One step removes a 64th of the limit, here up to three records.
			if kept := int64(len(all)); kept > int64(len(got)) && int64(len(got)) < maxRecords-3 && size < maxBytes-3*93 {
				rt.Fatalf("only %d records of %d bytes are kept", len(got), size)
			}
		}
		if err := n.close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestOneOpener(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	n := openList(t, dir, 10, 1000)
	if _, _, err := openNotes(dir, 10, 1000); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	if err := openList(t, dir, 10, 1000).close(); err != nil {
		t.Error(err)
	}
}

// Nobody else can read what is kept.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	dir := filepath.Join(t.TempDir(), "state")
	n := openList(t, dir, 10, 1000)
	if err := n.append([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range append(entries, nil) {
		path, want := dir, os.FileMode(0o700)
		if e != nil {
			path, want = filepath.Join(dir, e.Name()), 0o600
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v, %v", path, info.Mode(), want, err)
		}
	}
}

func TestConcurrentAppends(t *testing.T) {
	n := openList(t, t.TempDir(), 1000, 1<<20)
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for i := range 25 {
				if err := n.append(fmt.Appendf(nil, "%d %02d", who, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := contents(t, n)
	next := map[byte]int{}
	for _, rec := range got {
		if want := fmt.Sprintf("%c %02d", rec[0], next[rec[0]]); rec != want {
			t.Fatalf("%q, want %q", rec, want)
		}
		next[rec[0]]++
	}
	if len(got) != 200 {
		t.Errorf("%d records", len(got))
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			n := openList(b, b.TempDir(), maxRecords, maxBytes)
			rec := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := n.append(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Opening checks all that is there and measures it, reading goes through it once more.
func BenchmarkOpenAndRead(b *testing.B) {
	dir := b.TempDir()
	n := openList(b, dir, maxRecords, maxBytes)
	for range maxRecords {
		if err := n.append(make([]byte, 512)); err != nil {
			b.Fatal(err)
		}
	}
	if err := n.close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := openList(b, dir, maxRecords, maxBytes)
		if got := contents(b, n); len(got) != maxRecords {
			b.Fatal(len(got))
		}
		if err := n.close(); err != nil {
			b.Fatal(err)
		}
	}
}
