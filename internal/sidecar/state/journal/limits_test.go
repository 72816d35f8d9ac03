package journal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/state/journal"
)

// Whatever is appended and however often the journal is opened again: what is replayed are the last records, at least
// half of the limit and never more than it, and the disk holds no more than it may.
func TestKeepsTheLastRecordsWithinLimits(t *testing.T) {
	root := fastDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o := journal.Options{
			MaxRecords: rapid.IntRange(2, 12).Draw(t, "records"),
			MaxBytes:   int64(rapid.IntRange(1024, 4096).Draw(t, "bytes")),
		}
		largest := int(o.MaxBytes/2) - 32 - 20
		j, err := journal.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		var all []string
		check := func(t *rapid.T) {
			var total int64
			segments := 0
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				info, err := e.Info()
				if err != nil {
					t.Fatal(err)
				}
				if e.Name() != "lock" {
					total += info.Size()
					segments++
				}
			}
			if total > o.MaxBytes {
				t.Fatalf("%d bytes on disk, limit %d", total, o.MaxBytes)
			}
			kept, counted, size := j.Size()
			if counted != segments || size != total {
				t.Fatalf("Size returns %d segments of %d bytes, there are %d of %d", counted, size, segments, total)
			}
			if kept > o.MaxRecords || segments > o.MaxRecords+1 {
				t.Fatalf("%d records in %d segments, limit %d records", kept, segments, o.MaxRecords)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				r := strings.Repeat(string(rune('a'+len(all)%26)), rapid.IntRange(0, largest).Draw(t, "length"))
				if err := j.Append([]byte(r)); err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
			},
			"append short": func(t *rapid.T) {
				r := rapid.StringN(0, 8, 8).Draw(t, "record")
				if err := j.Append([]byte(r)); err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
			},
			"open again": func(t *rapid.T) {
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				if j, err = journal.Open(dir, o); err != nil {
					t.Fatal(err)
				}
				var got []string
				if _, err := j.Replay(func(rec []byte) error { got = append(got, string(rec)); return nil }); err != nil {
					t.Fatal(err)
				}
				if len(got) > len(all) || !slices.Equal(got, all[len(all)-len(got):]) {
					t.Fatalf("replayed %q, appended %q", got, all)
				}
				// What must be there: the last of them, up to half of both limits.
				records, bytes := 0, int64(32)
				for _, r := range slices.Backward(all) {
					bytes += int64(len(r)) + 20
					if records == o.MaxRecords/2 || bytes > o.MaxBytes/2 {
						break
					}
					records++
				}
				if len(got) < records {
					t.Fatalf("replayed %d records, at least %d must be kept", len(got), records)
				}
			},
			"": check,
		})
	})
}

func TestLoweredLimits(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{MaxRecords: 1000})
	add(t, j, numbered(0, 700)...)
	closeIt(t, j)
	j = open(t, dir, journal.Options{MaxRecords: 10})
	if got := replay(t, j); len(got) != 700 {
		t.Fatalf("replayed %d records", len(got))
	}
	add(t, j, numbered(700, 720)...)
	if records, _, _ := j.Size(); records > 10 {
		t.Fatalf("%d records are kept, limit 10", records)
	}
	if got := files(t, dir); len(got) > 4 {
		t.Fatalf("files: %q", got)
	}
}

// A segment that cannot be begun fails the Append that needs it, and no other.
func TestDirectoryGoneAndBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j := open(t, dir, journal.Options{MaxRecords: 4})
	add(t, j, "a", "b")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Skipf("an open directory cannot be moved here: %v", err)
	}
	for range 3 {
		if err := j.Append([]byte("lost")); err == nil {
			t.Fatal("an append without a directory succeeded")
		}
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	add(t, j, "c")
	closeIt(t, j)
	j = open(t, dir, journal.Options{MaxRecords: 4})
	if got := replay(t, j); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("replayed %q", got)
	}
}

// Segments that come and go leave no file open, whether Sync is ever called or not.
func TestNoFileStaysOpen(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("cannot count open files here: %v", err)
		}
		return len(entries)
	}
	before := count()
	for _, sync := range []bool{false, true} {
		j := open(t, fastDir(t), journal.Options{MaxRecords: 10})
		for n := range 500 {
			add(t, j, "x")
			if sync && n%7 == 0 {
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			if now := count(); now > before+4 { // the lock, the active segment, the full one
				t.Fatalf("%d files are open after %d appends, %d before", now, n+1, before)
			}
		}
		closeIt(t, j)
		if now := count(); now != before {
			t.Fatalf("%d files are open after Close, %d before", now, before)
		}
	}
}
