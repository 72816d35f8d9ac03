package pippull

import (
	"bytes"
	"fmt"
	"strings"
)

// signs are what programs say when they reach nothing.
func signs() []string {
	return []string{
		"Failed to establish a new connection", "Temporary failure in name resolution", "Name or service not known", "getaddrinfo failed",
		"Network is unreachable", "Connection refused", "ConnectionError", "ConnectTimeout", "Read timed out", "timed out", "Cannot connect to proxy", "ProxyError",
	}
}

// failure says how a program ended, with the last of what it said.
func failure(program string, err error, said string) error {
	kind := ErrDownload
	for _, sign := range signs() {
		if strings.Contains(said, sign) {
			kind = fmt.Errorf("%w: %w", ErrDownload, ErrNetwork)
			break
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return fmt.Errorf("%w: %s: %w: %s", kind, program, err, strings.TrimSpace(lines[len(lines)-1]))
}

// tail keeps the end of what is written.
type tail struct{ buf bytes.Buffer }

const tailBytes = 1 << 14

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.buf.Write(p)
	if over := t.buf.Len() - tailBytes; over > 0 {
		t.buf.Next(over)
	}
	return n, nil
}

func (t *tail) String() string { return t.buf.String() }
