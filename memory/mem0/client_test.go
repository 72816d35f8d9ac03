package mem0_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/sidecar/memoryapi"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/mem0"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer serves the routes of Mem0 over a store of ours.
func newServer(t testing.TB) (address string, store memory.Store) {
	t.Helper()
	local, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	api := memoryapi.New(memoryapi.Options{Store: func(context.Context, string) (memory.Store, func(), error) {
		return local, func() {},
			nil
	}})
	mux := http.NewServeMux()
	api.Hosted(mux, "/mem0")
	api.SelfHosted(mux, "/mem0")
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.Close(); _ = local.Close() })
	return server.URL + "/mem0", local
}

func newClient(t testing.TB, address string, o mem0.Options) *mem0.Client {
	t.Helper()
	c, err := mem0.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var dialects = []mem0.Dialect{mem0.SelfHosted, mem0.Hosted, mem0.HostedV2}

func said(texts ...string) (out []memory.Message) {
	for _, text := range texts {
		out = append(out, memory.Message{Role: memory.User, Content: text})
	}
	return out
}

func texts(memories []memory.Memory) (out []string) {
	for i := range memories {
		out = append(out, memories[i].Text)
	}
	return out
}

// Every dialect does what a local store does.
func TestLifeOfAMemory(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			address, local := newServer(t)
			c, ctx := newClient(t, address, mem0.Options{Dialect: d}), t.Context()
			ana, ben := memory.Scope{User: "ana", Run: "1"}, memory.Scope{User: "ben"}
			until := time.Date(2999, 1, 2, 0, 0, 0, 0, time.UTC)
			changes, err := c.Add(ctx, ana, said("Ana keeps bees.", "Ana lives in Porto."), memory.AddOptions{
				Extractor: memory.Everything{}, Metadata: map[string]any{"topic": "life"}, ExpiresAt: until,
			})
			if err != nil || len(changes) != 2 || changes[0].Event != memory.Added || changes[0].Text != "Ana keeps bees." {
				t.Fatalf("%+v, %v", changes, err)
			}
			if again, err := c.Add(ctx, ana, said("Ana keeps bees."), memory.AddOptions{}); err != nil || len(again) > 0 {
				t.Errorf("a repeat: %+v, %v", again, err)
			}
			if _, err := c.Add(ctx, ben, said("Ben keeps a parrot."), memory.AddOptions{}); err != nil {
				t.Fatal(err)
			}

			hits, err := c.Search(ctx, memory.Scope{User: "ana"}, "who keeps bees?", 1, memory.SearchOptions{Filter: memory.Eq("topic", "life")})
			if err != nil || len(hits) != 1 || hits[0].Score <= 0 {
				t.Fatalf("%+v, %v", hits, err)
			}
			want, err := local.Get(ctx, changes[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := hits[0].Memory; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("found\n%+v, the store has\n%+v", got, want)
			}
			if none, err := c.Search(ctx, memory.Scope{User: "ana"}, "bees", 5,
				memory.SearchOptions{Filter: memory.Eq("topic", "work")}); err != nil || len(none) > 0 {
				t.Errorf("filtered: %+v, %v", none, err)
			}
			all, err := c.GetAll(ctx, memory.Scope{User: "ana"}, memory.ListOptions{})
			if err != nil || !slices.Equal(texts(all), []string{"Ana keeps bees.", "Ana lives in Porto."}) {
				t.Errorf("%+v, %v", all, err)
			}

			changed, err := c.Update(ctx, want.ID, memory.Update{Text: new("Ana sold her bees."), ExpiresAt: new(time.Time{})})
			if err != nil || changed.Text != "Ana sold her bees." || changed.ID != want.ID || !changed.ExpiresAt.IsZero() ||
				changed.Metadata["topic"] != "life" {
				t.Errorf("%+v, %v", changed, err)
			}
			if _, err := c.Update(ctx, want.ID, memory.Update{Text: new("Ana lives in Porto.")}); !errors.Is(err, memory.ErrExists) {
				t.Errorf("a text that is there: %v", err)
			}
			rows, err := c.History(ctx, want.ID)
			if err != nil || len(rows) != 2 || rows[1].Event != memory.Updated || rows[1].Old != "Ana keeps bees." ||
				rows[1].New != "Ana sold her bees." || rows[1].At.IsZero() {
				t.Errorf("%+v, %v", rows, err)
			}

			if err := c.Delete(ctx, want.ID, memory.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(ctx, want.ID); !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("deleted: %v", err)
			}
			if n, err := c.DeleteAll(ctx, memory.Scope{User: "ana"}, memory.DeleteOptions{}); n != 1 || err != nil {
				t.Errorf("%d deleted, %v", n, err)
			}
			if left, err := c.GetAll(ctx, ben, memory.ListOptions{}); err != nil || len(left) != 1 {
				t.Errorf("of others: %+v, %v", left, err)
			}
		})
	}
}

