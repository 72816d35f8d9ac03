package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// written is what a segment held before it was damaged.
type written struct {
	seq     uint64
	records []string
}

// FastDir is a temporary directory in memory, where there is such a thing, as tests that open thousands of journals
// would otherwise wait for nothing but the disk.
func FastDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// contents reads the segments of a directory that nobody has open.
func contents(t testing.TB, dir string) []written {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []written
	for _, e := range entries {
		seq, ok := parseName(e.Name(), suffix)
		if !ok {
			continue
		}
		w := written{seq: seq}
		_, err := scanFile(filepath.Join(dir, e.Name()), seq, 0, func(rec []byte) error {
			w.records = append(w.records, string(rec))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, w)
	}
	return out
}

// survivors are the records whose bytes still stand in their segment's file, in the order in which they were appended.
func survivors(t testing.TB, dir string, before []written) (out []string) {
	t.Helper()
	for _, w := range before {
		data, err := os.ReadFile(filepath.Join(dir, fileName(w.seq)))
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range w.records {
			// The text of each record differs. A head is accepted by what reads it, so only the bytes matter here.
			for at := 0; ; at++ {
				next := bytes.Index(data[min(at, len(data)):], []byte(rec))
				if next < 0 {
					break
				}
				at += next
				if at < recordHead {
					continue
				}
				h, ok := sumsOf(w.seq, 0).parseHead(data[at-recordHead:])
				if ok && h.length == int64(len(rec)) && h.sum == sumsOf(w.seq, 0).ofRecord(h.number, []byte(rec)) {
					out = append(out, rec)
					break
				}
			}
		}
	}
	return out
}

func replayed(t testing.TB, j *Journal) []string {
	t.Helper()
	var out []string
	if _, err := j.Replay(func(rec []byte) error { out = append(out, string(rec)); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// spoil changes a file and says in what way.
func spoil(t *rapid.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 {
		return "nothing to spoil"
	}
	at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
	how := rapid.SampledFrom([]string{
		"cut", "flip", "zeros from", "zeros behind", "junk behind", "a copy behind", "remove a part",
		"swap parts", "a part over another",
	}).
		Draw(t, "how")
	switch how {
	case "cut":
		data = data[:at]
	case "flip":
		for range rapid.IntRange(1, 3).Draw(t, "bits") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
	case "zeros from":
		clear(data[at:])
	case "zeros behind":
		data = append(data, make([]byte, at+1)...)
	case "junk behind":
		data = append(data, rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "junk")...)
	case "swap parts":
		to := rapid.IntRange(at, len(data)).Draw(t, "to")
		data = slices.Concat(data[:at/2], data[at:to], data[at/2:at], data[to:])
	case "a part over another": // a disk that writes to the wrong place
		copy(data[at:], data[at/2:at/2+rapid.IntRange(0, len(data)-at).Draw(t, "length")])
	case "a copy behind": // records at the wrong place
		data = append(data, data[min(headSize, len(data)):]...)
	case "remove a part":
		data = slices.Delete(data, at, rapid.IntRange(at, len(data)).Draw(t, "to"))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s at %d", how, at)
}

// Whatever happens to the files: each record whose bytes are still there is replayed, once and in its place, and the
// journal goes on.
func TestDamageLosesOnlyWhatItHits(t *testing.T) {
	root := FastDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o := Options{MaxRecords: 40}
		number := 0
		write := func(j *Journal, n int) {
			for range n {
				number++
				rec := fmt.Appendf(nil, "%d %s", number, bytes.Repeat([]byte{'x'}, rapid.IntRange(0, 40).Draw(rt, "length")))
				if err := j.Append(rec); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			j, err := Open(dir, o)
			if err != nil {
				rt.Fatal(err)
			}
			write(j, rapid.IntRange(0, 50).Draw(rt, "appended"))
			if err := j.Close(); err != nil {
				rt.Fatal(err)
			}
			before := contents(t, dir)
			total := 0
			for _, w := range before {
				total += len(w.records)
			}
			spoilt := false
			for _, w := range before {
				if rapid.Bool().Draw(rt, "spoil") {
					spoilt = true
					rt.Logf("segment %d: %s", w.seq, spoil(rt, filepath.Join(dir, fileName(w.seq))))
				}
			}
			want := survivors(t, dir, before)
			j, err = Open(dir, o)
			if err != nil {
				rt.Fatal(err)
			}
			got := replayed(t, j)
			if !slices.Equal(got, want) {
				rt.Fatalf("replayed %q\nwant %q\nof %v", got, want, before)
			}
			r := j.Recovery()
			if r.Records != len(got) {
				rt.Fatalf("Recovery reports %d records, %d were replayed", r.Records, len(got))
			}
			if !spoilt && len(got) != total {
				rt.Fatalf("%d of %d records without new damage", len(got), total)
			}
			// It goes on: what is appended now is there at the next opening, behind what was replayed.
			mark := number
			write(j, 3)
			if err := j.Close(); err != nil {
				rt.Fatal(err)
			}
			j, err = Open(dir, o)
			if err != nil {
				rt.Fatal(err)
			}
			after := replayed(t, j)
			if err := j.Close(); err != nil {
				rt.Fatal(err)
			}
			if len(after) < 3 || !bytes.HasPrefix([]byte(after[len(after)-3]), fmt.Appendf(nil, "%d ", mark+1)) {
				rt.Fatalf("replayed %q, want three records after %d at the end", after, mark)
			}
			if j.Recovery().TornBytes != 0 {
				rt.Fatalf("cut again: %+v", j.Recovery())
			}
		}
	})
}

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

// FuzzOpen opens any bytes as a segment: no panic, nothing is replayed that a second opening does not replay.
func FuzzOpen(f *testing.F) {
	whole := header(1, 0)
	for i, rec := range []string{"", "a", "a longer record"} {
		whole = sumsOf(1, 0).appendRecord(whole, uint32(i+1), []byte(rec))
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(header(1, 1), whole[32:]...))
	f.Add(append(slices.Clone(whole), make([]byte, 40)...))
	huge := binary.LittleEndian.AppendUint32(header(1, 0), 1<<31)
	f.Add(append(huge, make([]byte, 30)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := FastDir(t)
		path := filepath.Join(dir, fileName(1))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		first := replayed(t, j)
		if err := j.Append([]byte("end")); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := replayed(t, j); !slices.Equal(got, append(first, "end")) {
			t.Fatalf("replayed %q, then %q", first, got)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzScan damages a sound segment at any place: the records are among those that were written, in their order.
func FuzzScan(f *testing.F) {
	f.Add([]byte("\x03abc\x00\x05hello"), uint16(40), byte(1), uint16(100))
	f.Add([]byte("\x00\x00\x00"), uint16(32), byte(0), uint16(50))
	f.Fuzz(func(t *testing.T, script []byte, at uint16, mask byte, size uint16) {
		seq := xxh3.Hash(script)
		data := header(seq, 3)
		var want [][]byte
		for len(script) > 0 { // a length, then so many bytes
			n := min(int(script[0]), len(script)-1)
			rec := script[1 : 1+n]
			script = script[1+n:]
			want = append(want, rec)
			data = sumsOf(seq, 3).appendRecord(data, uint32(len(want)), rec)
		}
		sound := slices.Clone(data)
		if int(at) < len(data) {
			data[at] ^= mask
		}
		data = data[:min(int(size), len(data))]
		var got [][]byte
		s, err := scan(data, seq, 3, func(rec []byte) error {
			got = append(got, bytes.Clone(rec))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != s.records || len(got) > len(want) {
			t.Fatalf("%d records, counted %d, written %d", len(got), s.records, len(want))
		}
		left := want
		for _, rec := range got {
			i := slices.IndexFunc(left, func(w []byte) bool { return bytes.Equal(w, rec) })
			if i < 0 {
				t.Fatalf("%q is replayed, written were %q", got, want)
			}
			left = left[i+1:]
		}
		if s.good+s.torn != int64(len(data)) {
			t.Fatalf("%d bytes, then %d, are not the %d there are", s.good, s.torn, len(data))
		}
		if bytes.Equal(data, sound) && (s.damages != 0 || len(got) != len(want)) {
			t.Fatalf("%d of %d records of a sound segment, %d damages", len(got), len(want), s.damages)
		}
	})
}
