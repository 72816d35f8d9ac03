//go:build linux

package faulttest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// sidecar is a running `ragpilot serve`.
type sidecar struct {
	*process
	url, addr, admin string
	settings         string // the file
	client           *http.Client
	ledger           *ledger
}

// vitals are what must not grow.
type vitals struct{ goroutines, files int }

// serve starts a sidecar in front of an upstream, with settings in YAML and flags on top.
func serve(t *testing.T, upstream, settings string, flags ...string) *sidecar {
	t.Helper()
	return serveIn(t, nil, upstream, settings, flags...)
}

// tidy has Go collect garbage when the heap comes near to what a process may take: how late it does otherwise depends on how busy the machine is.
func tidy(mib int) []string { return []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", mib)} }

// serveIn starts a sidecar with variables in its environment.
func serveIn(t *testing.T, variables []string, upstream, settings string, flags ...string) *sidecar {
	t.Helper()
	name, err := program()
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{settings: filepath.Join(t.TempDir(), "ragpilot.yaml"), client: newClient(t, nil), ledger: new(ledger)}
	s.rewrite(t, settings)
	args := []string{
		"serve",
		"--config",
		s.settings,
		"--listen",
		testkit.FreeAddress(t), // at which another may be started when this one is gone
		"--admin-addr",
		"127.0.0.1:0",
		"--pprof",
		"--infer-api-url",
		upstream,
	}
	s.process = launch(t, variables, name, append(args, flags...)...)
	found := s.log.until(t, `msg=listening addr=(\S+) admin_addr=(\S+) `)
	s.addr, s.url, s.admin = found[1], "http://"+found[1], "http://"+found[2]
	return s
}

// serveTLS is serve with HTTP/2 in front.
func serveTLS(t *testing.T, upstream, settings string, flags ...string) *sidecar {
	t.Helper()
	cert, key, pool := certificate(t)
	s := serve(t, upstream, settings, append(flags, "--tls-cert", cert, "--tls-key", key)...)
	s.url, s.client = "https://"+s.addr, newClient(t, pool)
	return s
}

// rewrite writes the settings file.
func (s *sidecar) rewrite(t *testing.T, settings string) {
	t.Helper()
	if err := os.WriteFile(s.settings, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newClient returns a client with connections of its own; with authorities it speaks HTTP/2.
func newClient(t *testing.T, authorities *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024, WriteBufferSize: 64 << 10}
	if authorities != nil {
		transport.TLSClientConfig, transport.ForceAttemptHTTP2 = &tls.Config{RootCAs: authorities}, true
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask reads a page of the admin address, over a connection of its own.
func (s *sidecar) ask(t *testing.T, path string) (int, string) {
	t.Helper()
	req := testkit.Request(t, http.MethodGet, s.admin+path, http.NoBody)
	req.Close = true
	code, _, text := testkit.Ask(t, http.DefaultClient, req)
	return code, text
}

var goroutineCount = regexp.MustCompile(`^goroutine profile: total (\d+)\n`)

func (s *sidecar) vitals(t *testing.T) (v vitals, profile string) {
	t.Helper()
	_, profile = s.ask(t, "/debug/pprof/goroutine?debug=1")
	found := goroutineCount.FindStringSubmatch(profile)
	if found == nil {
		t.Fatalf("no goroutine profile: %.100s", profile)
	}
	v.goroutines, _ = strconv.Atoi(found[1]) // digits
	v.files = s.files(t)
	return v, profile
}

// atRest serves one request and returns the vitals when nothing is going on and no connection is open.
func (s *sidecar) atRest(t *testing.T, e *engine) vitals {
	t.Helper()
	s.alive(t)
	var v vitals
	eventually(t, "rest", func() bool {
		s.hangUp(e)
		before := v
		v, _ = s.vitals(t)
		return v == before
	})
	return v
}

// hangUp closes connections on which nobody waits.
func (s *sidecar) hangUp(e *engine) {
	s.client.CloseIdleConnections()
	if e != nil {
		e.hangUp()
	}
}

// recovered checks what holds after any fault: the server answers, and has come back to what it held before.
func (s *sidecar) recovered(t *testing.T, e *engine, before vitals) {
	t.Helper()
	s.alive(t)
	var now vitals
	var profile, metrics string
	if !eventually(t, fmt.Sprintf("back to %+v", before), func() bool {
		s.hangUp(e)
		now, profile = s.vitals(t)
		return now.goroutines <= before.goroutines && now.files <= before.files
	}) {
		t.Errorf("still %+v\n%s", now, profile)
	}
	eventually(t, "no request in flight, no panic", func() bool {
		_, metrics = s.ask(t, "/metrics")
		return regexp.MustCompile(`(?m)^ragpilot_http_requests_in_flight 0$`).MatchString(metrics) &&
			regexp.MustCompile(`(?m)^ragpilot_http_panics_total 0$`).MatchString(metrics)
	})
}

// alive checks that the server answers a request, on a new connection: one that idled may be closed this very moment.
func (s *sidecar) alive(t *testing.T) {
	t.Helper()
	s.client.CloseIdleConnections()
	if r := s.send(t, wholeChat(1)); r.code != http.StatusOK || r.err != nil {
		t.Errorf("the next request: %v", r)
	}
}

// certificate makes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faulttest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind string, text []byte) string {
		name := filepath.Join(t.TempDir(), "x.pem")
		var b bytes.Buffer
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: text}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return write("CERTIFICATE", cert), write("PRIVATE KEY", private), pool
}
