package publish

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// bind listens at an endpoint, and returns it with the port that was taken if it has port 0.
func bind(ctx context.Context, endpoint string) (net.Listener, string, error) {
	if err := kvevents.Check(endpoint, true); err != nil {
		return nil, "", err
	}
	scheme, address, _ := strings.Cut(endpoint, "://")
	var l net.Listener
	var err error
	if scheme == "ipc" {
		l, err = bindFile(ctx, address)
		return l, endpoint, err
	}
	host, _, _ := net.SplitHostPort(address) // Check has split it
	if l, err = new(net.ListenConfig).Listen(ctx, "tcp", strings.TrimPrefix(address, "*")); err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", endpoint, err)
	}
	return l, "tcp://" + net.JoinHostPort(host, port), nil
}

// bindFile listens on a socket file. One that a process left behind which has ended is taken over.
func bindFile(ctx context.Context, path string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err == nil {
		return l, nil
	}
	info, statErr := os.Stat(path)
	if statErr != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if c, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); dialErr == nil {
		_ = c.Close()
		return nil, err // somebody listens
	}
	if os.Remove(path) != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}
