package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Recovery tells what Open found. All zero but Records and Segments: nothing was lost.
type Recovery struct {
	Records  int // that Replay gives
	Segments int // files they are in
	// TornBytes were cut off the end of the last segment: the process stopped in the middle of a record, which it was not
	// told to be kept, or the machine before the bytes were on the disk. (A damaged length looks the same.)
	TornBytes int64
	// SkippedBytes stand behind a bad record and are not replayed; Damaged names the segments they are in.
	SkippedBytes int64
	Damaged      []string
	// OtherVersion names the files that were set aside, as their Version is not that of Options.
	OtherVersion []string
}

// Recovery tells what Open found. The slices are the caller's.
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
		s, err := scanFile(j.path(seq), seq, func([]byte) error { return nil })
		torn, damaged := errors.Is(err, errTorn), errors.Is(err, errDamaged)
		if err != nil && !torn && !damaged {
			return err
		}
		j.next = max(j.next, seq+1)
		if s.good > 0 && s.version != j.opt.Version {
			if err := j.setAside(seq, olds); err != nil {
				return err
			}
			olds = nil
			continue
		}
		if i == len(seqs)-1 && torn {
			if err := os.Truncate(j.path(seq), s.good); err != nil {
				return err
			}
			j.recovery.TornBytes = s.size - s.good
			s.size = s.good
		}
		if s.size > s.good || s.good == 0 {
			j.recovery.SkippedBytes += s.size - s.good
			j.recovery.Damaged = append(j.recovery.Damaged, fileName(seq))
		}
		j.recovery.Records += s.records
		j.recovery.Segments++
		j.sealed = append(j.sealed, s)
	}
	return j.goOn()
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
	return syncDir(j.dir)
}

// goOn makes the last segment the active one if it is sound. If it is full, the next Append begins another.
func (j *Journal) goOn() error {
	if len(j.sealed) == 0 {
		return nil
	}
	last := j.sealed[len(j.sealed)-1]
	if last.good == 0 || last.size > last.good {
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