// Listings of more than a page are whole, in the store's order.
func TestPages(t *testing.T) {
	for _, d := range dialects {
		address, local := newServer(t)
		scope := memory.Scope{User: "ana"}
		var want []string
		for i := range 250 {
			want = append(want, fmt.Sprint("Fact number ", i))
		}
		if _, err := local.Add(t.Context(), scope, said(want...), memory.AddOptions{}); err != nil {
			t.Fatal(err)
		}
		all, err := newClient(t, address, mem0.Options{Dialect: d}).GetAll(t.Context(), scope, memory.ListOptions{})
		got := texts(all)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d memories, %v", d, len(all), err)
		}
	}
}

func TestRefusals(t *testing.T) {
	address, _ := newServer(t)
	c, ctx := newClient(t, address, mem0.Options{Dialect: mem0.Hosted}), t.Context()
	scope := memory.Scope{User: "ana"}
	for name, f := range map[string]func() (error, error){
		"no scope": func() (error, error) {
			_, err := c.Add(ctx, memory.Scope{}, said("x"), memory.AddOptions{})
			return err, memory.ErrNoScope
		},
		"no messages": func() (error, error) {
			_, err := c.Add(ctx, scope, nil, memory.AddOptions{})
			return err, memory.ErrInvalid
		},
		"its extractor": func() (error, error) {
			_, err := c.Add(ctx, scope, said("x"), memory.AddOptions{Extractor: memory.AddOnly(nil)})
			return err, mem0.ErrUnsupported
		},
		"bad filter": func() (error, error) {
			_, err := c.Search(ctx, scope, "x", 1, memory.SearchOptions{Filter: memory.Where("a", "near", 1)})
			return err, memory.ErrInvalid
		},
		"many": func() (error, error) {
			_, err := c.Search(ctx, scope, "x", 5000, memory.SearchOptions{})
			return err, memory.ErrInvalid
		},
		"unknown":      func() (error, error) { _, err := c.Get(ctx, "no/such id"); return err, memory.ErrNotFound },
		"empty ID":     func() (error, error) { _, err := c.Get(ctx, ""); return err, memory.ErrNotFound },
		"empty update": func() (error, error) { _, err := c.Update(ctx, "x", memory.Update{}); return err, memory.ErrNotFound },
		"all of nobody": func() (error, error) {
			_, err := c.DeleteAll(ctx, memory.Scope{}, memory.DeleteOptions{})
			return err, memory.ErrNoScope
		},
		"history kept": func() (error, error) {
			return c.Delete(ctx, "x", memory.DeleteOptions{KeepHistory: true}), mem0.ErrUnsupported
		},
		"reset": func() (error, error) { return c.Reset(ctx), mem0.ErrUnsupported },
	} {
		if got, want := f(); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, base := range []string{"", "host:80", "ftp://host", "http://", "http://host?x=1"} {
		if _, err := mem0.New(base, mem0.Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", base)) {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := mem0.New(address, mem0.Options{Dialect: 9}); err == nil {
		t.Error("dialect 9 is one")
	}
}

func TestReset(t *testing.T) {
	address, local := newServer(t)
	if _, err := local.Add(t.Context(), memory.Scope{User: "ana"}, said("x"), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, address, mem0.Options{}).Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := local.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{}); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Servers that misbehave, fakes all, cause typed errors, and none holds a call beyond its deadline.
func TestFaultyServers(t *testing.T) {
	release := make(chan struct{})
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  error
	}{
		"wrong key": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Token right" {
				http.Error(w, `{"detail":"Invalid token"}`, http.StatusUnauthorized)
			}
		}, mem0.ErrAuth},
		"down":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, mem0.ErrUnavailable},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, mem0.ErrUnavailable},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				fmt.Fprint(w, strings.Repeat(" ", 1000))
			}
		}, memory.ErrInvalid},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"results":[`)
		}, mem0.ErrUnavailable},
		"hangs": {func(http.ResponseWriter, *http.Request) { <-release }, context.DeadlineExceeded},
	} {
		server := httptest.NewServer(c.serve)
		client := newClient(t, server.URL, mem0.Options{Dialect: mem0.Hosted, Key: "wrong", MaxBody: 10_000})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if name != "hangs" {
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		}
		if _, err := client.Search(ctx, memory.Scope{User: "ana"}, "x", 1, memory.SearchOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		cancel()
		_ = client.Close()
		if name == "hangs" {
			close(release)
		}
		server.Close()
	}
}

// Answers as the real servers write them: times without a zone, bare lists, null.
func TestShapesOfServers(t *testing.T) {
	body := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer server.Close()
	c := newClient(t, server.URL, mem0.Options{})
	one := `{"id":"7","memory":"x","hash":"h","metadata":null,"user_id":"ana","score":0.5,"created_at":"2026-01-02T03:04:05.123456",` +
		`"updated_at":null,"categories":["a"]}`
	for _, body = range []string{`{"results":[` + one + `],"relations":[]}`, `[` + one + `]`} {
		hits, err := c.Search(t.Context(), memory.Scope{User: "ana"}, "x", 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Memory.CreatedAt != time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC) ||
			!hits[0].Memory.UpdatedAt.IsZero() || hits[0].Score != 0.5 {
			t.Errorf("%s: %+v, %v", body, hits, err)
		}
	}
	body = "null"
	if m, err := c.Get(t.Context(), "7"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("null: %+v, %v", m, err)
	}
	body = "[]"
	if rows, err := c.History(t.Context(), "7"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("no rows: %+v, %v", rows, err)
	}
}
