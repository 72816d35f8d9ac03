package proxy

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/sidecar/h1"
	"github.com/ragpilot/ragpilot/internal/sidecar/reqbody"
)

// outgoing is a request as it is to be forwarded.
type outgoing struct {
	base   *url.URL
	body   []byte      // nil: the client's body as it comes
	header http.Header // instead of the client's, where set
	answer func(*http.Response) error
	failed string // what an unreachable upstream is called in the error
	ownKey bool   // the client's key is sent, not ours
	fresh  bool   // over a new connection
}

// forward sends a request upstream and passes the answer on as it arrives: event streams and answers of unknown length
// piece by piece, others as the connection takes them. The client's going away ends the upstream request.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, out outgoing) {
	rp := &httputil.ReverseProxy{
		Transport:  p.transport,
		BufferPool: &p.buffers,
		ErrorLog:   p.errorLog,
		Rewrite: func(pr *httputil.ProxyRequest) {
			if out.fresh {
				pr.Out = pr.Out.WithContext(h1.WithFresh(pr.Out.Context()))
			}
			pr.Out.URL.Scheme, pr.Out.URL.Host = out.base.Scheme, out.base.Host
			pr.Out.URL.Path = strings.TrimSuffix(out.base.Path, "/") + r.URL.Path
			pr.Out.URL.RawPath = strings.TrimSuffix(out.base.EscapedPath(), "/") + r.URL.EscapedPath()
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery // also what httputil cannot parse
			pr.Out.Host = ""
			p.keepForwarded(pr)
			keepConnection(pr.Out.Header, out.answer != nil, p.opt.Provider != nil)
			pr.Out.Header.Del("Expect") // the client goes on since its body was asked for
			pr.Out.Trailer = nil        // no API here has any, and a key could stand there
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
			if p.auth != "" && !out.ownKey {
				pr.Out.Header.Set("Authorization", p.auth)
			}
			if _, ok := pr.Out.Header["User-Agent"]; !ok {
				pr.Out.Header["User-Agent"] = nil // none of our own
			}
			if out.body != nil {
				pr.Out.Body = &source{rest: out.body}
				pr.Out.ContentLength = int64(len(out.body))
				pr.Out.GetBody = func() (io.ReadCloser, error) { return &source{rest: out.body}, nil }
				pr.Out.TransferEncoding = nil
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			out.body = nil // it is not sent again
			reqbody.Release(r)
			switch {
			case resp.StatusCode < 100: // net/http takes it, and panics when it is to be sent
				return badAnswer(fmt.Sprintf("status %03d", resp.StatusCode))
			case resp.StatusCode == http.StatusSwitchingProtocols && (out.answer != nil || resp.Request.Header.Get("Upgrade") == ""):
				return badAnswer("another protocol than was asked for") // httputil would leave the connection open
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

// source is a body in memory that lets go of it when it is closed, which a transport does when it was sent: the answer may
// take minutes. Transports may close while they read.
type source struct {
	mu   sync.Mutex
	rest []byte // guarded by mu
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close forgets the bytes.
func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = nil
	return nil
}

// authorization is what an engine asks for: a key, or else the user and password in its address.
func authorization(key string, user *url.Userinfo) string {
	if key != "" {
		return "Bearer " + key
	}
	if user == nil {
		return ""
	}
	password, _ := user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
}

// keepForwarded passes on what proxies in front have said of the client, which httputil takes out. A cloud provider does
// not get it: it would learn addresses of one's own network. Nor does it learn the names of tenants.
func (p *Proxy) keepForwarded(pr *httputil.ProxyRequest) {
	if p.opt.Provider != nil {
		pr.Out.Header.Del(p.opt.TenantHeader)
		for name := range pr.Out.Header {
			if namesClient(name) {
				delete(pr.Out.Header, name)
			}
		}
		return
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = values
		}
	}
}

// namesClient reports whether proxies write the client's address into a header.
func namesClient(name string) bool {
	switch name {
	case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "True-Client-Ip",
		"Fastly-Client-Ip", "Client-Ip":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") || strings.HasPrefix(name, "Cf-") ||
		strings.HasPrefix(name, "X-Azure-")
}

// keepConnection leaves out what is between the client and us. Clients that offer HTTP/2 with every request are not taken at their
// word: engines lose the body of a request that offers another protocol. WebSockets stay possible, where no answer is read.
// Cloud providers compress when they are asked to: an answer that is read is asked for as it is.
func keepConnection(h http.Header, read, cloud bool) {
	h.Del("Te")
	if read || !strings.EqualFold(h.Get("Upgrade"), "websocket") {
		h.Del("Upgrade")
		h.Del("Connection")
	}
	if read && cloud {
		h.Set("Accept-Encoding", "identity")
	}
}

// pool keeps copy buffers.
type pool struct{ sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 8<<10) // thousands of open streams have one each
}

func (p *pool) Put(b []byte) { p.Pool.Put(&b) }

// NewTransport returns a transport for many requests to few upstreams. Answers pass as the upstream sent them, so it
// asks for no compression of its own. header is how long an upstream may think before it begins to answer.
func NewTransport(connect, header time.Duration) *h1.Transport {
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
