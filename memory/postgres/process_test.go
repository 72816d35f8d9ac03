//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// private starts a server and returns it with its DSN for the user and the password, each of which may be empty.
func private(t *testing.T) (server *storetest.Server, dsn func(user, password string) string) {
	t.Helper()
	storetest.Postgres(t)
	server = storetest.Start(t, "postgres")
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return server, func(user, password string) string {
		return fmt.Sprintf("host=%s port=%s dbname=postgres sslmode=disable user=%s password='%s'", host, port, user, password)
	}
}

// TestPassword: a server that asks for passwords takes the right one, and refuses others and none.
func TestPassword(t *testing.T) {
	server, dsn := private(t)
	admin := connect(t, dsn("ragpilot", ""))
	if _, err := admin.Exec(t.Context(), "CREATE ROLE agent LOGIN PASSWORD 'right'; GRANT CREATE ON DATABASE postgres TO agent"); err != nil {
		t.Fatal(err)
	}
	folder, err := os.ReadFile(filepath.Join(server.Run, "postgres.data"))
	if err != nil {
		t.Fatal(err)
	}
	hba := filepath.Join(strings.TrimSpace(string(folder)), "db", "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("host all agent 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	var loaded bool
	if err := admin.QueryRow(t.Context(), "SELECT pg_reload_conf()").Scan(&loaded); err != nil || !loaded {
		t.Fatal(loaded, err)
	}
	wrong := func() error {
		backend, err := postgres.Open(t.Context(), dsn("agent", "wrong secret"), postgres.Options{})
		if err == nil {
			_ = backend.Close()
		}
		return err
	}
	for err = wrong(); err == nil; err = wrong() { // until the server has read the file
		if t.Context().Err() != nil {
			t.Fatal("the server takes any password")
		}
	}
	if !errors.Is(err, postgres.ErrUnauthorized) || strings.Contains(err.Error(), "secret") {
		t.Errorf("wrong password: %v, want ErrUnauthorized", err)
	}
	if backend, err := postgres.Open(t.Context(), dsn("agent", ""), postgres.Options{}); err == nil {
		t.Error("no password: opened")
		_ = backend.Close()
	}
	filled(t, dsn("agent", "right"), postgres.Options{})
}

// TestServerKilled: the server's process is killed in the midst of a query. The query and what follows fail with an error that
// says so.
func TestServerKilled(t *testing.T) {
	for name, change := range map[string]bool{"search": false, "add": true} {
		t.Run(name, func(t *testing.T) {
			server, dsn := private(t)
			store := filled(t, dsn("ragpilot", ""), postgres.Options{Schema: "killed"})
			admin, release := held(t, dsn("ragpilot", ""), "killed")
			_ = release // the lock ends with the server
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- ask(ctx, store, change) }()
			process := waiting(ctx, t, admin, "killed")
			server.Kill(t) // the one that listens; that of the query lives on until it is killed too
			if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := <-result; !errors.Is(err, postgres.ErrUnavailable) || ctx.Err() != nil {
				t.Errorf("%v (context: %v), want ErrUnavailable", err, ctx.Err())
			}
			for _, change := range []bool{false, true} {
				if err := ask(ctx, store, change); !errors.Is(err, postgres.ErrUnavailable) || ctx.Err() != nil {
					t.Errorf("afterwards: %v (context: %v), want ErrUnavailable", err, ctx.Err())
				}
			}
		})
	}
}

// TestConnectionsAreBounded: a query whose context has ended keeps its connection until the server has heard of it, here a
// process that is stopped. No other connection is made in its place: queries that nobody waits for must not pile up.
func TestConnectionsAreBounded(t *testing.T) {
	_, dsn := private(t)
	store := filled(t, dsn("ragpilot", ""), postgres.Options{Schema: "bounded", Connections: 1})
	admin, release := held(t, dsn("ragpilot", ""), "bounded")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	called, end := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { result <- ask(called, store, false) }()
	process := waiting(ctx, t, admin, "bounded")
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	end()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
	release()
	short, over := context.WithTimeout(ctx, 500*time.Millisecond)
	defer over()
	if err := ask(short, store, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want to wait for the connection until the deadline", err)
	}
	if err := syscall.Kill(process, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := ask(ctx, store, false); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
