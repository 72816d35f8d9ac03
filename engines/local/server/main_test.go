package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/server"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an engine over a tiny model, its server on a real listener, and what it publishes.
type rig struct {
	engine    *local.Engine
	publisher *publish.Publisher // nil: none
	api       *server.Server
	http      *httptest.Server
	stopped   bool
}

type settings struct {
	model  tinymodel.Options
	engine local.Config
	server server.Config
	events *publish.Config
}

// start starts one; change may alter the settings.
func start(t testing.TB, change func(*settings)) *rig {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	set := &settings{
		model:  tinymodel.Options{Seed: 7, Context: 1024},
		engine: local.Config{Model: file, Served: "tiny", Threads: 1}, server: server.Config{Version: "test"},
	}
	if change != nil {
		change(set)
	}
	err := tinymodel.Write(file, set.model)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{}
	if set.events != nil {
		if r.publisher, err = publish.Listen(t.Context(), *set.events); err != nil {
			t.Fatal(err)
		}
		set.server.Events = r.publisher
		set.engine.OnCache = func(events []kvevents.Event) {
			if err := r.publisher.Publish(events); err != nil {
				t.Error(err)
			}
		}
	}
	if r.engine, err = local.Open(set.engine); err != nil {
		t.Fatal(err)
	}
	r.api = server.New(r.engine, set.server)
	r.http = httptest.NewServer(r.api)
	t.Cleanup(func() { r.stop(t) })
	return r
}

// stop ends everything, as a process that ends.
func (r *rig) stop(t testing.TB) {
	t.Helper()
	if r.stopped {
		return
	}
	r.stopped = true
	r.http.CloseClientConnections()
	if err := r.api.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
		t.Error(err)
	}
	r.http.Close()
	if err := r.engine.Close(); err != nil {
		t.Error(err)
	}
	if r.publisher != nil {
		_ = r.publisher.Close()
	}
}

// answered is what a server has answered.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// object reads the body.
func (a answered) object(t testing.TB) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(a.body, &o); err != nil {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	return o
}

// events reads the body as server-sent events.
func (a answered) events(t testing.TB) (chunks []map[string]any) {
	t.Helper()
	list := strings.Split(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n")
	for i, e := range list {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok || (i == len(list)-1) != (data == "[DONE]") {
			t.Fatalf("event %d is %q of\n%s", i, e, a.body)
		}
		if data != "[DONE]" {
			chunks = append(chunks, answered{body: []byte(data)}.object(t))
		}
	}
	return chunks
}

func (r *rig) do(t testing.TB, method, path, body string, header ...string) answered {
	t.Helper()
	status, got, text := testkit.Ask(t, r.http.Client(), testkit.Request(t, method, r.http.URL+path, strings.NewReader(body), header...))
	return answered{status, got, []byte(text)}
}

func (r *rig) post(t testing.TB, path, body string, header ...string) answered {
	t.Helper()
	return r.do(t, http.MethodPost, path, body, header...)
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// at finds a value in decoded JSON by keys and indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(bytes.TrimSpace(b))
}

// tryOpen sends a completion that may be given up, and reads what comes.
func (r *rig) tryOpen(ctx context.Context, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+textPath, strings.NewReader(body))
	if err != nil {
		return
	}
	resp, err := r.http.Client().Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
