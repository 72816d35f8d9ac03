package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// authority signs certificates that are good for an hour and for 127.0.0.1.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), next: 1}
	a.cert, a.key = a.sign(func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) sign(change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(
			a.next,
		), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	a.next++
	change(c)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed, key
}

func (a *authority) write(name, kind string, raw []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes name.pem and name.key, and returns their paths.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	signed, secret := a.sign(func(*x509.Certificate) {})
	raw, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", signed.Raw), a.write(name+".key", "EC PRIVATE KEY", raw)
}

// client trusts the authority; with a name it presents that certificate. Every request is a connection of its own.
func (a *authority) client(name string) *http.Client {
	a.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.cert)
	if name != "" {
		c, err := tls.LoadX509KeyPair(a.issue(name))
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{c}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testkit.Patience}
}

func (r *running) over(client *http.Client) *running {
	r.client, r.url = client, "https://"+r.Addr()
	return r
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("server")
	cfg := onFreePorts(func(c *settings.Config) { c.TLS = settings.TLS{Cert: cert, Key: key}; c.Limits.BodyBytes = 100 })
	r := start(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, r.Proto)
	}, func() (settings.Config, error) { return cfg, nil }).over(a.client(""))
	if got := r.get(t, r.url+"/"); got.body != "HTTP/2.0" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := r.ask(t, http.MethodPost, r.url+"/", chunked(strings.Repeat("x", 200))); got.code != http.StatusRequestEntityTooLarge {
		t.Errorf("limit over HTTP/2: %d %s", got.code, got.body)
	}
	plain := &http.Client{Transport: &http.Transport{}, Timeout: testkit.Patience}
	req := testkit.Request(t, http.MethodGet, "http://"+r.Addr(), http.NoBody)
	if res, err := plain.Do(req); err == nil {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", res.StatusCode)
		}
	}
	plain.CloseIdleConnections()

	serial := func() int64 {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.pool()}}).DialContext(t.Context(), "tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	before := serial()
	a.issue("server") // the same files
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if after := serial(); after == before {
		t.Error("a renewed certificate needs a restart")
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); !errors.Is(err, settings.ErrBadConfig) || !strings.Contains(err.Error(), cert) {
		t.Errorf("broken certificate: %v", err)
	}
	if serial() == before {
		t.Error("a broken certificate changed something")
	}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func TestMutualTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	cert, key := a.issue("server")
	r := start(t, onFreePorts(func(c *settings.Config) {
		c.TLS = settings.TLS{Cert: cert, Key: key, ClientCA: filepath.Join(a.dir, "ca.pem")}
	}), hello).over(a.client("client"))
	if got := r.get(t, r.url+"/"); got.body != "hello" {
		t.Errorf("with a certificate: %d %s", got.code, got.body)
	}
	foreign := stranger.client("client")
	foreign.Transport.(*http.Transport).TLSClientConfig.RootCAs = a.pool()
	for name, client := range map[string]*http.Client{"without a certificate": a.client(""), "with a stranger's": foreign} {
		req := testkit.Request(t, http.MethodGet, r.url+"/healthz", http.NoBody)
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
}

func TestBadTLSFiles(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("server")
	_, other := a.issue("other")
	for name, files := range map[string]settings.TLS{
		"missing.pem": {Cert: filepath.Join(a.dir, "missing.pem"), Key: key},
		"other.key":   {Cert: cert, Key: other},
		"server.key":  {Cert: cert, Key: key, ClientCA: key},
		"missing.ca":  {Cert: cert, Key: key, ClientCA: filepath.Join(a.dir, "missing.ca")},
	} {
		_, err := server.New(onFreePorts(func(c *settings.Config) { c.TLS = files }), http.HandlerFunc(hello), server.Options{})
		if !errors.Is(err, settings.ErrBadConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
