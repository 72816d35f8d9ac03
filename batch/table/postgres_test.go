package table

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

func TestReadPostgres(t *testing.T) {
	dsn := storetest.Postgres(t)
	query := `SELECT 9007199254740993::int8 AS id, 12345678901234567890.10::numeric AS amount, 0.1::float8 AS f, true AS yes,
		NULL::text AS none, '' AS empty, '2026-01-02 03:04:05.6+02'::timestamptz AS t, '\x00ff'::bytea AS b, '{"a": 1}'::jsonb AS j, E'é\r\n' AS s`
	want := "id|amount|f|yes|none|empty|t|b|j|s\n" +
		"row 1: 9007199254740993|12345678901234567890.10|0.1|true|∅||2026-01-02 01:04:05.6+00|AP8=|{\"a\": 1}|é\r\n\n"
	table := open(t, dsn, Options{Query: query, Format: Postgres})
	for range 2 {
		if got := dump(t, table); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestPostgresSnapshot(t *testing.T) {
	table := open(t, storetest.Postgres(t), Options{Format: Postgres, Query: "SELECT random() AS r FROM generate_series(1, 1000)"})
	first, err := table.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := table.Check(t.Context()); err != nil || second != first || second.Rows != 1000 {
		t.Errorf("got %+v, %v, want %+v", second, err, first)
	}
}

func TestPostgresOnlyReads(t *testing.T) {
	dsn := storetest.Postgres(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	exec := func(statement string) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("DROP TABLE IF EXISTS ragpilot_table_test")
	exec("CREATE TABLE ragpilot_table_test AS SELECT 1 AS a")
	defer exec("DROP TABLE ragpilot_table_test")
	for _, query := range []string{
		"DELETE FROM ragpilot_table_test", "DELETE FROM ragpilot_table_test RETURNING a", "SELECT 1; DELETE FROM ragpilot_table_test",
		"WITH x AS (DELETE FROM ragpilot_table_test RETURNING a) SELECT * FROM x", "EXPLAIN ANALYZE DELETE FROM ragpilot_table_test",
		"SET TRANSACTION READ WRITE", "COMMIT", "", "SELECT nothing", "COPY ragpilot_table_test TO STDOUT",
	} {
		if err := firstError(t, dsn, Options{Format: Postgres, Query: query}); !errors.Is(err, ErrQuery) {
			t.Errorf("%s: %v", query, err)
		}
	}
	n := 0
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM ragpilot_table_test").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows are left, %v", n, err)
	}
	if err := firstError(t, dsn, Options{Format: Postgres, Query: "SELECT repeat('x', 100000000) AS a"}); err == nil {
		t.Error("a cell of 100 MB is read")
	}
}

func TestPasswordStaysSecret(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:s3cret@127.0.0.1:1/d", "postgres://u:s3cret@127.0.0.1:x/d", "postgres://u:s3%zzcret@h/d", "postgres://u:s3cret/x@h",
		"host=127.0.0.1 port=1 password=s3cret", "host=127.0.0.1 port=x password='s3cret", "password=s3cret nonsense",
	} {
		err := firstError(t, dsn, Options{Format: Postgres, Query: "SELECT 1"})
		if err == nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("got %v", err)
		}
	}
	if err := firstError(t, "postgres://u:s3cret@h/d", Options{}); !errors.Is(err, ErrQuery) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
	if err := firstError(t, "postgres://u:s3cret@h/d", Options{Format: CSV}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
