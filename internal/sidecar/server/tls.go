package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

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
