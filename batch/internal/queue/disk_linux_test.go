package queue_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// A disk that is full in the middle of a job loses and repeats nothing.
func TestRealDiskFull(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		folder := testkit.SmallDisk(t, 16)
		fullInTheMiddle(t, folder, filepath.Join(folder, "jobs.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		s := startPostgres(t)
		folder := testkit.SmallDisk(t, 16)
		space := filepath.Join(folder, "space")
		if err := os.Mkdir(space, 0o700); err != nil {
			t.Fatal(err)
		}
		if owner, ok := owner(t, s.folder); ok {
			if err := os.Chown(space, owner, -1); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := pgx.Connect(t.Context(), s.dsn())
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), "CREATE TABLESPACE small LOCATION '"+space+"'")
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		dsn, err := url.Parse(storetest.Schema(t, s.dsn()))
		if err != nil {
			t.Fatal(err)
		}
		query := dsn.Query()
		query.Set("default_tablespace", "small")
		dsn.RawQuery = query.Encode()
		fullInTheMiddle(t, folder, dsn.String())
	})
}

func owner(t *testing.T, path string) (id int, ok bool) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// fullInTheMiddle runs a job whose database is on a file system that is full for some time.
func fullInTheMiddle(t *testing.T, folder, dsn string) {
	t.Helper()
	const lanes, all = 3, 4000
	q, e := open(t, dsn), newEngine()
	job := create(t, q, "full", requests(all/25, 25))
	work(t, q, queue.WorkerOptions{Lanes: lanes, Do: e.do})
	eventually(t, "answers", func() bool { return e.count() > all/20 })
	free := testkit.FillDisk(t, folder)
	stuck := stopped(t, e)
	if stuck == all {
		t.Error("all was answered on a full disk")
	}
	free()
	wait(t, q, job)
	complete(t, q, job, all)
	if e.count() != all {
		t.Errorf("%d calls for %d requests", e.count(), all)
	}
	t.Logf("%d of %d calls before the disk was full", stuck, all)
}
