package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

const (
	magic      = "RPJRNL\x00\x01" // the last byte is the format of what follows
	headSize   = 32               // bytes of a segment's header
	recordHead = 12               // bytes in front of a record
	suffix     = ".journal"
	tempSuffix = suffix + ".tmp"
	oldSuffix  = suffix + ".old"
)

var (
	errTorn    = errors.New("journal: half-written record")
	errDamaged = errors.New("journal: damaged")
)

// segment is a file of records. records and good are what can be read of it: all up to its first bad record.
type segment struct {
	seq     uint64
	version uint32
	records int
	good    int64 // bytes, header included
	size    int64 // bytes on disk
}

// fileName is that of a segment: 16 hexadecimal digits, so that names sort as numbers do.
func fileName(seq uint64) string { return fmt.Sprintf("%016x%s", seq, suffix) }

// parseName is the inverse of fileName, for other suffixes too.
func parseName(name, suffix string) (seq uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 16, 64)
	return seq, err == nil
}

// header renders a segment's first bytes.
func header(seq uint64, version uint32) []byte {
	b := make([]byte, headSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint64(b[16:], seq)
	binary.LittleEndian.PutUint64(b[24:], xxh3.Hash(b[:24]))
	return b
}

// parseHeader returns the number and version of a segment, and errDamaged for what header has not made.
func parseHeader(b []byte) (seq uint64, version uint32, err error) {
	if len(b) < headSize || string(b[:8]) != magic || binary.LittleEndian.Uint64(b[24:]) != xxh3.Hash(b[:24]) {
		return 0, 0, errDamaged
	}
	return binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint32(b[8:]), nil
}

// checksum is that of a record which begins at an offset of a segment. Its length is in it, as it is the bytes' length.
func checksum(seq uint64, offset int64, rec []byte) uint64 {
	return xxh3.HashSeed(rec, seq*0x9e3779b97f4a7c15+uint64(offset)+1)
}

// appendRecord renders a record behind b.
func appendRecord(b []byte, seq uint64, offset int64, rec []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec)))
	b = binary.LittleEndian.AppendUint64(b, checksum(seq, offset, rec))
	return append(b, rec...)
}

// reader walks over the records of a segment whose header has been read.
type reader struct {
	r      *bufio.Reader
	seq    uint64
	offset int64 // of the next record
	size   int64 // of the file; nothing longer than what is left of it is ever allocated
	buf    []byte
}

// next returns a record, valid until the next call. The error is io.EOF where the segment ends with a whole record;
// errTorn where a writer may have stopped, that is, the rest is shorter than its record or begins with zeros;
// errDamaged where a checksum is wrong; another if the file cannot be read.
func (r *reader) next() ([]byte, error) {
	left := r.size - r.offset
	if left == 0 {
		return nil, io.EOF
	}
	if left < recordHead {
		return nil, errTorn
	}
	var head [recordHead]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, err
	}
	if head == [recordHead]byte{} { // the file was made longer, its bytes never came
		return nil, errTorn
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > left-recordHead {
		return nil, errTorn
	}
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	rec := r.buf[:n]
	if _, err := io.ReadFull(r.r, rec); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(head[4:]) != checksum(r.seq, r.offset, rec) {
		return nil, errDamaged
	}
	r.offset += recordHead + n
	return rec, nil
}

// scan reads the segment of a number up to its first bad record and gives each record to fn. It says by errTorn or
// errDamaged why it stopped in front of the end; the segment it returns is usable then. Other errors are fn's and the
// reader's.
func scan(r io.Reader, size int64, seq uint64, fn func(rec []byte) error) (segment, error) {
	s := segment{seq: seq, size: size}
	br := bufio.NewReaderSize(r, 64<<10)
	head := make([]byte, min(headSize, size))
	if _, err := io.ReadFull(br, head); err != nil {
		return s, err
	}
	named, version, err := parseHeader(head)
	if err != nil || named != seq {
		return s, errDamaged
	}
	s.version, s.good = version, headSize
	records := reader{r: br, seq: seq, offset: headSize, size: size}
	for {
		rec, err := records.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		if err := fn(rec); err != nil {
			return s, err
		}
		s.records++
		s.good = records.offset
	}
}

// scanFile scans a segment on disk.
func scanFile(path string, seq uint64, fn func(rec []byte) error) (segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return segment{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return segment{}, err
	}
	return scan(f, info.Size(), seq, fn)
}
