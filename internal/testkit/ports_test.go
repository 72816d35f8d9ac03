package testkit_test

import (
	"net"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestLoopback(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address := testkit.FreeAddress(t)
		if seen[address] {
			t.Fatalf("%s twice", address)
		}
		seen[address] = true
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; port >= 32768 {
			t.Errorf("port %d is one that outgoing connections get", port)
		}
	}
}
