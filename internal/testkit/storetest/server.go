//go:build unix

package storetest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// notHere is the status of servers.sh if a store cannot be had on this machine.
const notHere = 77

// Server is a process that ends with its test.
type Server struct {
	Addr string // host:port
	Run  string // the folder of its process ID, log and data
	pid  int
}

// Start starts a server without data, of one of the stores that servers.sh knows. Where that is not possible the test skips,
// or fails if RAGPILOT_REQUIRE_STORES is 1.
func Start(t testing.TB, store string) *Server {
	t.Helper()
	script, run := filepath.Join(testkit.Root(t), ".ci", "stores", "servers.sh"), t.TempDir()
	addr := testkit.FreeAddress(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	servers := func(action string) ([]byte, error) {
		cmd := exec.Command(script, action, store) //nolint:noctx // it also runs when the test's context has ended
		cmd.Env = append(os.Environ(), "RAGPILOT_STORES_RUN="+run, strings.ToUpper(store)+"_PORT="+port)
		return cmd.CombinedOutput()
	}
	t.Cleanup(func() {
		if out, err := servers("stop"); err != nil {
			t.Errorf("stop %s: %v\n%s", store, err, out)
		}
	})
	out, err := servers("start")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notHere && os.Getenv("RAGPILOT_REQUIRE_STORES") != "1" {
		t.Skipf("needs a server of its own: %s", out)
	}
	if err != nil {
		t.Fatalf("start %s: %v\n%s", store, err, out)
	}
	text, err := os.ReadFile(filepath.Join(run, store+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Addr: addr, Run: run, pid: pid}
}

// Kill ends the process as a crash does. What it was about to answer it does not.
func (s *Server) Kill(t testing.TB) { s.signal(t, syscall.SIGKILL) }

// Halt stops the process: connections stay, and nothing is answered before Resume.
func (s *Server) Halt(t testing.TB) {
	s.signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(s.pid, syscall.SIGCONT) }) // so that it can end
}

// Resume lets a stopped process go on.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.pid, signal); err != nil {
		t.Errorf("%v to process %d: %v", signal, s.pid, err)
	}
}
