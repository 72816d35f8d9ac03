package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var schemas atomic.Int64

// PostgresSchema returns a DSN like that of [Postgres] with a schema of its own, which is dropped when the test ends.
func PostgresSchema(t testing.TB) string {
	t.Helper()
	return Schema(t, Postgres(t))
}

// Schema is PostgresSchema for the server of another DSN.
func Schema(t testing.TB, dsn string) string {
	t.Helper()
	schema := fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	return u.String()
}
