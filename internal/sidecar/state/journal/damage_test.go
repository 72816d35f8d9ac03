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
		s, err := scan(bytes.NewReader(data), int64(len(data)), seq, 3, func(rec []byte) error {
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
