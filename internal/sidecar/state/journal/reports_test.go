package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReports(t *testing.T) {
	fill := func(t *testing.T) (dir string, path func(seq uint64) string) {
		dir = t.TempDir()
		j, err := Open(dir, Options{MaxRecords: 8})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 7 { // 4 and 3; each 20+4 bytes
			if err := j.Append(fmt.Appendf(nil, "no %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return dir, func(seq uint64) string { return filepath.Join(dir, fileName(seq)) }
	}
	truncate := func(t *testing.T, path string, size int64) {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	read := func(t *testing.T, path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(t *testing.T, path string, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(t *testing.T, path string, at int) {
		data := read(t, path)
		data[at] ^= 0x10
		write(t, path, data)
	}
	one := func(r Recovery, segment string) Recovery {
		r.Damages, r.Damaged = 1, []Damaged{{segment, 1, r.SkippedBytes}}
		return r
	}
	const first, second = "0000000000000001.journal", "0000000000000002.journal"
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path func(uint64) string)
		want   Recovery
	}{
		{"none", func(*testing.T, func(uint64) string) {}, Recovery{Records: 7, Segments: 2}},
		{
			"the last record is half written",
			func(t *testing.T, path func(uint64) string) { truncate(t, path(2), 32+2*24+21) },
			Recovery{Records: 6, Segments: 2, TornBytes: 21},
		},
		{
			"less than a record's head is left",
			func(t *testing.T, path func(uint64) string) { truncate(t, path(2), 32+2*24+1) },
			Recovery{Records: 6, Segments: 2, TornBytes: 1},
		},
		{
			"power was lost: the file is as long as it was, its end never came",
			func(t *testing.T, path func(uint64) string) {
				truncate(t, path(2), 32+24)
				truncate(t, path(2), 32+3*24)
			},
			Recovery{Records: 5, Segments: 2, TornBytes: 48},
		},
		{
			"a flipped bit in the last segment",
			func(t *testing.T, path func(uint64) string) { flip(t, path(2), 32+24+21) },
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 24}, second),
		},
		{
			"a flipped bit in the last record",
			func(t *testing.T, path func(uint64) string) { flip(t, path(2), 32+2*24+21) },
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 24}, second),
		},
		{
			"a length that reaches beyond the file is no half-written record",
			func(t *testing.T, path func(uint64) string) { flip(t, path(2), 32+1) },
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 24}, second),
		},
		{
			"a flipped bit in an earlier segment",
			func(t *testing.T, path func(uint64) string) { flip(t, path(1), 32+21) },
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 24}, first),
		},
		{
			"an earlier segment is short: only the last one is cut",
			func(t *testing.T, path func(uint64) string) { truncate(t, path(1), 32+3*24+21) },
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 21}, first),
		},
		{
			"a flipped bit in a header",
			func(t *testing.T, path func(uint64) string) { flip(t, path(1), 17) },
			one(Recovery{Records: 7, Segments: 2, SkippedBytes: 32}, first),
		},
		{
			"a flipped bit in the last header, and a half-written record",
			func(t *testing.T, path func(uint64) string) {
				flip(t, path(2), 8)
				truncate(t, path(2), 32+3*24-1)
			},
			one(Recovery{Records: 6, Segments: 2, SkippedBytes: 32, TornBytes: 23}, second),
		},
		{
			"an empty file",
			func(t *testing.T, path func(uint64) string) { truncate(t, path(2), 0) },
			one(Recovery{Records: 4, Segments: 2}, second),
		},
		{
			"a record has vanished",
			func(t *testing.T, path func(uint64) string) {
				data := read(t, path(1))
				write(t, path(1), slices.Delete(data, 32+24, 32+2*24))
			},
			one(Recovery{Records: 6, Segments: 2}, first),
		},
		{
			"a segment by another's name",
			func(t *testing.T, path func(uint64) string) {
				if err := os.Rename(path(1), path(3)); err != nil {
					t.Fatal(err)
				}
			},
			one(Recovery{Records: 3, Segments: 2, SkippedBytes: 32 + 4*24}, "0000000000000003.journal"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, path := fill(t)
			c.damage(t, path)
			j, err := Open(dir, Options{MaxRecords: 8})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			if got := j.Recovery(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("reported %+v\n    want %+v", got, c.want)
			}
			if got := replayed(t, j); len(got) != c.want.Records {
				t.Errorf("replayed %q", got)
			}
			if err := j.Append([]byte("on")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A file that changes behind the journal's back is no reason to give what was not written.
func TestChangedBetweenOpenAndReplay(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	_ = j.Append([]byte("first"))
	_ = j.Append([]byte("second"))
	_ = j.Close()
	if j, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(j.path(1), 32+20+5+3); err != nil {
		t.Fatal(err)
	}
	n, err := j.Replay(func(rec []byte) error {
		if string(rec) != "first" {
			t.Errorf("gave %q", rec)
		}
		return nil
	})
	if n != 1 || err == nil {
		t.Errorf("Replay: %d, %v", n, err)
	}
}

// A failed write whose remains cannot be cut off at once: nothing is written before they are, so that a later record
// does not stand in front of them.
func TestNothingIsWrittenInFrontOfRemains(t *testing.T) {
	t.Run("SameSegment", func(t *testing.T) {
		remains(t, func(j *Journal) error { return j.Append([]byte("x")) })
	})
	t.Run("NextSegment", func(t *testing.T) {
		remains(t, func(j *Journal) error {
			j.opt.MaxRecords = 2 // the segment is full
			return j.Append([]byte("x"))
		})
	})
}

// remains leaves a failed write's bytes behind the record "good"; next must add "x".
func remains(t *testing.T, next func(*Journal) error) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]byte("good")); err != nil {
		t.Fatal(err)
	}
	path := j.path(j.active.seq)
	left := j.active.sums.appendRecord(nil, 3, []byte("forged")) // valid behind "x"
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(left, j.active.good+recordHead+1); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	writable := j.f
	if j.f, err = os.Open(path); err != nil { // neither write nor truncate succeeds
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Append([]byte("x")); err == nil {
			t.Fatal("a write to a file that cannot be written succeeded")
		}
		if !j.torn {
			t.Fatal("the remains are forgotten")
		}
	}
	_ = j.f.Close()
	j.f = writable
	if err := next(j); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if got := replayed(t, j); !slices.Equal(got, []string{"good", "x"}) {
		t.Fatalf("replayed %q", got)
	}
	if r := j.Recovery(); r.TornBytes+r.SkippedBytes != 0 {
		t.Fatalf("remains were left: %+v", r)
	}
}
