package upstreamerr

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// Transport returns a transport whose errors, and those of its answers' bodies, are cleaned.
func Transport(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, cleanFor(r.Context(), err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != nil && resp.Body != http.NoBody { // else it is a connection
		resp.Body = &body{resp.Body, r.Context()}
	}
	return resp, nil
}

// CloseIdleConnections closes connections that are not used.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type body struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // the request's, whose cause is no error of the answer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, cleanFor(b.ctx, err)
}

// cleanFor cleans an error, unless it says why the request's context has ended.
func cleanFor(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return err
	}
	return Clean(err)
}
