package discover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/discover"
	"github.com/ragpilot/ragpilot/engines/sim"
)

func newRouter(t *testing.T) (*engines.Router, *contextpilot.Pilot) {
	t.Helper()
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	router, err := engines.NewRouter(engines.RouterOptions{Pilot: pilot})
	if err != nil {
		t.Fatal(err)
	}
	return router, pilot
}

// changing is a source that a test changes.
type changing struct {
	mu    sync.Mutex
	named map[string]string
	err   error
}

func (c *changing) set(named map[string]string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named, c.err = named, err
}

func (c *changing) Replicas(context.Context) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.named, c.err
}

func states(r *engines.Router) string {
	var out []string
	for _, s := range r.Replicas() {
		up := "down"
		if s.Up {
			up = "up"
		}
		out = append(out, s.Name+" "+up)
	}
	return strings.Join(out, ", ")
}

// Replicas come, go, change their address, fall ill and recover; each look brings the router to what is so.
func TestLook(t *testing.T) {
	router, pilot := newRouter(t)
	source := &changing{}
	ill := map[string]bool{}
	var opened, closed []string
	w, err := discover.New(discover.Options{
		Router: router, Source: source, Every: time.Second,
		Open: func(name, url string) (engines.Engine, error) {
			if url == "http://broken" {
				return nil, errors.New("cannot")
			}
			opened = append(opened, name+" "+url)
			return sim.New(sim.Options{}), nil
		},
		Close: func(name string, _ engines.Engine) { closed = append(closed, name) },
		Probe: func(_ context.Context, name, _ string) error {
			if ill[name] {
				return errors.New("ill")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	look := func(want string) {
		t.Helper()
		w.Look(t.Context())
		if got := states(router); got != want {
			t.Errorf("router has %q, want %q", got, want)
		}
	}
	look("")
	source.set(map[string]string{"a": "http://a", "b": "http://b", "c": "http://broken"}, nil)
	look("a up, b up")
	route, err := router.Route(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "x", Text: "x", Tokens: 100}}}, "b")
	if err != nil {
		t.Fatal(err)
	}
	route.Done(engines.Usage{}, nil)
	if live := pilot.Stats().LiveRequests; live != 1 {
		t.Fatalf("%d live requests, want 1", live)
	}
	source.set(nil, errors.New("the list is not to be had"))
	look("a up, b up")
	ill["a"] = true
	look("a down, b up")
	if live := pilot.Stats().LiveRequests; live != 0 {
		t.Errorf("%d live requests of a replica that is down", live)
	}
	ill["a"] = false
	look("a up, b up")
	source.set(map[string]string{"a": "http://elsewhere", "b": "http://b"}, nil)
	look("a up, b up")
	source.set(map[string]string{"b": "http://b"}, nil)
	look("b up")
	if diff := cmp.Diff([]string{"a", "a"}, closed); diff != "" {
		t.Error("closed:", diff)
	}
	if got := strings.Join(opened, ", "); !strings.Contains(got, "a http://a") || !strings.Contains(got, "a http://elsewhere") ||
		len(opened) != 3 {
		t.Error("opened:", got)
	}
}

// TestBusyReplicas: replicas that are late all together stay up for a while, and one that is late alone does not.
func TestBusyReplicas(t *testing.T) {
	router, _ := newRouter(t)
	errs := map[string]error{}
	w, err := discover.New(discover.Options{
		Router: router, Source: discover.Static{"a": "http://a", "b": "http://b"},
		Probe: func(_ context.Context, name, _ string) error { return errs[name] }, // asked one look after the other
	})
	if err != nil {
		t.Fatal(err)
	}
	slow, refused := fmt.Errorf("asking: %w", context.DeadlineExceeded), errors.New("connection refused")
	for _, c := range []struct {
		a, b error
		want string
	}{
		{nil, nil, "a b"},
		{slow, slow, "a b"},
		{slow, nil, "b"},
		{nil, nil, "a b"},
		{slow, refused, ""},
		{refused, refused, ""},
		{slow, slow, ""},
		{slow, nil, "b"},
		{slow, slow, ""},
	} {
		errs["a"], errs["b"] = c.a, c.b
		w.Look(t.Context())
		if got := up(router); got != c.want {
			t.Errorf("a: %v, b: %v: %q are up, want %q", c.a, c.b, got, c.want)
		}
	}
}

// up names the replicas that are up.
func up(router *engines.Router) string {
	var names []string
	for _, s := range router.Replicas() {
		if s.Up {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, " ")
}

// TestLateForLong: replicas that are late together are down after ten looks, and what the router has taken down in the meantime
// does not come up again before it answers.
func TestLateForLong(t *testing.T) {
	router, _ := newRouter(t)
	var err error
	w, fault := discover.New(discover.Options{
		Router: router, Source: discover.Static{"a": "http://a", "b": "http://b", "c": "http://c"},
		Probe: func(context.Context, string, string) error { return err },
	})
	if fault != nil {
		t.Fatal(fault)
	}
	for range 2 {
		err = nil
		w.Look(t.Context())
		if got := up(router); got != "a b c" {
			t.Fatalf("%q are up after they answered", got)
		}
		err = fmt.Errorf("asking: %w", context.DeadlineExceeded)
		for i := range 10 {
			w.Look(t.Context())
			want := "a b c"
			if i > 0 {
				want = "b c"
			}
			if got := up(router); got != want {
				t.Fatalf("%q are up after %d looks, want %q", got, i+1, want)
			}
			if fault := router.SetUp("a", false); fault != nil { // a request found it unreachable
				t.Fatal(fault)
			}
		}
		w.Look(t.Context())
		if got := up(router); got != "" {
			t.Fatalf("%q are up after 11 looks", got)
		}
	}
}

// A replica that stops answering takes no more requests one interval later, and one that hangs does not hold up the others.
func TestDeadReplica(t *testing.T) {
	router, _ := newRouter(t)
	var state atomic.Int32 // 0: well, 1: refuses, 2: hangs
	serve := func(ill *atomic.Int32) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/health" {
				t.Error("asked for", r.URL.Path)
			}
			switch ill.Load() {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				<-r.Context().Done()
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	a, b := serve(&state), serve(new(atomic.Int32))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	const every = 200 * time.Millisecond
	w, err := discover.New(discover.Options{
		Router: router, Source: discover.Static{"a": a.URL, "b": b.URL}, Every: every, Probe: discover.Health(client),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); states(router) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("router has %q, want %q", states(router), want)
			}
		}
	}
	wait("a up, b up")
	state.Store(1)
	wait("a down, b up")
	state.Store(0)
	wait("a up, b up")
	state.Store(2)
	wait("a down, b up")
	for range 20 {
		route, err := router.Route(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "x", Tokens: 10}}})
		if err != nil || route.Score.Replica != "b" {
			t.Fatal(route, err)
		}
		route.Done(engines.Usage{}, nil)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A watcher that is stopped while its probes are out leaves the router as it is: that they broke off says nothing of the replicas.
