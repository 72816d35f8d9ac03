package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// laid is a segment as it was written: its bytes, and where its records end.
type laid struct {
	name    string
	data    []byte
	records []string
	ends    []int
}

// lay writes a journal of records of many lengths and returns its segments.
func lay(t testing.TB, o Options, records int) []laid {
	t.Helper()
	dir := FastDir(t)
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range records {
		rec := fmt.Appendf(nil, "%d ", i)
		for range r.IntN(200) {
			rec = append(rec, byte(r.Uint32()))
		}
		if err := j.Append(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var out []laid
	for _, w := range contents(t, dir) {
		l := laid{name: fileName(w.seq), records: w.records}
		if l.data, err = os.ReadFile(filepath.Join(dir, l.name)); err != nil {
			t.Fatal(err)
		}
		end := headSize
		for _, rec := range w.records {
			end += recordHead + len(rec)
			l.ends = append(l.ends, end)
		}
		out = append(out, l)
	}
	return out
}

// hurt returns a copy of data with one accident in it, and what that was.
func hurt(r *rand.Rand, data []byte, longest int) ([]byte, string) {
	out := slices.Clone(data)
	at := r.IntN(len(out))
	to := min(at+1+r.IntN(longest), len(out))
	switch r.IntN(3) {
	case 0:
		bit := r.IntN(8)
		out[at] ^= 1 << bit
		return out, fmt.Sprintf("bit %d of byte %d flipped", bit, at)
	case 1:
		for i := at; i < to; i++ {
			out[i] = byte(r.Uint32())
		}
		return out, fmt.Sprintf("bytes %d to %d overwritten", at, to)
	default:
		clear(out[at:to])
		return out, fmt.Sprintf("bytes %d to %d zeroed", at, to)
	}
}

// compare returns the records of a segment that are whole, and at how many places others are not. The header is one place
// with a first record that is not whole either.
func (l laid) compare(now []byte) (whole []string, places int) {
	before := true
	at := 0
	for i, end := range append([]int{headSize}, l.ends...) {
		same := bytes.Equal(l.data[at:end], now[at:end])
		if !same && before {
			places++
		}
		if same && i > 0 {
			whole = append(whole, l.records[i-1])
		}
		before, at = same, end
	}
	return whole, places
}

// check opens a damaged journal and compares what is replayed and reported with what must be.
func check(t testing.TB, o Options, segments []laid, now [][]byte) {
	t.Helper()
	dir := FastDir(t)
	var want []string
	places := 0
	for i, l := range segments {
		if err := os.WriteFile(filepath.Join(dir, l.name), now[i], 0o600); err != nil {
			t.Fatal(err)
		}
		whole, n := l.compare(now[i])
		want, places = append(want, whole...), places+n
	}
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if got := replayed(t, j); !slices.Equal(got, want) {
		t.Errorf("%d records are replayed, %d are whole", len(got), len(want))
	}
	r := j.Recovery()
	reported := r.Damages
	if r.TornBytes > 0 { // an accident at the very end may look like a half-written record
		reported++
	}
	if reported != places {
		t.Errorf("%d places are damaged, reported are %+v", places, r)
	}
	if places > 0 && r.SkippedBytes+r.TornBytes == 0 {
		t.Errorf("no bytes are reported: %+v", r)
	}
}

func TestTwoHundredAccidents(t *testing.T) {
	o := Options{MaxRecords: 400}
	segments := lay(t, o, 390)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		which := r.IntN(len(segments))
		now := make([][]byte, len(segments))
		var what string
		for i, l := range segments {
			now[i] = l.data
			if i == which {
				now[i], what = hurt(r, l.data, 2000)
			}
		}
		check(t, o, segments, now)
		if t.Failed() {
			t.Fatalf("seed %d: segment %d, %s", seed, which, what)
		}
	}
}

func TestTwoHundredAccidentsInOneJournal(t *testing.T) {
	o := Options{MaxRecords: 40_000}
	segments := lay(t, o, 30_000)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 3))
		now := make([][]byte, len(segments))
		for i, l := range segments {
			now[i] = l.data
		}
		for range 200 {
			which := r.IntN(len(segments))
			now[which], _ = hurt(r, now[which], 300)
		}
		check(t, o, segments, now)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Records that stand in another place, or twice, are replayed once and in the order in which they were appended.
