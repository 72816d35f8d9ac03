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
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// smallDisk mounts a file system of 16 MiB and returns its folder.
func smallDisk(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "ragpilot-disk") // the server of PostgreSQL may not enter the folders of tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=16m,mode=0777"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	return folder
}

// fill leaves no space in a file system. free makes room again.
func fill(t *testing.T, folder string) (free func()) {
	t.Helper()
	path := filepath.Join(folder, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if closed := file.Close(); !errors.Is(err, syscall.ENOSPC) || closed != nil {
		t.Fatal(err, closed)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// A disk that is full in the middle of a job loses and repeats nothing.
func TestRealDiskFull(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		folder := smallDisk(t)
		fullInTheMiddle(t, folder, filepath.Join(folder, "jobs.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		s := startPostgres(t)
		folder := smallDisk(t)
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
	free := fill(t, folder)
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
