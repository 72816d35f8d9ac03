package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/h1"
)

// outgoing is a request as it is to be forwarded.
type outgoing struct {
	base   *url.URL
	body   []byte      // nil: the client's body as it comes
	header http.Header // instead of the client's, where set
	answer func(*http.Response) error
	failed string // what an unreachable upstream is called in the error
}

// forward sends a request upstream and passes the answer on as it arrives: event streams and answers of unknown length
// piece by piece, others as the connection takes them. The client's going away ends the upstream request.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, out outgoing) {
	rp := &httputil.ReverseProxy{
		Transport:  p.transport,
		BufferPool: &p.buffers,
		ErrorLog:   p.errorLog,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = out.base.Scheme, out.base.Host
			pr.Out.URL.Path = strings.TrimSuffix(out.base.Path, "/") + r.URL.Path
			pr.Out.URL.RawPath = ""
			pr.Out.Host = ""
			for name := range pr.Out.Header {
				if strings.HasPrefix(name, headerPrefix) {
					delete(pr.Out.Header, name)
				}
			}
			for name, values := range out.header {
				if pr.Out.Header.Del(name); len(values) > 0 {
					pr.Out.Header[name] = values
				}
			}
			if _, ok := pr.Out.Header["User-Agent"]; !ok {
				pr.Out.Header["User-Agent"] = nil // none of our own
			}
			if out.body != nil {
				pr.Out.Body = io.NopCloser(bytes.NewReader(out.body))
				pr.Out.ContentLength = int64(len(out.body))
				pr.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.body)), nil }
				pr.Out.TransferEncoding = nil
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			switch {
			case resp.StatusCode < 100: // net/http takes it, and panics when it is to be sent
				return fmt.Errorf("status %03d", resp.StatusCode)
			case resp.StatusCode == http.StatusSwitchingProtocols && (out.answer != nil || resp.Request.Header.Get("Upgrade") == ""):
				return errors.New("another protocol, for which nobody asked") // httputil would leave the connection open
			case out.answer != nil:
				return out.answer(resp)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.unreachable(w, r, out, err)
		},
	}
	rp.ServeHTTP(w, r)
}

// unreachable answers for an upstream that could not.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, out outgoing, err error) {
	if out.answer != nil {
		p.opt.Log.Warn("upstream failed", "path", r.URL.Path, "error", err)
	}
	code := http.StatusBadGateway
	var timeout net.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		code = http.StatusRequestEntityTooLarge
	case r.Context().Err() != nil:
		code = 499 // the client has gone; only the log sees this
	case errors.As(err, &timeout) && timeout.Timeout():
		code = http.StatusGatewayTimeout
	}
	writeError(w, code, out.failed+": "+err.Error())
}

// writeError answers in the reference's shape.
func writeError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": text})
}

// pool keeps copy buffers.
type pool struct{ sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *pool) Put(b []byte) { p.Pool.Put(&b) }

// NewTransport returns a transport for many requests to few upstreams. Answers pass as the upstream sent them, so it
// asks for no compression of its own. header is how long an upstream may think before it begins to answer.
func NewTransport(connect, header time.Duration) http.RoundTripper {
	dial := (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext
	return &h1.Transport{
		Dial:          dial,
		HeaderTimeout: header,
		Proxy:         http.ProxyFromEnvironment,
		Other: &http.Transport{
			DialContext:           dial,
			Proxy:                 http.ProxyFromEnvironment,
			MaxIdleConns:          4096,
			MaxIdleConnsPerHost:   1024,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   connect,
			ResponseHeaderTimeout: header,
			DisableCompression:    true,
			ForceAttemptHTTP2:     true,
		},
	}
}
