package upstreamerr_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/upstreamerr"
)

// What the network and TLS say stays as it is: people need it to find what is wrong.
func TestHarmlessErrorsStay(t *testing.T) {
	for _, err := range []error{
		nil, io.EOF, io.ErrUnexpectedEOF, context.Canceled, net.ErrClosed, syscall.ECONNRESET, tls.AlertError(42),
		&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "engine"}},
		&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
		&url.Error{Op: "Get", URL: "http://engine", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}},
		fmt.Errorf("write request: %w", syscall.EPIPE), errors.Join(io.EOF, net.ErrClosed), http.ErrSchemeMismatch,
		upstreamerr.Malformed("malformed chunk"),
	} {
		if got := upstreamerr.Clean(err); !errors.Is(got, err) || err != nil && got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestOthersBecomeKinds(t *testing.T) {
	const secret = "what the model said"
	for text, want := range map[string]string{
		`malformed HTTP response "%s"`: "malformed status line",
		`net/http: HTTP/1.x transport connection broken: malformed HTTP status code "%s"`: "malformed status code",
		`malformed MIME header line: %s`: "malformed header line",
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR,` +
			` debug="%s"`: "HTTP/2 connection ended by the server",
		`%s`: "not a valid HTTP answer",
	} {
		for _, err := range []error{
			fmt.Errorf(text, secret), textproto.ProtocolError(fmt.Sprintf(text, secret)),
			&url.Error{Op: "Get", URL: "http://engine", Err: fmt.Errorf(text, secret)},
			errors.Join(io.EOF, fmt.Errorf(text, secret)), fmt.Errorf("%w, %w", fmt.Errorf(text, secret), io.EOF),
		} {
			if got := upstreamerr.Clean(err).Error(); got != want || strings.Contains(got, secret) {
				t.Errorf("%v became %q, want %q", err, got, want)
			}
		}
	}
}
