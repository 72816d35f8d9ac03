package journal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// room makes sure that size bytes can be appended to the active segment: that there is one, that it ends with a whole
// record, and that it keeps to half of the limits.
func (j *Journal) room(size int64) error {
	if j.f != nil && j.active.records < j.opt.MaxRecords/2 && j.active.good+size <= j.opt.MaxBytes/2 && j.active.last < math.MaxUint32 {
		return j.cut()
	}
	j.seal()
	// Old segments go before the new one comes, as the disk may be full.
	j.prune()
	return j.begin()
}

// seal ends the active segment. It stays open for the next Sync: an Append does not wait for a full segment to
// reach the disk.
func (j *Journal) seal() {
	if j.f == nil {
		return
	}
	_ = j.cut() // what stays behind the last record is reported as skipped by the next Open
	j.unsynced = append(j.unsynced, sealedFile{j.f, j.active.seq})
	j.sealed = append(j.sealed, j.active)
	j.f, j.torn = nil, false
}

// prune removes the oldest segments until what is left and a full active one keep to the limits. A file that
// cannot be removed is tried again when the next segment begins.
func (j *Journal) prune() {
	records, bytes := 0, int64(0)
	for _, s := range j.sealed {
		records, bytes = records+s.records, bytes+s.size
	}
	for len(j.sealed) > 0 && (records > j.opt.MaxRecords-j.opt.MaxRecords/2 || bytes > j.opt.MaxBytes-j.opt.MaxBytes/2) {
		oldest := j.sealed[0]
		j.unsynced = slices.DeleteFunc(j.unsynced, func(f sealedFile) bool {
			if f.seq != oldest.seq {
				return false
			}
			_ = f.Close() // need not reach the disk any more
			return true
		})
		if err := os.Remove(j.path(oldest.seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return
		}
		records, bytes = records-oldest.records, bytes-oldest.size
		j.sealed = j.sealed[1:]
	}
}

// begin makes a new segment the active one. A file by its name has a whole header: it gets the name when it is on the
// disk. After an error the same number is tried again.
func (j *Journal) begin() error {
	path := j.path(j.next)
	temp := filepath.Join(j.dir, fmt.Sprintf("%016x%s", j.next, tempSuffix))
	if err := writeFile(temp, header(j.next, j.opt.Version)); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	if err := durable.SyncDir(j.dir); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	j.f, j.torn = f, false
	j.active = segment{seq: j.next, sums: sumsOf(j.next, j.opt.Version), good: headSize, size: headSize}
	j.next++
	return nil
}

// writeFile writes a file and waits until it is on the disk.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
