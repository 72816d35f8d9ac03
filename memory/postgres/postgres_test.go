package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/memorytest"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// pgx closes a connection in which a query was cut off by a goroutine of its own, which waits for the server for some seconds.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}

// schema returns the name of a schema that only this test uses and that is dropped after it.
func schema(t *testing.T, dsn string) string {
	t.Helper()
	name := "Test \"" + strings.ToLower(rand.Text()) // must be quoted wherever it stands
	t.Cleanup(func() {
		ctx := context.Background() // that of the test has ended
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Error(err)
			return
		}
		_, drop := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
		if err := errors.Join(drop, conn.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return name
}

func TestConformance(t *testing.T) {
	dsn := storetest.Postgres(t)
	memorytest.RunBackend(t, func(t *testing.T) memory.Backend {
		backend, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: schema(t, dsn)})
		if err != nil {
			t.Fatal(err)
		}
		return backend
	})
}

// Two processes with one schema are two backends with one schema; connections that the server has ended are replaced.
func TestShared(t *testing.T) {
	dsn := storetest.Postgres(t)
	name := schema(t, dsn)
	open := func() *memory.Local {
		t.Helper()
		backend, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: name, Connections: 1})
		if err != nil {
			t.Fatal(err)
		}
		store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	a, b := open(), open()
	done := make(chan error, 2)
	for _, store := range []*memory.Local{a, b} {
		go func() {
			var err error
			for range 10 {
				_, err = store.Add(t.Context(), memory.Scope{User: "ana"}, []memory.Message{{Role: memory.User, Content: "the same"}},
					memory.AddOptions{})
				if err != nil {
					break
				}
			}
			done <- err
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	all, err := a.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil || len(all) != 1 {
		t.Errorf("%d memories, %v; want 1", len(all), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, dsn := range map[string]string{
		"no DSN at all": "postgres://%zz", "nobody there": "postgres://user:secret@127.0.0.1:1/db?connect_timeout=1",
	} {
		backend, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		if err == nil {
			_ = backend.Close()
			t.Fatalf("%s: opened", name)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in %q", name, err)
		}
	}
	backend, err := postgres.Open(t.Context(), "", postgres.Options{Connections: -1})
	if err == nil {
		_ = backend.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "Options.Connections = -1") {
		t.Errorf("%v, want the field and its value", err)
	}
}
