package kvevents

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/engines/kvevents/internal/zmtp"
)

// ErrEndpoint is wrapped by all errors about endpoints.
var ErrEndpoint = zmtp.ErrEndpoint

// Check returns an error if an endpoint is wrong. listen says that it is one to listen on, where * stands for all addresses.
// Errors wrap [ErrEndpoint].
func Check(endpoint string, listen bool) error {
	_, err := zmtp.Parse(endpoint, listen)
	return err
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
