//go:build unix

package redisorders_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/prompt/orders/orderstest"
	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// server is a real one that the test owns.
type server struct {
	command []string
	addr    string
	cmd     *exec.Cmd
	ended   chan struct{}
	out     bytes.Buffer // of all starts; not to be read before it has ended
}

// startServer starts a server on a free port. More arguments may follow.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	command, addr := testkit.Redis(t)
	s := &server{command: append(command, args...), addr: addr}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// start starts it, again after kill, and waits until it accepts connections.
func (s *server) start(t testing.TB) {
	t.Helper()
	s.cmd = exec.CommandContext(context.Background(), s.command[0], s.command[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	var dialer net.Dialer
	until(t, "the server accepts connections", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended:\n%s", s.command[0], &s.out)
		default:
		}
		c, err := dialer.DialContext(t.Context(), "tcp", s.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, "PING\r\n")
		b := make([]byte, 7)
		_, err = io.ReadFull(c, b)
		return err == nil
	})
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

func (s *server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// realURL is that of the server in REDIS_ADDR, or of one that is started.
func realURL(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		return "redis://" + addr
	}
	return "redis://" + startServer(t).addr
}

func TestRealSuite(t *testing.T) {
	url := realURL(t)
	orderstest.RunShared(t, func() orders.Store { return open(t, patient(url)) })
}

// timed returns how long f took. That a call waits no longer than the budget is TestSilentServerCostsTheBudgetAFewTimes: here each of thousands
// of calls may be held up by the machine.
func timed(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

// latencies are those of one phase.
type latencies struct {
	mu sync.Mutex
	d  []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d = append(l.d, d)
}

// next returns what was added since the last call, as text.
func (l *latencies) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.d)
	n := len(l.d)
	if n == 0 {
		return "no operations"
	}
	text := fmt.Sprintf("%d operations, p50 %s, p99 %s, p99.9 %s, max %s", n, l.d[n/2], l.d[n*99/100], l.d[n*999/1000], l.d[n-1])
	l.d = nil
	return text
}

// A server that hangs, goes on, is killed and comes back, while requests come: each is answered within the budget, with an
// order that stays.
func TestRealServerHangsDiesAndComesBack(t *testing.T) {
	server := startServer(t)
	o := redisorders.Options{URL: "redis://" + server.addr, Pause: 50 * time.Millisecond, Budget: 5 * time.Millisecond}
	s := open(t, o)
	var took latencies
	var done atomic.Bool
	var rounds atomic.Int64
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			tick := time.NewTicker(time.Millisecond) // requests that wait for nothing would only wait for each other
			defer tick.Stop()
			for i := 0; !done.Load(); i++ {
				<-tick.C
				n, order := i*workers+w, rand.Perm(8)
				var winner, got []int
				var ok bool
				took.add(timed(func() { _, _ = s.Get(t.Context(), "t", key(n)) }))
				took.add(timed(func() { winner = s.Put(t.Context(), "t", key(n), order) }))
				took.add(timed(func() { got, ok = s.Get(t.Context(), "t", key(n)) }))
				if !slices.Equal(winner, order) && !slices.IsSorted(winner) || !ok || !slices.Equal(got, winner) {
					t.Errorf("place %d: put %v, want to use that or as they came, got %v, found %v %v", n, order, winner, got, ok)
					return
				}
				rounds.Add(1)
			}
		})
	}
	defer wg.Wait()
	defer done.Store(true)
	isOpen := func(want bool) func() bool {
		return func() bool { return s.Stats().Open == want }
	}
	// phase waits until the breaker is as it should be and then for some more requests.
	phase := func(what string, open bool) {
		t.Helper()
		until(t, what, isOpen(open))
		from := rounds.Load()
		until(t, "requests are answered while "+what, func() bool { return rounds.Load() > from+500 || t.Failed() })
		t.Logf("%s: %s", what, took.next())
	}
	phase("it answers", false)
	server.signal(t, syscall.SIGSTOP)
	phase("it hangs", true)
	server.signal(t, syscall.SIGCONT)
	phase("it goes on", false)
	server.kill()
	phase("it is dead", true)
	server.start(t)
	phase("it is back", false)
	done.Store(true)
	wg.Wait()
	t.Logf("%+v", s.Stats())

	n := 0
	until(t, "orders are stored in the new server", func() bool {
		n++
		s.Put(t.Context(), "u", key(n), []int{1, 0})
		_, ok := open(t, patient(o.URL)).Get(t.Context(), "u", key(n))
		return ok
	})
}

func TestRealTLSAndPassword(t *testing.T) {
	dir := t.TempDir()
	roots := certificate(t, dir)
	addr := testkit.FreeAddress(t)
	_, port, _ := net.SplitHostPort(addr)
	var args []string
	for k, v := range map[string]string{
		"--tls-port": port, "--tls-cert-file": filepath.Join(dir, "cert.pem"), "--tls-key-file": filepath.Join(dir, "key.pem"),
		"--tls-ca-cert-file": filepath.Join(dir, "cert.pem"), "--tls-auth-clients": "no", "--requirepass": "a p@ss/word",
	} {
		args = append(args, k, v)
	}
	knowsTLS(t)
	startServer(t, args...)
	o := patient("rediss://:a%20p%40ss%2Fword@" + addr)
	o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	orderstest.RunShared(t, func() orders.Store { return open(t, o) })

	t.Run("UnknownCertificate", func(t *testing.T) {
		o := o
		o.TLS = nil
		err := open(t, o).Ping(t.Context())
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("a server that nobody vouches for: %v", err)
		}
	})
	t.Run("WrongPassword", func(t *testing.T) {
		o := o
		o.URL = "rediss://:wr0ng@" + addr
		err := open(t, o).Ping(t.Context())
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("a wrong password: %v", err)
		}
	})
	t.Run("NoTLSToASecretServer", func(t *testing.T) {
		if s, err := redisorders.Open(redisorders.Options{URL: "redis://" + addr, TLS: o.TLS}); err == nil {
			_ = s.Close()
			t.Error("TLS options for a URL without TLS were accepted")
		}
	})
}

// knowsTLS skips where the server was built without TLS.
func knowsTLS(t *testing.T) {
	t.Helper()
	command, _ := testkit.Redis(t)
	out, _ := exec.CommandContext(t.Context(), command[0], "--port", "0", "--tls-port", "0").CombinedOutput() // listens nowhere, ends
	if bytes.Contains(out, []byte("Bad directive")) {
		t.Skipf("%s was built without TLS", command[0])
	}
}

// certificate writes a certificate for 127.0.0.1 and its key into a directory and returns who vouches for it: itself.
func certificate(t testing.TB, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redisorders test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(crand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	for name, data := range map[string][]byte{
		"cert.pem": encoded, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(encoded) {
		t.Fatal("the certificate was not taken")
	}
	return roots
}

func BenchmarkReal(b *testing.B) {
	url := realURL(b)
	benchmark(b, url)
}
