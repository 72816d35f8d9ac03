package table

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// database makes a file of SQLite.
func database(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "50% full?.db")
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"CREATE TABLE t (id INTEGER, day DATE, yes BOOLEAN, real REAL, data BLOB, text TEXT)",
		"INSERT INTO t VALUES (9007199254740993, '2026-01-02', 7, 0.1, x'00ff', 'é'), (2, '2026-01-02T00:00:00Z', 0, 1e300, NULL, '')",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestReadSQLite(t *testing.T) {
	path := database(t)
	want := "id|day|yes|real|data|text\nrow 1: 9007199254740993|2026-01-02|7|0.1|AP8=|é\nrow 2: 2|2026-01-02T00:00:00Z|0|1e+300|∅|\n"
	for _, query := range []string{
		"SELECT * FROM t ORDER BY id DESC", "select * from t order by id desc ; -- done;",
		"WITH x AS (SELECT * FROM t) SELECT * FROM x ORDER BY id DESC",
	} {
		table := open(t, path, Options{Query: query})
		for range 2 {
			if got := dump(t, table); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", query, got, want)
			}
		}
	}
}

func TestWriteQueryResult(t *testing.T) {
	in := open(t, database(t), Options{Query: "SELECT text, data FROM t ORDER BY id DESC"})
	for name, want := range map[string]string{
		"o.csv":   "text,data,answer\né,AP8=,\"yes, \"\"so\"\"\"\n,,\n",
		"o.jsonl": `{"text":"é","data":"AP8=","answer":"yes, \"so\""}` + "\n" + `{"text":"","data":null,"answer":null}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := annotate(t, in, path, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestRefusedQueries(t *testing.T) {
	path := database(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(t.TempDir(), "stray.db")
	for _, query := range []string{
		"DELETE FROM t", "DELETE FROM t RETURNING id", "SELECT 1; DELETE FROM t", "SELECT 1 /* ; */; -- \n DELETE FROM t", ";", "-- nothing",
		"WITH x AS (SELECT 1) DELETE FROM t", "PRAGMA query_only=0", "ATTACH '" + stray + "' AS s", "VACUUM INTO '" + stray + "'",
		"SELECT nothing FROM t", "SELECT 1) ; VACUUM INTO '" + stray + "'; SELECT * FROM (SELECT 1", "SELECT ''';' ; DROP TABLE t",
		"SELECT 1 AS a, 2 AS a", "SELECT '", "SELECT 1, /* ",
	} {
		if err := firstError(t, path, Options{Query: query}); err == nil {
			t.Errorf("%s: accepted", query)
		}
	}
	for name, opts := range map[string]Options{"t.db": {}, "t.csv": {Query: "SELECT 1"}, "other.txt": {Query: "SELECT 1"}} {
		err := firstError(t, write(t, name, "x"), opts)
		if !errors.Is(err, ErrQuery) && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Error("the database has changed", err)
	}
	if _, err := os.Stat(stray); err == nil {
		t.Error("a query has made a file")
	}
}

func TestLargeSQLiteCell(t *testing.T) {
	err := firstError(t, database(t), Options{Query: "SELECT 1 AS a, hex(zeroblob(2000000)) AS b"})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `row 1: column "b"`) {
		t.Errorf("got %v", err)
	}
	if err := firstError(t, database(t), Options{Query: "SELECT zeroblob(500000000) AS a"}); !errors.Is(err, ErrQuery) {
		t.Errorf("got %v", err)
	}
}
