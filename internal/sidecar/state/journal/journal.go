package journal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

var (
	// ErrLocked: another process, or another Journal of this one, has the directory open.
	ErrLocked = durable.ErrLocked
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal: closed")
	// ErrTooLarge: a record would not fit into half of Options.MaxBytes. Nothing was written.
	ErrTooLarge = errors.New("journal: record too large")
	// ErrOrder: Replay after the first Append, or either of them from within Replay's callback.
	ErrOrder = errors.New("journal: replay comes first, and alone")
)

// Options bound a Journal. The zero value is usable.
type Options struct {
	MaxRecords int    // kept, at least 2; the oldest go. 0: 1,000,000
	MaxBytes   int64  // of all segments together, at least 1024. 0: 256 MiB
	Version    uint32 // of what the records mean: records of another version are not replayed
}

func (o Options) withDefaults() (Options, error) {
	if o.MaxRecords == 0 {
		o.MaxRecords = 1_000_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxRecords < 2 {
		return o, fmt.Errorf("journal: MaxRecords is %d, must be at least 2", o.MaxRecords)
	}
	if o.MaxBytes < 1024 {
		return o, fmt.Errorf("journal: MaxBytes is %d, must be at least 1024", o.MaxBytes)
	}
	return o, nil
}

// Journal is an open log. Safe for concurrent use; records of concurrent Appends stand in some order, each whole.
type Journal struct {
	dir string
	opt Options

	syncing   sync.Mutex // held in front of mu: a Sync does not return before another has synced what it took
	mu        sync.Mutex
	state     state
	recovery  Recovery
	sealed    []segment // oldest first
	active    segment   // appended to; meaningless while f is nil
	f         *os.File  // nil: the next Append begins a segment
	torn      bool      // a failed write may have left bytes behind active.good
	next      uint64    // number of the next segment
	buf       []byte    // of the record being written
	unsynced  []sealedFile
	unlocking func() error
}

// sealedFile is that of a segment which is full and may not be on the disk yet.
type sealedFile struct {
	*os.File
	seq uint64
}

type state int

const (
	opened state = iota
	replaying
	appending
	closed
)

// Open opens the journal of a directory, which is made if it is missing, and reads what is in it once to find where it
// ends. Errors are ErrLocked, bad options, and a disk that cannot be read; damaged files are none (see Recovery).
func Open(dir string, o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := durable.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	unlock, err := durable.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{dir: dir, opt: o, unlocking: unlock, next: 1}
	if err := j.recover(); err != nil {
		if j.f != nil {
			_ = j.f.Close()
		}
		return nil, errors.Join(fmt.Errorf("journal: %w", err), unlock())
	}
	return j, nil
}

// Replay gives fn every record that was kept, oldest first, and returns how many it gave. A record's bytes are valid
// until fn returns; fn must not call the journal. It stops at fn's first error and returns that. It must end before
// the first Append (else ErrOrder), and may be called again until then.
func (j *Journal) Replay(fn func(rec []byte) error) (n int, err error) {
	segments, err := j.beginReplay()
	if err != nil {
		return 0, err
	}
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.state == replaying {
			j.state = opened
		}
	}()
	count := func(rec []byte) error {
		n++
		return fn(rec)
	}
	for _, s := range segments {
		if s.records == 0 {
			continue
		}
		again, err := scanFile(j.path(s.seq), s.seq, j.opt.Version, count)
		if again.records < s.records {
			if err == nil {
				err = fmt.Errorf("journal: %s was changed since it was opened", fileName(s.seq))
			}
			return n, err
		}
	}
	return n, nil
}

func (j *Journal) beginReplay() ([]segment, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.state {
	case closed:
		return nil, ErrClosed
	case opened:
	default:
		return nil, ErrOrder
	}
	j.state = replaying
	segments := slices.Clone(j.sealed)
	if j.f != nil {
		segments = append(segments, j.active)
	}
	return segments, nil
}

// Append adds a record, which may be empty and which it does not keep. When it returns nil the record survives the
// process. After an error (a full disk, say) the record is not in the journal, those before it are, and a later
// Append may succeed. It waits for the disk only to begin a segment, a file of 32 bytes, every MaxRecords/2 records.
func (j *Journal) Append(rec []byte) error {
	size := int64(recordHead) + int64(len(rec))
	if size > j.opt.MaxBytes/2-headSize || int64(len(rec)) > math.MaxUint32 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(rec))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.state {
	case closed:
		return ErrClosed
	case replaying:
		return ErrOrder
	}
	j.state = appending
	if err := j.room(size); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.buf = j.active.sums.appendRecord(j.buf[:0], j.active.last+1, rec)
	_, err := j.f.WriteAt(j.buf, j.active.good)
	if cap(j.buf) > 64<<10 {
		j.buf = nil
	}
	if err != nil {
		j.torn = true
		_ = j.cut() // else the next Append does
		return fmt.Errorf("journal: %w", err)
	}
	j.active.good += size
	j.active.size = j.active.good
	j.active.records++
	j.active.last++
	return nil
}

// cut removes what a failed write has left. Nothing is written before that, as leftovers behind a shorter record
// could be taken for one.
func (j *Journal) cut() error {
	if !j.torn {
		return nil
	}
	if err := j.f.Truncate(j.active.good); err != nil {
		return err
	}
	j.torn = false
	return nil
}

// Sync waits until everything that was appended is on the disk. Appends do not wait for it.
func (j *Journal) Sync() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	sealed, active, err := j.takeUnsynced()
	if err != nil {
		return err
	}
	for _, f := range sealed {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if active != nil {
		// One that an Append has dropped in the meantime is not needed any more.
		if e := active.Sync(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// takeUnsynced hands out the sealed files that were not synced, and the active one, nil if there is none.
func (j *Journal) takeUnsynced() (sealed []sealedFile, active *os.File, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == closed {
		return nil, nil, ErrClosed
	}
	sealed, j.unsynced = j.unsynced, nil
	return sealed, j.f, nil
}

// Close syncs and lets other processes open the directory. The journal is closed whatever it returns; a second Close
// does nothing.
func (j *Journal) Close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == closed {
		return nil
	}
	j.state = closed
	if j.f != nil {
		j.unsynced = append(j.unsynced, sealedFile{j.f, j.active.seq})
		j.f = nil
	}
	var err error
	for _, f := range j.unsynced {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	j.unsynced = nil
	if err = errors.Join(err, j.unlocking()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j *Journal) path(seq uint64) string { return filepath.Join(j.dir, fileName(seq)) }
