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
	magic      = "RPJRNL\x00" // the byte behind it is the format of what follows
	format     = 2
	headSize   = 32 // bytes of a segment's header
	recordHead = 20 // bytes in front of a record
	suffix     = ".journal"
	tempSuffix = suffix + ".tmp"
	oldSuffix  = suffix + ".old"
)

// errHeader: the bytes are not a segment's header.
var errHeader = errors.New("journal: damaged header")

// segment is a file of records.
type segment struct {
	seq     uint64
	sums    sums
	foreign bool   // its header is sound and has another format or version; nothing else was read
	records int    // that can be read
	last    uint32 // number of the last record; the next one gets a higher number
	good    int64  // bytes behind which the next record goes
	size    int64  // bytes on disk
	damages int    // places where records are missing or bytes are unreadable
	skipped int64  // bytes that are not replayed
	torn    int64  // bytes behind good that a writer has left half written; not in skipped
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
	b[len(magic)] = format
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint64(b[16:], seq)
	binary.LittleEndian.PutUint64(b[24:], sumOfHeader(b))
	return b
}

// parseHeader returns what a header says. All formats have the same header.
func parseHeader(b []byte) (seq uint64, version uint32, made byte, err error) {
	if len(b) < headSize || string(b[:len(magic)]) != magic || binary.LittleEndian.Uint64(b[24:]) != sumOfHeader(b) {
		return 0, 0, 0, errHeader
	}
	return binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint32(b[8:]), b[len(magic)], nil
}

func sumOfHeader(b []byte) uint64 { return xxh3.Hash(b[:24]) }

// sums makes the checksums of one segment. They depend on its number and version, so that a record is recognised
// without the header and a record of another segment or version is not.
type sums struct{ seed uint64 }

func sumsOf(seq uint64, version uint32) sums {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], seq)
	binary.LittleEndian.PutUint32(b[8:], version)
	return sums{xxh3.Hash(b[:])}
}

func (s sums) ofHead(b []byte) uint32 { return uint32(xxh3.HashSeed(b[:8], s.seed)) }

func (s sums) ofRecord(number uint32, rec []byte) uint64 {
	return xxh3.HashSeed(rec, s.seed+1+uint64(number))
}

// appendRecord renders a record behind b.
func (s sums) appendRecord(b []byte, number uint32, rec []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec)))
	b = binary.LittleEndian.AppendUint32(b, number)
	b = binary.LittleEndian.AppendUint32(b, s.ofHead(b[at:]))
	b = binary.LittleEndian.AppendUint64(b, s.ofRecord(number, rec))
	return append(b, rec...)
}

// recordHeader is what stands in front of a record.
type recordHeader struct {
	length int64
	number uint32
	sum    uint64
}

// parseHead reads a record's head of recordHead bytes. Only a head whose own checksum is right gives a length, so that
// a damaged length is not followed. Numbers begin with 1: zeros are no head.
func (s sums) parseHead(b []byte) (h recordHeader, ok bool) {
	h = recordHeader{
		length: int64(binary.LittleEndian.Uint32(b)),
		number: binary.LittleEndian.Uint32(b[4:]),
		sum:    binary.LittleEndian.Uint64(b[12:]),
	}
	return h, h.number > 0 && binary.LittleEndian.Uint32(b[8:]) == s.ofHead(b)
}

// scan reads the segment of a number and gives fn each sound record in the order in which they were appended. A
// segment whose header is sound and names another format or version is foreign and not read. One whose header is
// damaged is taken to have the version. Errors are fn's and the reader's; damage is none.
func scan(r io.ReaderAt, size int64, seq uint64, version uint32, fn func(rec []byte) error) (segment, error) {
	s := segment{seq: seq, size: size, sums: sumsOf(seq, version)}
	head := make([]byte, min(headSize, size))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	named, has, made, err := parseHeader(head)
	if err != nil || named != seq {
		return s, s.salvage(r, fn)
	}
	s.foreign = made != format || has != version
	s.good = headSize
	if s.foreign {
		return s, nil
	}
	if err := s.walk(r, fn); err != nil || s.good == size {
		return s, err
	}
	return s, s.salvage(r, fn)
}

// walk reads records as long as each one follows the one before it.
func (s *segment) walk(r io.ReaderAt, fn func(rec []byte) error) error {
	br := bufio.NewReaderSize(io.NewSectionReader(r, s.good, s.size-s.good), 64<<10)
	var buf []byte
	var head [recordHead]byte
	for s.size-s.good >= recordHead {
		if _, err := io.ReadFull(br, head[:]); err != nil {
			return err
		}
		h, ok := s.sums.parseHead(head[:])
		if !ok || h.number != s.last+1 || h.length > s.size-s.good-recordHead {
			return nil
		}
		if int64(cap(buf)) < h.length {
			buf = make([]byte, h.length)
		}
		rec := buf[:h.length]
		if _, err := io.ReadFull(br, rec); err != nil {
			return err
		}
		if s.sums.ofRecord(h.number, rec) != h.sum {
			return nil
		}
		if err := fn(rec); err != nil {
			return err
		}
		s.records++
		s.last = h.number
		s.good += recordHead + h.length
	}
	return nil
}

// scanFile scans a segment on disk.
func scanFile(path string, seq uint64, version uint32, fn func(rec []byte) error) (segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return segment{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return segment{}, err
	}
	return scan(f, info.Size(), seq, version, fn)
}
