package kvevents

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ErrEndpoint is wrapped by all errors about endpoints.
var ErrEndpoint = errors.New("bad endpoint")

// address is an endpoint as package net wants it.
type address struct{ network, addr string }

// Check tells what is wrong with an endpoint, nil if nothing is. listen says that it is one to listen on, where * stands for
// all addresses. Errors wrap [ErrEndpoint].
func Check(endpoint string, listen bool) error {
	_, err := parse(endpoint, listen)
	return err
}

// parse takes tcp://host:port and ipc://path ("ipc://@name" for an abstract name). A host of * is for listening.
func parse(endpoint string, listen bool) (address, error) {
	scheme, rest, ok := strings.Cut(endpoint, "://")
	if !ok || rest == "" {
		return address{}, fmt.Errorf("%w: %q, want tcp://host:port or ipc://path", ErrEndpoint, endpoint)
	}
	switch scheme {
	case "ipc":
		return address{"unix", rest}, nil
	case "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil {
			return address{}, fmt.Errorf("%w: %q: %w", ErrEndpoint, endpoint, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !listen {
			return address{}, fmt.Errorf("%w: %q: port %q", ErrEndpoint, endpoint, port)
		}
		if host == "*" {
			host = ""
		}
		if host == "" && !listen {
			return address{}, fmt.Errorf("%w: %q names no host to dial", ErrEndpoint, endpoint)
		}
		return address{"tcp", net.JoinHostPort(host, port)}, nil
	}
	return address{}, fmt.Errorf("%w: %q: transport %q, want tcp or ipc", ErrEndpoint, endpoint, scheme)
}

// Ranks returns one source for each data-parallel rank of an engine: every rank publishes on its own port, counted
// from that of rank 0, and so does its replay socket. Endpoints must be tcp if there is more than one rank.
func Ranks(rank0 Source, ranks int) ([]Source, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("ranks: %d, want at least 1", ranks)
	}
	list := make([]Source, ranks)
	for i := range list {
		s := rank0
		s.Rank = i
		if ranks > 1 {
			s.Name = fmt.Sprintf("%s/dp%d", rank0.Name, i)
		}
		var err error
		if s.Endpoint, err = offset(rank0.Endpoint, i); err != nil {
			return nil, err
		}
		if s.Replay, err = offset(rank0.Replay, i); err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

func offset(endpoint string, by int) (string, error) {
	if by == 0 || endpoint == "" {
		return endpoint, nil
	}
	i := strings.LastIndexByte(endpoint, ':')
	port, err := strconv.Atoi(endpoint[i+1:])
	if err != nil || !strings.HasPrefix(endpoint, "tcp://") {
		return "", fmt.Errorf("%w: %q has no port to count ranks from", ErrEndpoint, endpoint)
	}
	return endpoint[:i+1] + strconv.Itoa(port+by), nil
}
