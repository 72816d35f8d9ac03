package memoryapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/openai"
	"github.com/ragpilot/ragpilot/internal/sidecar/memoryapi"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// failingBackend is a fake backend whose reads and changes fail with one error.
type failingBackend struct {
	memory.Backend
	err error
}

func (b failingBackend) Get(context.Context, []string) ([]memory.Memory, error) { return nil, b.err }

func (b failingBackend) Change(context.Context, func(memory.Tx) error) error { return b.err }

func (b failingBackend) Follow(context.Context, memory.Scope, int64, memory.Changes) (memory.State, error) {
	return memory.State{}, b.err
}

func (b failingBackend) Scan(context.Context, memory.Scope, memory.Part, func(*memory.Record) bool) error {
	return b.err
}

// The status says whether to try again later, and the answer shows nothing of what is inside.
func TestFailures(t *testing.T) {
	secret := errors.New("host db.secret:5432")
	for name, c := range map[string]struct {
		err    error
		status int
		retry  string
		detail string
	}{
		"unavailable":            {memory.ErrUnavailable, 503, "1", "The memory store is not available"},
		"PostgreSQL unavailable": {postgres.ErrUnavailable, 503, "1", "The memory store is not available"},
		"unavailable after a wait": {
			fmt.Errorf("%w: %w", memory.ErrUnavailable, context.DeadlineExceeded), 503, "1",
			"The memory store is not available",
		},
		"slow":                    {context.DeadlineExceeded, 504, "", "The memory store took too long"},
		"unauthorized":            {memory.ErrUnauthorized, 500, "", "The memory store failed"},
		"PostgreSQL unauthorized": {postgres.ErrUnauthorized, 500, "", "The memory store failed"},
		"no table":                {postgres.ErrMissing, 500, "", "The memory store failed"},
		"closed":                  {memory.ErrClosed, 500, "", "The memory store failed"},
		"unknown outcome": {
			fmt.Errorf("%w: %w", postgres.ErrUnknownOutcome, postgres.ErrUnavailable), 500, "",
			"The memory store failed; whether the change was stored is not known",
		},
		"not erased": {
			fmt.Errorf("%w: %w", memory.ErrNotErased, memory.ErrUnavailable), 500, "",
			"The change is stored, but what it removed is not deleted from the memory store's server yet",
		},
		"full": {
			memory.ErrFull, 507, "",
			"The disk of the memory store is full: this was not stored; what is kept can still be read",
		},
		"not erased, full": {
			fmt.Errorf("%w: %w", memory.ErrNotErased, memory.ErrFull), 500, "",
			"The change is stored, but what it removed is not deleted from the memory store's server yet",
		},
		"of another embedder": {
			memory.ErrEmbedder, 500, "",
			"Another embedder than this server's has made the vectors of these memories: its operator makes them anew with ragpilot memory reembed",
		},
		"another":  {errors.ErrUnsupported, 500, "", "The memory store failed"},
		"no model": {embed.ErrNotReady, 503, "1", "The sentence model of the memories is not ready: ask again"},
	} {
		failed := fmt.Errorf("%w: %w", c.err, secret)
		store, err := memory.New(failingBackend{memory.NewInMemory(), failed}, memory.Config{Embedder: memory.Lexical})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		mux := http.NewServeMux()
		memoryapi.New(memoryapi.Options{
			Store: func(_ context.Context, tenant string) (memory.Store, func(), error) {
				if tenant == "unopened" {
					return nil, nil, failed
				}
				return store, func() {}, nil
			},
			Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
			Log:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}).SelfHosted(mux, "/mem0")
		for _, request := range []string{
			"GET /mem0/memories/id-a", "GET /mem0/memories?user_id=ana", "DELETE /mem0/memories/id-a",
			`POST /mem0/search {"query":"bees","user_id":"ana"}`, `POST /mem0/memories {"messages":"Ana keeps bees.","user_id":"ana"}`,
			"GET /mem0/memories/id-a unopened",
		} {
			logged := errors.Is(c.err, embed.ErrNotReady) || log.Len() > 0 && errors.Is(c.err, memory.ErrEmbedder) // by others, or before
			log.Reset()
			method, rest, _ := strings.Cut(request, " ")
			path, body, _ := strings.Cut(rest, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			if body == "unopened" {
				r = httptest.NewRequestWithContext(t.Context(), method, path, nil)
				r.Header.Set("Tenant", body)
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			want := fmt.Sprintf("{\"detail\":%q}\n", c.detail)
			if w.Code != c.status || w.Body.String() != want || w.Header().Get("Retry-After") != c.retry {
				t.Errorf("%s: %s: %d %s, Retry-After %q; want %d %s", name, request, w.Code, w.Body, w.Header().Get("Retry-After"), c.status, want)
			}
			if level := "level=ERROR"; !strings.Contains(log.String(), "db.secret") || strings.Contains(log.String(), level) == logged {
				t.Errorf("%s: %s: the log has %q", name, request, log.String())
			}
		}
	}
}

// An embedder's server that fails is 502 and one that is not there 503, with the cause, and without the key that its answer repeats.
func TestEmbedderFails(t *testing.T) {
	const key = "sk-secret-key"
	var status int
	var answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	gone := "http://" + testkit.FreeAddress(t)
	for _, c := range []struct {
		name, url, answer string
		status, want      int
		retry, detail     string
	}{
		{"broken", server.URL, `{"error":{"message":"worker died, key ` + key + `"}}`, 500, 502, "", "server is unavailable: status 500"},
		{"key refused", server.URL, `{"error":{"message":"wrong key ` + key + `"}}`, 401, 502, "", "server refused the credentials: status 401"},
		{"no model", server.URL, `{"error":{"code":"model_not_found"}}`, 404, 502, "", "server has no such model: status 404"},
		{"no vectors", server.URL, `{"data":[]}`, 200, 502, "", "it gave no usable vectors"},
		{"no JSON", server.URL, "hello", 200, 502, "", "answer of the server makes no sense"},
		{"gone", gone, "", 0, 503, "1", "server is unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer = c.status, c.answer
			embedder, err := openai.New(openai.Options{URL: c.url, Model: "m", Key: key, Attempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			store, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: embedder})
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			memoryapi.New(memoryapi.Options{
				Store: func(context.Context, string) (memory.Store, func(), error) { return store, func() {}, nil },
				Log:   slog.New(slog.DiscardHandler),
			}).SelfHosted(mux, "/mem0")
			want := fmt.Sprintf("{\"detail\":%q}\n", "The embedder of the memories failed: "+c.detail)
			for path, body := range map[string]string{
				"/mem0/search": `{"query":"bees","user_id":"ana"}`, "/mem0/memories": `{"messages":"Ana keeps bees.","user_id":"ana"}`,
			} {
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
				if w.Code != c.want || w.Body.String() != want || w.Header().Get("Retry-After") != c.retry {
					t.Errorf("%s: %d %s, Retry-After %q; want %d %s", path, w.Code, w.Body, w.Header().Get("Retry-After"), c.want, want)
				}
			}
			if kept, err := store.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{}); err != nil || len(kept) != 0 {
				t.Errorf("%d memories are stored, %v", len(kept), err)
			}
		})
	}
}
