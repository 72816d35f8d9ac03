package mem0api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/mem0api"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
	"github.com/ragpilot/ragpilot/memory/postgres"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// failingBackend is a fake backend whose reads and changes fail with one error.
type failingBackend struct {
	*inmem.Backend
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

// Clients can tell what may be better later from what will not, and see nothing of what is inside.
func TestFailures(t *testing.T) {
	secret := errors.New("host db.secret:5432")
	for name, c := range map[string]struct {
		err    error
		status int
		retry  string
		detail string
	}{
		"unavailable":              {memory.ErrUnavailable, 503, "1", "The memory store is not available"},
		"PostgreSQL unavailable":   {postgres.ErrUnavailable, 503, "1", "The memory store is not available"},
		"Qdrant unavailable":       {qdrant.ErrUnavailable, 503, "1", "The memory store is not available"},
		"unavailable after a wait": {fmt.Errorf("%w: %w", memory.ErrUnavailable, context.DeadlineExceeded), 503, "1", "The memory store is not available"},
		"slow":                     {context.DeadlineExceeded, 504, "", "The memory store took too long"},
		"unauthorized":             {memory.ErrUnauthorized, 500, "", "The memory store failed"},
		"PostgreSQL unauthorized":  {postgres.ErrUnauthorized, 500, "", "The memory store failed"},
		"no table":                 {postgres.ErrMissing, 500, "", "The memory store failed"},
		"closed":                   {memory.ErrClosed, 500, "", "The memory store failed"},
		"unknown outcome":          {fmt.Errorf("%w: %w", postgres.ErrUnknownOutcome, postgres.ErrUnavailable), 500, "", "The memory store failed; whether the change was stored is not known"},
		"not erased":               {fmt.Errorf("%w: %w", qdrant.ErrNotErased, qdrant.ErrUnavailable), 500, "", "The change is stored, but what it removed is not deleted from the memory store's server yet"},
		"full":                     {memory.ErrFull, 507, "", "The disk of the memory store is full: this was not stored; what is kept can still be read"},
		"not erased, full":         {fmt.Errorf("%w: %w", memory.ErrNotErased, memory.ErrFull), 500, "", "The change is stored, but what it removed is not deleted from the memory store's server yet"},
		"of another embedder": {
			memory.ErrEmbedder, 500, "",
			"Another embedder than this server's has made the vectors of these memories: its operator makes them anew with ragpilot memory reembed",
		},
		"another":  {errors.ErrUnsupported, 500, "", "The memory store failed"},
		"no model": {embed.ErrNotReady, 503, "1", "The sentence model of the memories is not ready: ask again"},
	} {
		failed := fmt.Errorf("%w: %w", c.err, secret)
		store, err := memory.New(failingBackend{inmem.New(), failed}, memory.Config{Embedder: memory.Lexical})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		mux := http.NewServeMux()
		mem0api.New(mem0api.Options{
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
