package zmtp

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ErrEndpoint is wrapped by all errors about endpoints.
var ErrEndpoint = errors.New("bad endpoint")

// Address is an endpoint as package net takes it.
type Address struct{ Network, Addr string }

// Parse takes tcp://host:port and ipc://path ("ipc://@name" for an abstract name). A host of * is for listening.
func Parse(endpoint string, listen bool) (Address, error) {
	scheme, rest, ok := strings.Cut(endpoint, "://")
	if !ok || rest == "" {
		return Address{}, fmt.Errorf("%w: %q, want tcp://host:port or ipc://path", ErrEndpoint, endpoint)
	}
	switch scheme {
	case "ipc":
		return Address{"unix", rest}, nil
	case "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil {
			return Address{}, fmt.Errorf("%w: %q: %w", ErrEndpoint, endpoint, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !listen {
			return Address{}, fmt.Errorf("%w: %q: port %q", ErrEndpoint, endpoint, port)
		}
		if host == "*" {
			host = ""
		}
		if host == "" && !listen {
			return Address{}, fmt.Errorf("%w: %q names no host to dial", ErrEndpoint, endpoint)
		}
		return Address{"tcp", net.JoinHostPort(host, port)}, nil
	}
	return Address{}, fmt.Errorf("%w: %q: transport %q, want tcp or ipc", ErrEndpoint, endpoint, scheme)
}
