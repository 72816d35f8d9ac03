package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onFreePorts is a configuration whose listeners take free ports of this machine.
func onFreePorts(change ...func(*settings.Config)) settings.Config {
	c := settings.Default()
	c.Listen, c.AdminAddr, c.LogLevel = "127.0.0.1:0", "127.0.0.1:0", "debug"
	for _, f := range change {
		f(&c)
	}
	return c
}

// running is a server that runs until the test ends or stop is called.
type running struct {
	*server.Server
	url, admin string
	log        *testkit.Log
	live       *settings.Live
	client     *http.Client
	cancel     context.CancelFunc // makes it stop
	stop       func() error       // the same, and returns what Run returned
}

func start(t testing.TB, cfg settings.Config, api http.HandlerFunc, load ...func() (settings.Config, error)) *running {
	t.Helper()
	r := &running{log: new(testkit.Log)}
	live := settings.NewLive(cfg)
	r.live = live
	options := server.Options{Live: live, Logger: server.NewLogger(r.log, cfg.LogFormat, live)}
	if len(load) > 0 {
		options.Load = load[0]
	}
	r.begin(t, cfg, api, options)
	return r
}

func (r *running) begin(t testing.TB, cfg settings.Config, api http.Handler, options server.Options) {
	t.Helper()
	var err error
	if r.Server, err = server.New(cfg, api, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	transport := &http.Transport{}
	r.client, r.cancel = &http.Client{Transport: transport, Timeout: testkit.Patience}, cancel
	r.stop = sync.OnceValue(func() error {
		cancel()
		transport.CloseIdleConnections()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() })
	select {
	case <-r.Listening():
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	r.url, r.admin = "http://"+r.Addr(), "http://"+r.AdminAddr()
}

// reply is an answer that was read to its end.
type reply struct {
	code   int
	header http.Header
	body   string
}

// ask sends a request; header holds names and values in turn.
func (r *running) ask(t *testing.T, method, url string, body io.Reader, header ...string) reply {
	t.Helper()
	code, got, text := testkit.Ask(t, r.client, testkit.Request(t, method, url, body, header...))
	return reply{code, got, text}
}

func (r *running) get(t *testing.T, url string, header ...string) reply {
	t.Helper()
	return r.ask(t, http.MethodGet, url, nil, header...)
}

// hello is an API that answers every request.
func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "hello")
}

// record asks a handler without a connection.
func record(h http.Handler, path string) reply {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	return reply{w.Code, w.Header(), w.Body.String()}
}
