package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ragpilot/ragpilot/internal/base/durable"
)

const (
	// fileName is the database's, beside which SQLite keeps a log and an index of it. asideSuffix is added to one that is not used any more.
	fileName, asideSuffix = "state.db", ".aside"
	// version is that of the records' meaning, the database's user_version.
	version = 2
)

// notes is a list of records in an SQLite file, the oldest first. A record that was appended survives the process; a machine that loses
// power may lose the latest. Safe for concurrent use.
type notes struct {
	db         *sql.DB // one connection: changes one after the other
	insert     *sql.Stmt
	unlock     func() error
	maxRecords int64
	maxBytes   int64

	mu             sync.Mutex
	records, bytes int64 // guarded by mu
}

// openNotes opens the file in a folder, which is made if it is missing. A file that SQLite cannot read, or whose records mean something
// else, is set aside: the list begins empty, and the reason is returned. Another process that has the folder open is an error.
func openNotes(dir string, maxRecords, maxBytes int64) (n *notes, aside, err error) {
	if err := durable.MakeDir(dir); err != nil {
		return nil, nil, err
	}
	unlock, err := durable.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	n = &notes{unlock: unlock, maxRecords: maxRecords, maxBytes: maxBytes}
	path := filepath.Join(dir, fileName)
	if err = n.open(path); unreadable(err) {
		aside = err
		if err = setAside(path); err == nil {
			err = n.open(path)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return n, aside, nil
}

var (
	errDamaged = errors.New("the file is damaged")
	errVersion = errors.New("the file is of another release")
)

// unreadable reports whether the file's content is the reason for an error.
func unreadable(err error) bool {
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		code := failed.Code() & 0xff // without its extension
		return code == lib.SQLITE_CORRUPT || code == lib.SQLITE_NOTADB
	}
	return errors.Is(err, errDamaged) || errors.Is(err, errVersion)
}

// setAside renames the file and removes those beside it.
func setAside(path string) error {
	if err := os.Rename(path, path+asideSuffix); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (n *notes) open(path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // others could read one that SQLite makes
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	slashed, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	slashed = filepath.ToSlash(slashed)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	n.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: slashed}).EscapedPath()+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	if err != nil {
		return err
	}
	n.db.SetMaxOpenConns(1)
	if err := n.prepare(context.Background()); err != nil {
		return errors.Join(err, n.db.Close())
	}
	return nil
}

// prepare checks the file, makes the table of a new one, and measures what is in it.
func (n *notes) prepare(ctx context.Context) error {
	var found int
	if err := n.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	if found != 0 && found != version {
		return fmt.Errorf("%w: version %d, want %d", errVersion, found, version)
	}
	var sound string
	if err := n.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&sound); err != nil {
		return err
	}
	if sound != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, sound)
	}
	_, err := n.db.ExecContext(ctx, fmt.Sprintf(
		"CREATE TABLE IF NOT EXISTS notes (seq INTEGER PRIMARY KEY, record BLOB NOT NULL, sum INTEGER NOT NULL); PRAGMA user_version = %d",
		version))
	if err != nil {
		return err
	}
	size := n.db.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(length(record)), 0) FROM notes")
	if err := size.Scan(&n.records, &n.bytes); err != nil {
		return err
	}
	n.insert, err = n.db.PrepareContext(ctx, "INSERT INTO notes (record, sum) VALUES (?, ?)")
	return err
}

// each calls f with the records, the oldest first, without those that are not as they were written, which it counts. f must not use the
// list, and not keep the record.
func (n *notes) each(f func(record []byte)) (damaged int, err error) {
	rows, err := n.db.QueryContext(context.Background(), "SELECT record, sum FROM notes ORDER BY seq")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var record sql.RawBytes
		var written int64
		if err := rows.Scan(&record, &written); err != nil {
			return damaged, err
		}
		if sum(record) == written {
			f(record)
		} else {
			damaged++
		}
	}
	return damaged, rows.Err()
}

// sum is a record's checksum: SQLite has none of what it stores.
func sum(record []byte) int64 { return int64(xxh3.Hash(record)) }

// append adds a record. After an error it is not in the list, those before it are, and a later append may succeed.
func (n *notes) append(record []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.insert.ExecContext(context.Background(), record, sum(record)); err != nil {
		return err
	}
	n.records++
	n.bytes += int64(len(record))
	return n.trim(context.Background())
}

// trim removes the oldest records while there are too many; the caller holds mu.
func (n *notes) trim(ctx context.Context) error {
	for n.records > 1 && (n.records > n.maxRecords || n.bytes > n.maxBytes) {
		const oldest = "DELETE FROM notes WHERE seq IN (SELECT seq FROM notes ORDER BY seq LIMIT ?) RETURNING length(record)"
		rows, err := n.db.QueryContext(ctx, oldest, min(max(n.maxRecords/64, 1), n.records-1))
		if err != nil {
			return err
		}
		for rows.Next() {
			var size int64
			if err = rows.Scan(&size); err != nil {
				break
			}
			n.records--
			n.bytes -= size
		}
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// close writes everything to the disk and lets other processes open the folder.
func (n *notes) close() error { return errors.Join(n.db.Close(), n.unlock()) }
