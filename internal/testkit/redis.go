package testkit

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// Redis returns the command of a Redis or Valkey server that keeps nothing on disk, and the free address where it will listen.
// RAGPILOT_REDIS_SERVER names the program, else it is on PATH; without one the test is skipped.
func Redis(t testing.TB) (command []string, address string) {
	t.Helper()
	program := os.Getenv("RAGPILOT_REDIS_SERVER")
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); program == "" && err == nil {
			program = path
		}
	}
	if program == "" {
		t.Skip("needs valkey-server or redis-server: on PATH or in RAGPILOT_REDIS_SERVER; .ci/redis.sh finds one")
	}
	address = FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	return []string{
		program, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, address
}
