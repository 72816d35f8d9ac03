package memory

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// idSource makes UUIDs of version 7 (RFC 9562): they begin with the time, so that those of one process sort by when they
// were made. Within a millisecond the 12 bits behind the version count up.
type idSource struct {
	mu   sync.Mutex
	last uint64 // guarded by mu; milliseconds << 12 | count
}

func (s *idSource) next(now time.Time) string {
	stamp := uint64(max(now.UnixMilli(), 0)) << 12
	s.mu.Lock()
	s.last = max(s.last+1, stamp)
	stamp = s.last
	s.mu.Unlock()

	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails (crypto/rand)
	binary.BigEndian.PutUint64(b[:8], stamp>>12<<16|stamp&0xfff)
	b[6] |= 0x70
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
