//go:build linux

package faulttest_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
)

// front spreads requests over replicas in turn, as a load balancer does that knows nothing of them: no session stays with
// a replica. It goes on to the next one only if a connection was refused, or closed before the first byte of an answer.
type front struct {
	*httptest.Server
	addrs     []string // of the replicas
	transport *http.Transport
	turn      atomic.Int64
	retried   atomic.Int64

	mu       sync.Mutex
	answered map[string]string // addresses by requests' IDs; guarded by mu
}

func newFront(t *testing.T, addrs ...string) *front {
	t.Helper()
	f := &front{addrs: addrs, answered: map[string]string{}, transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		f.transport.CloseIdleConnections()
	})
	return f
}

// client is a sidecar as clients see it who only know the front.
func (f *front) client(t *testing.T) *sidecar {
	t.Helper()
	return &sidecar{url: f.URL, client: newClient(t, nil), ledger: new(ledger)}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	first := f.turn.Add(1)
	for try := range 2 * int64(len(f.addrs)) { // each may have one connection that was just closed
		addr := f.addrs[(first+try)%int64(len(f.addrs))]
		response, again, err := f.ask(r, addr, body)
		switch {
		case err == nil:
			f.mu.Lock()
			f.answered[r.Header.Get("X-Request-Id")] = addr
			f.mu.Unlock()
			passOn(w, response)
			return
		case !again:
			panic(http.ErrAbortHandler) // the client sees what the front saw
		}
		f.retried.Add(1)
	}
	http.Error(w, "no replica takes the request", http.StatusBadGateway)
}

// ask sends a request to a replica. After an error again reports whether another one may be asked.
func (f *front) ask(r *http.Request, addr string, body []byte) (response *http.Response, again bool, err error) {
	var began atomic.Bool
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { began.Store(true) }}
	request, err := http.NewRequestWithContext(
		httptrace.WithClientTrace(r.Context(), trace),
		r.Method,
		"http://"+addr+r.URL.Path,
		bytes.NewReader(body),
	)
	if err != nil {
		return nil, false, err
	}
	request.GetBody = nil // nothing is sent twice behind the front's back
	request.Header = r.Header.Clone()
	response, err = f.transport.RoundTrip(request)
	return response, !began.Load(), err
}

// passOn gives an answer to the client as it comes.
func passOn(w http.ResponseWriter, response *http.Response) {
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	for part, flush := make([]byte, 32<<10), http.NewResponseController(w); ; {
		n, err := response.Body.Read(part)
		if n > 0 {
			_, _ = w.Write(part[:n]) // a client that has gone ends the context
			_ = flush.Flush()
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// changes counts how often a conversation's next turn was answered by another replica.
func (f *front) changes(talks []*conversation) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range talks {
		for i := 1; i < len(c.ids); i++ {
			if f.answered[c.ids[i]] != f.answered[c.ids[i-1]] {
				n++
			}
		}
	}
	return n
}