func TestStoppedWhileProbing(t *testing.T) {
	router, pilot := newRouter(t)
	ctx, stop := context.WithCancel(t.Context())
	looks := 0
	w, err := discover.New(discover.Options{
		Router: router, Source: discover.Static{"a": "http://a"}, Every: time.Hour,
		Probe: func(ctx context.Context, _, _ string) error {
			if looks++; looks > 1 {
				stop()
				<-ctx.Done()
			}
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Look(ctx)
	route, err := router.Route(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "x", Text: "x", Tokens: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	route.Done(engines.Usage{}, nil)
	w.Look(ctx) // stopped while it is out
	w.Look(ctx) // and one more, as Run may do it
	if got, live := states(router), pilot.Stats().LiveRequests; looks < 2 || got != "a up" || live != 1 {
		t.Errorf("router has %q and %d live requests after %d probes, want \"a up\" and 1", got, live, looks)
	}
}

// Why a replica does not come up is logged, once.
func TestFirstProbeFails(t *testing.T) {
	router, _ := newRouter(t)
	var log bytes.Buffer
	w, err := discover.New(discover.Options{
		Router: router, Source: discover.Static{"a": "http://a/v1"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Probe: func(context.Context, string, string) error { return errors.New("health: status 404") },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.Look(t.Context())
	}
	if n := strings.Count(log.String(), "status 404"); n != 1 || states(router) != "a down" {
		t.Errorf("logged %d times, router has %q:\n%s", n, states(router), log.String())
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "replicas")
	for text, want := range map[string]any{
		"":                                       map[string]string{},
		"# none\n\n":                             map[string]string{},
		"http://10.0.0.1:8000\nb https://b/base": map[string]string{"http://10.0.0.1:8000": "http://10.0.0.1:8000", "b": "https://b/base"},
		"a http://a c":                           `:1: want "URL" or "name URL"`,
		"a http://a\n# x\nb ftp://b":             `:3: replica "b": "ftp://b": want a URL with http or https and a host`,
		"a http://a\na http://b":                 `:2: replica "a" stands there twice`,
		"a http://%zz":                           `:1: replica "a"`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := discover.File(name).Replicas(t.Context())
		switch want := want.(type) {
		case string:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v, want %q", text, err, want)
			}
		default:
			if diff := cmp.Diff(want, any(got)); err != nil || diff != "" {
				t.Errorf("%q: %v %s", text, err, diff)
			}
		}
	}
	if _, err := discover.File(name + "x").Replicas(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("a http://a\n#\nhttp://b")
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "replicas")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := discover.File(name).Replicas(t.Context())
		if err != nil {
			return
		}
		again, err := discover.Static(got).Replicas(t.Context())
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%q: accepted what is not valid: %v %s", text, err, diff)
		}
	})
}

// localhost is what every machine's resolver knows.
func TestDNS(t *testing.T) {
	got, err := discover.DNS{Host: "localhost", Port: 8000}.Replicas(t.Context())
	if err != nil {
		t.Skip("not run: localhost cannot be looked up:", err)
	}
	if got["127.0.0.1:8000"] != "http://127.0.0.1:8000" && got["[::1]:8000"] != "http://[::1]:8000" {
		t.Error(got)
	}
	for _, bad := range []discover.Source{
		discover.DNS{Port: 1},
		discover.DNS{Host: "x"},
		discover.DNS{Host: "x", Port: 70000},
		discover.SRV{},
		discover.Static{"a": "b"},
		discover.Static{"": "http://b"},
	} {
		if _, err := bad.Replicas(t.Context()); err == nil {
			t.Errorf("%#v: no error", bad)
		}
	}
}

func TestOptions(t *testing.T) {
	router, _ := newRouter(t)
	for want, o := range map[string]discover.Options{
		"Options.Router is nil":                   {Source: discover.Static{}},
		"Options.Source is nil":                   {Router: router},
		"Options.Every -1s: must not be negative": {Router: router, Source: discover.Static{}, Every: -time.Second},
	} {
		if _, err := discover.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func Example() {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		panic(err)
	}
	router, err := engines.NewRouter(engines.RouterOptions{Pilot: pilot})
	if err != nil {
		panic(err)
	}
	watcher, err := discover.New(discover.Options{
		Router: router,
		Source: discover.Static{"gpu-0": "http://10.0.0.1:8000", "gpu-1": "http://10.0.0.2:8000"},
		Probe:  func(context.Context, string, string) error { return nil }, // instead of GET /health
	})
	if err != nil {
		panic(err)
	}
	watcher.Look(context.Background()) // once; Run does it at every interval
	for _, r := range router.Replicas() {
		fmt.Println(r.Name, r.Up)
	}
	// Output:
	// gpu-0 true
	// gpu-1 true
}
