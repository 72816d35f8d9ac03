package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/postgres"
)

// within a minute nothing here has to wait; what takes longer hangs.
const patience = time.Minute

var ana = memory.Scope{User: "ana"}

// filled opens a store with one memory in it.
func filled(t *testing.T, dsn string, opts postgres.Options) *memory.Local {
	t.Helper()
	backend, err := postgres.Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	store := testkit.Opened[*memory.Local](t)(memory.New(backend, memory.Config{Embedder: memory.Lexical}))
	if err := ask(t.Context(), store, true); err != nil {
		t.Fatal(err)
	}
	return store
}

// ask searches, or adds a memory.
func ask(ctx context.Context, store *memory.Local, change bool) error {
	if change {
		_, err := store.Add(ctx, ana, []memory.Message{{Role: memory.User, Content: fmt.Sprint("apple ", time.Now().UnixNano())}},
			memory.AddOptions{})
		return err
	}
	_, err := store.Search(ctx, ana, "apple", 1, memory.SearchOptions{})
	return err
}

// held locks the tables of a schema in a connection of its own: the real server is slow for all others until release.
func held(t *testing.T, dsn, schema string) (admin *pgx.Conn, release func()) {
	t.Helper()
	admin = connect(t, dsn)
	tx, err := connect(t, dsn).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := pgx.Identifier{schema, "memories"}.Sanitize()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	return admin, sync.OnceFunc(func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// waiting returns the process of the server that waits for a lock on the schema's table, once there is one.
func waiting(ctx context.Context, t *testing.T, admin *pgx.Conn, schema string) (pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		err := admin.QueryRow(ctx, `SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE NOT l.granted AND n.nspname = $1 LIMIT 1`, schema).Scan(&pid)
		switch {
		case err == nil:
			return pid
		case !errors.Is(err, pgx.ErrNoRows):
			t.Fatal(err)
		}
	}
}

// whileHeld calls f for a search and for an addition while another program holds the tables; wait returns the process of the server
// that waits for them. Afterwards both work.
func whileHeld(t *testing.T, connections int,
	f func(ctx context.Context, t *testing.T, call func(context.Context) error, admin *pgx.Conn, wait func() (pid int)),
) {
	dsn := storetest.Postgres(t)
	for name, change := range map[string]bool{"search": false, "add": true} {
		t.Run(name, func(t *testing.T) {
			schema := schema(t, dsn)
			store := filled(t, dsn, postgres.Options{Schema: schema, Connections: connections})
			admin, release := held(t, dsn, schema)
			defer release()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			call := func(ctx context.Context) error { return ask(ctx, store, change) }
			f(ctx, t, call, admin, func() int { return waiting(ctx, t, admin, schema) })
			release()
			if err := call(ctx); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestSlow: the server answers nothing for as long as another program holds the tables. A call ends with its context; when
// the tables are free, all goes on.
func TestSlow(t *testing.T) {
	whileHeld(t, 2, func(ctx context.Context, t *testing.T, call func(context.Context) error, _ *pgx.Conn, wait func() int) {
		for range 5 { // more than there are connections
			called, end := context.WithCancel(ctx)
			result := make(chan error, 1)
			go func() { result <- call(called) }()
			wait()
			end()
			if err := <-result; !errors.Is(err, context.Canceled) || errors.Is(err, postgres.ErrUnavailable) || ctx.Err() != nil {
				t.Errorf("%v, want Canceled alone", err)
			}
		}
		late, over := context.WithTimeout(ctx, 100*time.Millisecond)
		defer over()
		if err := call(late); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%v, want DeadlineExceeded", err)
		}
	})
}

// TestTerminated: the server ends the connection of a query that is under way. That is an error that says so; the next call
// has a new connection.
func TestTerminated(t *testing.T) {
	whileHeld(t, 0, func(ctx context.Context, t *testing.T, call func(context.Context) error, admin *pgx.Conn, wait func() int) {
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		if _, err := admin.Exec(ctx, "SELECT pg_terminate_backend($1)", wait()); err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, postgres.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
	})
}

// TestUnknownOutcome: the server ends the connection at the commit. Whether it was made cannot be known.
func TestUnknownOutcome(t *testing.T) {
	dsn := storetest.Postgres(t)
	schema := schema(t, dsn)
	filled(t, dsn, postgres.Options{Schema: schema})
	backend, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backend.Close() }()
	// A constraint that is checked at the commit, and waits there for a lock that another connection has.
	admin := connect(t, dsn)
	name := pgx.Identifier{schema}.Sanitize()
	for _, statement := range []string{
		`CREATE TABLE ` + name + `.gate (one INT)`,
		`CREATE FUNCTION ` + name + `.wait() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM 1 FROM ` + name + `.gate; RETURN NULL; END$$`,
		`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON ` + name + `.messages DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ` +
			name + `.wait()`,
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := connect(t, dsn).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+name+".gate IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	add := func(ctx context.Context) error {
		return backend.Change(ctx, func(tx memory.Tx) error {
			return tx.AppendMessages(ctx, memory.Log{Scope: ana, Kind: "k"}, []memory.Message{{Role: memory.User, Content: "hello"}}, 0)
		})
	}
	result := make(chan error, 1)
	go func() { result <- add(ctx) }()
	if _, err := admin.Exec(ctx, "SELECT pg_terminate_backend($1)", waiting(ctx, t, admin, schema)); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, postgres.ErrUnknownOutcome) || !errors.Is(err, postgres.ErrUnavailable) {
		t.Errorf("terminated: %v, want ErrUnknownOutcome", err)
	}
	called, end := context.WithCancel(ctx)
	go func() { result <- add(called) }()
	waiting(ctx, t, admin, schema)
	end()
	if err := <-result; !errors.Is(err, postgres.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v, want ErrUnknownOutcome", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := add(ctx); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestRefused: what the server says of users and databases that it does not know, and of tables that are gone.
func TestRefused(t *testing.T) {
	dsn := storetest.Postgres(t)
	for name, c := range map[string]struct {
		change func(*pgx.ConnConfig)
		want   error
	}{
		"no such user":     {func(c *pgx.ConnConfig) { c.User = "nobody-of-ragpilot" }, postgres.ErrUnauthorized},
		"no such database": {func(c *pgx.ConnConfig) { c.Database = "nothing-of-ragpilot" }, postgres.ErrMissing},
		"nobody there":     {func(c *pgx.ConnConfig) { c.Port = 1 }, postgres.ErrUnavailable},
	} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		c.change(config)
		other := fmt.Sprintf("host=%s port=%d user=%s dbname=%s password=secret sslmode=disable", config.Host, config.Port, config.User,
			config.Database)
		backend, err := postgres.Open(t.Context(), other, postgres.Options{})
		if err == nil {
			_ = backend.Close()
		}
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	schema := schema(t, dsn)
	store := filled(t, dsn, postgres.Options{Schema: schema})
	if _, err := connect(t, dsn).Exec(t.Context(), "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		t.Fatal(err)
	}
	for _, change := range []bool{false, true} {
		if err := ask(t.Context(), store, change); !errors.Is(err, postgres.ErrMissing) {
			t.Errorf("tables are gone (change: %v): %v, want ErrMissing", change, err)
		}
	}
}

// TestClosed: a backend that is closed says so.
func TestClosed(t *testing.T) {
	dsn := storetest.Postgres(t)
	store := filled(t, dsn, postgres.Options{Schema: schema(t, dsn)})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []bool{false, true} {
		if err := ask(t.Context(), store, change); !errors.Is(err, postgres.ErrClosed) {
			t.Errorf("change %v: %v, want ErrClosed", change, err)
		}
	}
}