func TestRecordsInOtherPlaces(t *testing.T) {
	o := Options{MaxRecords: 100}
	l := lay(t, o, 20)[0]
	part := func(from, to int) []byte { return l.data[l.ends[from]:l.ends[to]] }
	front, behind := l.data[:l.ends[2]], l.data[l.ends[15]:]
	for name, data := range map[string][]byte{
		"exchanged":  slices.Concat(front, part(7, 15), part(2, 7), behind),
		"doubled":    slices.Concat(front, part(2, 7), part(2, 15), behind),
		"doubled on": slices.Concat(front, part(2, 15), behind, part(2, 7)),
		"apart":      slices.Concat(front, make([]byte, 30), part(2, 7), []byte("between"), part(7, 15), behind),
	} {
		dir := FastDir(t)
		if err := os.WriteFile(filepath.Join(dir, l.name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := replayed(t, j); !slices.Equal(got, l.records) {
			t.Errorf("%s: %d records are replayed, want %d: %q", name, len(got), len(l.records), got)
		}
		if r := j.Recovery(); r.Damages == 0 || r.TornBytes != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged last segment goes on: if another were begun, the oldest would go although it is whole.
func TestGoingOnAfterDamageLosesNothing(t *testing.T) {
	for name, at := range map[string]int{"header": 20, "first record": 40, "last record": -1} {
		t.Run(name, func(t *testing.T) {
			o := Options{MaxRecords: 20}
			segments := lay(t, o, 15)
			dir := FastDir(t)
			var want []string
			for i, l := range segments {
				data := slices.Clone(l.data)
				if i == len(segments)-1 {
					data[(at+len(data))%len(data)] ^= 1
				}
				whole, _ := l.compare(data)
				want = append(want, whole...)
				if err := os.WriteFile(filepath.Join(dir, l.name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for round := range 4 {
				j, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if got := replayed(t, j); !slices.Equal(got, want) {
					t.Fatalf("round %d: %d records are replayed, want %d", round, len(got), len(want))
				}
				if r := j.Recovery(); r.Damages != 1 || r.TornBytes != 0 {
					t.Fatalf("round %d: %+v", round, r)
				}
				rec := fmt.Sprint("appended ", round)
				if err := j.Append([]byte(rec)); err != nil {
					t.Fatal(err)
				}
				want = append(want, rec)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Bytes that come back after the journal has gone on take no later record's place.
func TestRecordsThatComeBack(t *testing.T) {
	o := Options{MaxRecords: 100}
	l := lay(t, o, 10)[0]
	dir := FastDir(t)
	path := filepath.Join(dir, l.name)
	lost := slices.Clone(l.data)
	clear(lost[l.ends[6] : l.ends[6]+10]) // the head of one record, and one byte of the next two
	lost[l.ends[7]+1] ^= 1
	lost[l.ends[8]+1] ^= 1
	if err := os.WriteFile(path, lost, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rec := range []string{"later", ""} {
		j, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		got := replayed(t, j)
		if rec == "" {
			if want := append(slices.Clone(l.records), "later"); !slices.Equal(got, want) {
				t.Fatalf("%d records are replayed, want %d", len(got), len(want))
			}
		} else if err := j.Append([]byte(rec)); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(now, l.data)
		if err := os.WriteFile(path, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A segment whose header cannot be read gives its records to the version that wrote them, and to no other.
func TestDamagedHeaderKeepsVersionsApart(t *testing.T) {
	for version, want := range map[uint32]int{7: 5, 8: 0} {
		dir := t.TempDir()
		j, err := Open(dir, Options{Version: 7})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if err := j.Append(fmt.Append(nil, "record ", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		path := j.path(1)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		clear(data[:headSize])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err = Open(dir, Options{Version: version}); err != nil {
			t.Fatal(err)
		}
		if got := replayed(t, j); len(got) != want || j.Recovery().Damages != 1 {
			t.Errorf("version %d: replayed %q, %+v", version, got, j.Recovery())
		}
		if err := j.Append([]byte("on")); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Segments in the format of earlier releases are kept aside, and reported.
func TestEarlierFormatIsSetAside(t *testing.T) {
	dir := t.TempDir()
	old := header(4, 1)
	old[len(magic)] = 1
	binary.LittleEndian.PutUint64(old[24:], sumOfHeader(old))
	old = append(old, "records of format 1"...)
	if err := os.WriteFile(filepath.Join(dir, fileName(4)), old, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir, Options{Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if r := j.Recovery(); !slices.Equal(r.OtherVersion, []string{fileName(4) + ".old"}) || r.Damages != 0 {
		t.Errorf("%+v", r)
	}
	if data, err := os.ReadFile(filepath.Join(dir, fileName(4)+".old")); err != nil || !bytes.Equal(data, old) {
		t.Errorf("the file was changed: %v", err)
	}
	if err := j.Append([]byte("on")); err != nil {
		t.Error(err)
	}
}

// Heads that are sound and promise more bytes than are right, one behind the other: to check each would read the rest
// of the file for each, terabytes here. The sound record behind them is short enough to be found all the same.
func TestHostileBytesTakeLinearTime(t *testing.T) {
	testkit.NotUnderRace(t)
	const size = 16 << 20
	s := sumsOf(1, 0)
	data := header(1, 0)
	for len(data) < size {
		var head [recordHead]byte
		binary.LittleEndian.PutUint32(head[:], uint32(size-len(data)-recordHead))
		binary.LittleEndian.PutUint32(head[4:], 1)
		binary.LittleEndian.PutUint32(head[8:], s.ofHead(head[:]))
		data = append(data, head[:]...)
	}
	data = s.appendRecord(data, 2, nil)
	for _, data := range [][]byte{data, append(header(1, 0), make([]byte, size)...)} {
		got, err := scan(bytes.NewReader(data), int64(len(data)), 1, 0, func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if got.records > 1 || got.skipped+got.torn < size-headSize {
			t.Errorf("%+v", got)
		}
	}
}

// FuzzSearch reads any bytes behind a header: what is found has the right checksum, stands nowhere twice, and the
// counts agree with it.
func FuzzSearch(f *testing.F) {
	s := sumsOf(1, 0)
	var whole []byte
	for i, rec := range []string{"", "a", "a longer record"} {
		whole = s.appendRecord(whole, uint32(i+1), []byte(rec))
	}
	f.Add(whole, uint16(0))
	f.Add(slices.Concat(whole[40:], whole, make([]byte, 50), whole), uint16(30))
	f.Add(s.appendRecord(nil, 1, whole), uint16(2))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		if int(at)+recordHead <= len(data) { // else nothing is ever found
			binary.LittleEndian.PutUint32(data[int(at)+8:], s.ofHead(data[at:]))
			if h, ok := s.parseHead(data[at:]); ok && h.length <= int64(len(data)-int(at)-recordHead) {
				binary.LittleEndian.PutUint64(data[int(at)+12:], s.ofRecord(h.number, data[int(at)+recordHead:][:h.length]))
			}
		}
		end := 0
		for _, x := range s.search(data) {
			rec := data[x.at+recordHead : x.end]
			if x.at < end || !bytes.Equal(data[x.at:x.end], s.appendRecord(nil, x.number, rec)) {
				t.Fatalf("found %+v behind %d", x, end)
			}
			end = x.end
		}
		segment := append(header(1, 0), data...)
		records, total := 0, 0
		got, err := scan(bytes.NewReader(segment), int64(len(segment)), 1, 0, func(rec []byte) error {
			records, total = records+1, total+recordHead+len(rec)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.records != records || int64(total+headSize)+got.skipped+got.torn != int64(len(segment)) {
			t.Fatalf("%d records of %d bytes with heads, %d in all: %+v", records, total, len(segment), got)
		}
	})
}
