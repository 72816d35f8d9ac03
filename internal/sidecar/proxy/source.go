package proxy

import (
	"io"
	"sync"
)

// source is a body in memory that lets go of it when it is closed, which a transport does when it was sent: the answer may
// take minutes. Transports may close while they read.
type source struct {
	mu   sync.Mutex
	rest []byte // guarded by mu
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close forgets the bytes.
func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = nil
	return nil
}
