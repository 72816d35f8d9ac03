package journal

import (
	"cmp"
	"io"
	"math"
	"slices"
)

// found is a sound record among bytes that were searched.
type found struct {
	at, end int
	number  uint32
}

// salvage reads what walk could not: all sound records behind s.good, wherever they stand by now. What stands there is
// read into memory. It counts what is damaged.
func (s *segment) salvage(r io.ReaderAt, fn func(rec []byte) error) error {
	rest := make([]byte, s.size-s.good)
	if _, err := io.ReadFull(io.NewSectionReader(r, s.good, s.size-s.good), rest); err != nil {
		return err
	}
	all := s.sums.search(rest)
	tail := s.count(all, rest)
	records := unique(all, s.last)
	s.skipped = int64(len(rest)) - s.torn
	for _, x := range records {
		s.skipped -= int64(x.end - x.at)
	}
	for _, x := range records {
		if err := fn(rest[x.at+recordHead : x.end]); err != nil {
			return err
		}
		s.records++
		s.last = x.number
	}
	if tail > 0 && s.torn == 0 {
		// Records that are lost there had numbers too. These are not used again.
		s.last = uint32(min(uint64(s.last)+uint64(tail/recordHead)+1, math.MaxUint32))
	}
	s.good = s.size - s.torn
	return nil
}

// count counts the places where records do not follow each other, and returns how many bytes stand behind the last.
func (s *segment) count(all []found, rest []byte) (tail int) {
	end, number := 0, s.last
	if s.good == 0 { // the header is damaged, wherever the first record stands
		s.damages++
		if len(all) > 0 {
			end, number = all[0].at, all[0].number-1
		}
	}
	for _, x := range all {
		if x.at != end || x.number != number+1 {
			s.damages++
		}
		end, number = x.end, x.number
	}
	switch tail = len(rest) - end; {
	case tail == 0 || s.good == 0 && len(all) == 0: // nothing, or counted as the header
	case s.sums.halfWritten(rest[end:]):
		s.torn = int64(tail)
	default:
		s.damages++
	}
	return tail
}

// halfWritten reports whether a writer may have stopped here: the bytes are shorter than their record, or the file was
// made longer and its bytes never came.
func (s sums) halfWritten(tail []byte) bool {
	if len(tail) < recordHead {
		return true
	}
	if h, ok := s.parseHead(tail); ok {
		return h.length > int64(len(tail)-recordHead)
	}
	for _, b := range tail {
		if b != 0 {
			return false
		}
	}
	return true
}

// search returns the sound records in data, in the order in which they stand there. It takes time in proportion to the
// bytes: heads are checked one by one, and beyond what accidents can cause, no more records with sound heads
// and other bytes are read.
func (s sums) search(data []byte) (out []found) {
	budget := 4 * int64(len(data))
	for at := 0; len(data)-at >= recordHead; {
		h, ok := s.parseHead(data[at:])
		if !ok || h.length > int64(len(data)-at-recordHead) || h.length > budget {
			at++
			continue
		}
		end := at + recordHead + int(h.length)
		if s.ofRecord(h.number, data[at+recordHead:end]) != h.sum {
			budget -= h.length
			at++
			continue
		}
		out = append(out, found{at, end, h.number})
		at = end
	}
	return out
}

// unique returns records in the order in which they were appended, each once, without those up to a number.
func unique(all []found, last uint32) []found {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(a.number, b.number) })
	out = slices.CompactFunc(out, func(a, b found) bool { return a.number == b.number })
	return slices.DeleteFunc(out, func(x found) bool { return x.number <= last })
}
