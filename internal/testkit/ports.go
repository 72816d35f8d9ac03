package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The range lies below the ports that operating systems give to outgoing connections and to listeners of port 0 (from 32768 on
// with Linux, from 49152 on elsewhere), so that no connection gets the port between its choice and its use.
const lowest, highest = 15_000, 32_000

var given sync.Map // of ports, so that no port is chosen twice in a process

// FreeAddress returns an address 127.0.0.1:PORT on which nothing listens. It ends the test if there is none.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest) // another process of tests hardly chooses the same
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		return address
	}
	t.Fatalf("no free port from %d to %d on 127.0.0.1", lowest, highest)
	return ""
}
