package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// bounded is a listener with at most so many open connections. One more is answered 503 and closed: a client that waits
// unanswered would not know why.
type bounded struct {
	net.Listener
	most    func() int
	open    atomic.Int64
	plain   bool   // no TLS: the answer can be read
	refused func() // reports each that was closed
}

// Accept returns the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= int64(b.most()) {
			return &counted{c.(*net.TCPConn), sync.OnceFunc(func() { b.open.Add(-1) })}, nil // the listener is for TCP
		}
		b.open.Add(-1)
		b.refused()
		if b.plain {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // 150 bytes: the kernel takes them at once
			_, _ = c.Write([]byte(full))
		}
		_ = c.Close()
	}
}

const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 42\r\n" +
	"Retry-After: 1\r\nConnection: close\r\n\r\n" +
	`{"detail":"Too many connections are open"}`

// counted is a connection that gives its place back when it is closed. net/http also uses what only TCP connections can do.
type counted struct {
	*net.TCPConn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.TCPConn.Close()
}

func readCertificate(t settings.TLS) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: tls.cert %q, tls.key %q: %w", settings.ErrBadConfig, t.Cert, t.Key, err)
	}
	return &c, nil
}

// tlsConfig asks s for its certificate at every handshake, so that Reload can change it.
func (s *Server) tlsConfig(t settings.TLS) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil },
	}
	if t.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("%w: tls.client_ca: %w", settings.ErrBadConfig, err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: tls.client_ca %q: holds no certificate", settings.ErrBadConfig, t.ClientCA)
	}
	return c, nil
}
