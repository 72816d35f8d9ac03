package stage

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"
)

// The program has no option for a provider's address, and a test of the real thing should not need one: the program
// finds the fake where it looks for the provider, behind an HTTPS proxy that leads every name to the fake, which has
// certificates of an authority that the program is told to trust. Go reads SSL_CERT_FILE on Linux only (not on macOS
// and Windows).

var providers = []string{"api.anthropic.com", "api.openai.com", "api.minimax.io"}

// cloud is where the program meets the fake under the providers' names.
type cloud struct {
	server, proxy *httptest.Server
	env           []string // for the program
}

// newCloud serves a handler under the providers' names. dir is for the authority's certificate.
func newCloud(h http.Handler, dir string) (*cloud, error) {
	certificate, authority, err := certificateFor(providers)
	if err != nil {
		return nil, err
	}
	c := &cloud{server: httptest.NewUnstartedServer(h)}
	c.server.EnableHTTP2 = true // as the providers speak it
	c.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	c.server.StartTLS()
	c.proxy = httptest.NewServer(http.HandlerFunc(c.connect))
	file := filepath.Join(dir, "authority.pem")
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		c.close()
		return nil, err
	}
	c.env = []string{"HTTPS_PROXY=" + c.proxy.URL, "NO_PROXY=", "SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + dir}
	return c, nil
}

func (c *cloud) close() {
	c.proxy.CloseClientConnections()
	c.proxy.Close()
	c.server.CloseClientConnections()
	c.server.Close()
}

// connect is an HTTPS proxy for which every address is the fake's.
func (c *cloud) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "want CONNECT", http.StatusMethodNotAllowed)
		return
	}
	upstream, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", c.server.Listener.Addr().String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = upstream.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(upstream, buffered)
		_ = upstream.Close()
	}()
	_, _ = io.Copy(client, upstream)
	_ = client.Close()
}

// certificateFor makes an authority and a certificate of it, for a day.
func certificateFor(names []string) (tls.Certificate, []byte, error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ragpilot sdk test"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, authorityKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}), nil
}
