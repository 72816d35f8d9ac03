package upstreamerr

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// Malformed is what is wrong with an answer. It has none of the answer's bytes.
type Malformed string

func (m Malformed) Error() string { return string(m) }

// kinds are what is said for an error whose text holds a part. The first that fits counts.
var kinds = []struct {
	part string
	kind Malformed
}{
	{"malformed HTTP response", "malformed status line"},
	{"malformed HTTP status code", "malformed status code"},
	{"malformed HTTP version", "malformed HTTP version"},
	{"malformed MIME header", "malformed header line"},
	{"multiple Content-Length", "several Content-Length headers"},
	{"bad Content-Length", "malformed Content-Length"},
	{"transfer encoding", "unsupported transfer encoding"},
	{"response headers of more than", "headers are too long"},
	{"response headers exceeded", "headers are too long"},
	{"message too large", "headers are too long"},
	{"too many 1xx", "too many informational answers"},
	{"tried to switch", "another protocol than was asked for"},
	{"chunk", "malformed chunk"},
	{"trailer", "malformed trailer"},
	{"GOAWAY", "HTTP/2 connection ended by the server"},
	{"stream error", "HTTP/2 stream ended with an error"},
	{"connection error", "HTTP/2 connection ended with an error"},
	{"client connection lost", "HTTP/2 connection lost"},
	{"http2", "not valid HTTP/2"},
	{"server closed idle connection", "connection closed by the server"},
	{"ContentLength=", "request body of another length than was said"},
}

// Clean returns an error that has no bytes of an answer: err itself if it can have none, else a Malformed.
func Clean(err error) error {
	if err == nil || harmless(err) {
		return err
	}
	text := err.Error()
	for _, k := range kinds {
		if strings.Contains(text, k.part) {
			return k.kind
		}
	}
	return Malformed("not a valid HTTP answer")
}

// harmless reports whether an error comes from what quotes no answer. Of one that wraps others, all must.
func harmless(err error) bool {
	switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at
	case nil:
		return false
	case Malformed, *url.Error, *net.OpError, *os.SyscallError:
	case *net.DNSError, *net.AddrError, syscall.Errno, tls.AlertError, tls.RecordHeaderError, *http.MaxBytesError,
		x509.CertificateInvalidError, x509.HostnameError, x509.UnknownAuthorityError, x509.SystemRootsError,
		*tls.CertificateVerificationError:
		return true
	case net.Error:
		if e.Timeout() {
			return true
		}
	}
	if op, ok := err.(*net.OpError); ok && (op.Op == "remote error" || op.Op == "local error") { //nolint:errorlint // as above
		return true // alerts of TLS
	}
	switch err { //nolint:errorlint // wrappers are looked at below
	case io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded,
		http.ErrBodyReadAfterClose, http.ErrSchemeMismatch, http.ErrHandlerTimeout, http.ErrAbortHandler:
		return true
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case Malformed:
		return true
	case interface{ Unwrap() error }:
		return harmless(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			if !harmless(each) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	}
	return strings.HasPrefix(err.Error(), "tls: ") || strings.HasPrefix(err.Error(), "x509: ")
}
