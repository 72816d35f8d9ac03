package journal

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// Recovery is what Open found. All zero but Records and Segments: nothing was lost.
type Recovery struct {
	Records  int // that Replay gives
	Segments int // files they are in
	// TornBytes were cut off the end of the last segment: the process stopped in the middle of a record, whose Append had
	// not returned, or the machine before the bytes were on the disk.
	TornBytes int64
	// Damages are the places where records are missing that had been written, and SkippedBytes are the unreadable bytes
	// there (none where bytes have vanished). Damaged has both for each segment. A damage is found again by each Open
	// until its segment is old enough to go.
	Damages      int
	SkippedBytes int64
	Damaged      []Damaged
	// OtherVersion names the files that were set aside, as their Version is not that of Options or an earlier release
	// wrote them in another format.
	OtherVersion []string
}

// Damaged is a segment that is not as it was written.
type Damaged struct {
	Segment string // the file's name
	Damages int
	Bytes   int64
}

// Recovery returns what Open found. The slices are the caller's.
func (j *Journal) Recovery() Recovery {
	r := j.recovery // never changed after Open
	r.Damaged, r.OtherVersion = slices.Clone(r.Damaged), slices.Clone(r.OtherVersion)
	return r
}

// recover finds the segments and where the last one ends.
func (j *Journal) recover() error {
	seqs, olds, err := j.tidy()
	if err != nil {
		return err
	}
	for i, seq := range seqs {
		s, err := scanFile(j.path(seq), seq, j.opt.Version, func([]byte) error { return nil })
		if err != nil {
			return err
		}
		j.next = max(j.next, seq+1)
		if s.foreign {
			if err := j.setAside(seq, olds); err != nil {
				return err
			}
			olds = nil
			continue
		}
		if err := j.settle(&s, i == len(seqs)-1); err != nil {
			return err
		}
		j.recovery.Records += s.records
		j.recovery.Segments++
		j.sealed = append(j.sealed, s)
	}
	return j.goOn()
}

// settle cuts off a half-written end, which only the last segment can have, and reports what is damaged.
func (j *Journal) settle(s *segment, last bool) error {
	switch {
	case s.torn == 0:
	case last:
		if err := os.Truncate(j.path(s.seq), s.good); err != nil {
			return err
		}
		j.recovery.TornBytes = s.torn
		s.size = s.good
	default:
		s.damages++
		s.skipped += s.torn
	}
	if s.damages > 0 {
		j.recovery.Damages += s.damages
		j.recovery.SkippedBytes += s.skipped
		j.recovery.Damaged = append(j.recovery.Damaged, Damaged{fileName(s.seq), s.damages, s.skipped})
	}
	return nil
}

// tidy removes what an interrupted begin has left and returns the numbers of the segments, oldest first, and the names of
// those that were set aside. Files with other names are not touched.
func (j *Journal) tidy() (seqs []uint64, olds []string, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if _, ok := parseName(e.Name(), tempSuffix); ok {
			if err := os.Remove(filepath.Join(j.dir, e.Name())); err != nil {
				return nil, nil, err
			}
		}
		if seq, ok := parseName(e.Name(), oldSuffix); ok {
			j.next = max(j.next, seq+1)
			olds = append(olds, e.Name())
		}
		if seq, ok := parseName(e.Name(), suffix); ok && e.Type().IsRegular() {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs, olds, nil
}

// setAside keeps a segment of another version under another name, and removes those that were set aside earlier: two
// versions are the most that are on the disk.
func (j *Journal) setAside(seq uint64, olds []string) error {
	for _, name := range olds {
		if err := os.Remove(filepath.Join(j.dir, name)); err != nil {
			return err
		}
	}
	name := fileName(seq) + ".old"
	if err := os.Rename(j.path(seq), filepath.Join(j.dir, name)); err != nil {
		return err
	}
	j.recovery.OtherVersion = append(j.recovery.OtherVersion, name)
	return durable.SyncDir(j.dir)
}

// goOn makes the last segment the active one, even if it is damaged: a new one would make the oldest go, which may be
// whole. A segment of which nothing can be read is left alone. If the last is full, the next Append begins another.
func (j *Journal) goOn() error {
	if len(j.sealed) == 0 {
		return nil
	}
	last := j.sealed[len(j.sealed)-1]
	if last.damages > 0 && last.records == 0 {
		return nil
	}
	f, err := os.OpenFile(j.path(last.seq), os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	j.sealed = j.sealed[:len(j.sealed)-1]
	j.active, j.f = last, f
	return nil
}
