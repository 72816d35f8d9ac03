package queue_test

import (
	"bytes"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// River's UI and metrics see plain River jobs: a queue for each batch job, and what is in a subtree.
func TestRiverJobs(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		q, e := open(t, dsn), newEngine()
		job := create(t, q, "reviews", requests(2, 3))
		look := func() []string {
			rows, err := queue.QueryText(t.Context(), q, `SELECT queue || ' ' || kind || ' ' || state || ' ' || max_attempts || ' ' ||
				(args ->> 'job') || '/' || (args ->> 'subtree') || ' ' || (metadata ->> 'batch_job') || ' ' || (metadata ->> 'subtree') || ' ' ||
				(metadata ->> 'requests') || ' ' || (metadata ->> 'rows') FROM river_job ORDER BY id`)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		want := []string{"batch-1 batch_subtree available 5 1/0 reviews 0 3 3", "batch-1 batch_subtree available 5 1/1 reviews 1 3 3"}
		if got := look(); !reflect.DeepEqual(got, want) {
			t.Errorf("River's jobs are %q, want %q", got, want)
		}
		stop := work(t, q, queue.WorkerOptions{Do: e.do})
		wait(t, q, job)
		stop()
		for i := range want {
			want[i] = strings.Replace(want[i], "available", "completed", 1)
		}
		if got := look(); !reflect.DeepEqual(got, want) {
			t.Errorf("River's jobs at the end are %q, want %q", got, want)
		}
		if names, err := queue.QueryText(t.Context(), q, "SELECT name FROM river_queue WHERE name = 'batch-1'"); err != nil || len(names) != 1 {
			t.Errorf("River's queues: %q, %v", names, err)
		}
	})
}

// A file of another application is refused and stays as it is.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE customers (id INTEGER)")
	if closed := db.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.Open(t.Context(), path, queue.Options{})
	if err == nil {
		_ = q.Close()
	}
	if err == nil || !strings.Contains(err.Error(), `"customers"`) || !strings.Contains(err.Error(), "shop.db") {
		t.Errorf("a file of another application: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed, %v", err)
	}
	text := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(text, []byte(strings.Repeat("id,review\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	if q, err := queue.Open(t.Context(), text, queue.Options{}); err == nil {
		_ = q.Close()
		t.Error("a CSV file is opened as a database")
	}
	if after, err := os.ReadFile(text); err != nil || string(after) != strings.Repeat("id,review\n", 200) {
		t.Errorf("the CSV file has changed, %v", err)
	}
}

// Another application's River tables do no harm in a schema of their own, and are refused in ours.
func TestForeignRiver(t *testing.T) {
	base := storetest.Postgres(t)
	dsn := storetest.Schema(t, base)
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := at.Query().Get("search_path")
	conn, err := pgx.Connect(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+schema+"; CREATE TABLE "+schema+".river_job (id BIGINT)"); err != nil {
		t.Fatal(err)
	}
	q, err := queue.Open(t.Context(), dsn, queue.Options{})
	if err == nil {
		_ = q.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "river_job") || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("River's tables of another application: %v", err)
	}
	own := open(t, storetest.Schema(t, base)) // another schema of the same database
	e := newEngine()
	job := create(t, own, "own", requests(2, 5))
	work(t, own, queue.WorkerOptions{Do: e.do})
	wait(t, own, job)
}
