package httpload_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server in memory. The returned function ends it; it must run before a bubble ends.
func serve(t testing.TB, h http.HandlerFunc) (*httpload.Target, func()) {
	t.Helper()
	n := testkit.NewNetwork()
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(n) }()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 1000, DisableCompression: true}}
	target, err := httpload.NewTarget("http://memory", "chat/completions", "", client)
	if err != nil {
		t.Fatal(err)
	}
	return target, func() {
		target.Close()
		_ = server.Close()
	}
}

// fixed is the same body for all requests.
var fixed = httpload.Recorded{[]byte(`{}`)}
