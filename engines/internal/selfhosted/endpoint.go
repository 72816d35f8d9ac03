package selfhosted

import (
	"net"
	"strconv"
	"strings"
)

// Endpoint is a ZeroMQ address as an engine names it, made fit for a subscriber.
type Endpoint struct {
	// Address is where to connect to: the engine's own address, with its host replaced by the one under which the
	// engine was reached if it is a wildcard.
	Address string
	// Wildcard says that the engine listens on all of its hosts. An address with a host of its own may also be one to
	// which the engine connects, as vLLM does unless it is a wildcard, ipc or inproc: then the subscriber must listen.
	Wildcard bool
	// Local says that only a process on the engine's machine can use it (ipc), or none but itself (inproc).
	Local bool
}

// Resolve makes an engine's address fit for a subscriber that reached the engine at host. What is no address of a kind
// that engines use stays as it is.
func Resolve(address, host string) Endpoint {
	switch {
	case strings.HasPrefix(address, "ipc://"), strings.HasPrefix(address, "inproc://"):
		return Endpoint{Address: address, Local: true}
	case !strings.HasPrefix(address, "tcp://"):
		return Endpoint{Address: address}
	}
	rest := strings.TrimPrefix(address, "tcp://")
	colon := strings.LastIndexByte(rest, ':')
	if colon < 0 {
		return Endpoint{Address: address}
	}
	name, port := strings.Trim(rest[:colon], "[]"), rest[colon+1:]
	if !isWildcard(name) {
		return Endpoint{Address: address}
	}
	return Endpoint{Address: "tcp://" + net.JoinHostPort(host, port), Wildcard: true}
}

// AtPort is the address of a host, which may be a wildcard, and a port.
func AtPort(name string, port int, host string) Endpoint {
	return Resolve("tcp://"+net.JoinHostPort(strings.Trim(name, "[]"), strconv.Itoa(port)), host)
}

func isWildcard(host string) bool {
	switch host {
	case "", "*", "0.0.0.0", "::", "0:0:0:0:0:0:0:0":
		return true
	}
	return false
}
