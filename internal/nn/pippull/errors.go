package pippull

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// What a pull can fail of, for errors.Is. The packages that use this one offer them under the same names.
var (
	// ErrNoTool: there is no program that fetches Python packages.
	ErrNoTool = errors.New("no program to fetch Python packages was found")
	// ErrDownload: the program failed; the error says how it ended.
	ErrDownload = errors.New("the download failed")
	// ErrNetwork: it failed because it reached nothing. Such an error is an ErrDownload too.
	ErrNetwork = errors.New("the network or the package index cannot be reached")
	// ErrChecksum: what came is not the file that was asked for. This package returns no such error: its users do.
	ErrChecksum = errors.New("wrong checksum")
)

// OrCause returns err or, if the context is over, for then everything fails, an error that wraps the context's and its cause.
func OrCause(ctx context.Context, err error) error {
	over, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case over == nil, errors.Is(err, over) && errors.Is(err, cause):
		return err
	case errors.Is(cause, over):
		return cause
	default:
		return fmt.Errorf("%w: %w", over, cause)
	}
}

// signs are what programs say when they reach nothing.
func signs() []string {
	return []string{
		"Failed to establish a new connection", "Temporary failure in name resolution", "Name or service not known", "getaddrinfo failed",
		"Network is unreachable", "Connection refused", "ConnectionError", "ConnectTimeout", "Read timed out", "timed out",
		"Cannot connect to proxy", "ProxyError",
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
