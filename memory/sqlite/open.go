package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// Options configure [Open]; the zero Options are the usual ones.
type Options struct {
	// Relaxed leaves out the wait for the disk at each change: faster, and a machine that loses power may lose the last
	// changes. The death of the process alone loses nothing either way.
	Relaxed bool
	// Wait is how long a change waits for those of other processes; 0: 10 s.
	Wait time.Duration
}

// Backend is a [memory.Backend] in a file. It is safe for concurrent use.
type Backend struct {
	reading
	writer *sql.DB // one connection: transactions one after the other
	reader *sql.DB

	// readers lets the log be emptied while there is no reader: reading holds it shared, emptying alone.
	readers sync.RWMutex

	path string

	mu    sync.Mutex
	stale bool      // guarded by mu: the log or the file may hold what was deleted
	left  leftovers // guarded by mu: what that is
}

var _ memory.Backend = (*Backend)(nil)

// reading has the methods of a Backend that read.
type reading = sqlstore.Reader

// Open opens the file, which it makes if it is not there; the folder must exist.
func Open(ctx context.Context, path string, opts Options) (*Backend, error) {
	b, err := open(ctx, path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %q: %w", path, classify(err))
	}
	return b, nil
}

func open(ctx context.Context, path string, opts Options) (*Backend, error) {
	if path == "" || strings.Contains(path, ":memory:") {
		return nil, errors.New("a file is needed; memory.NewInMemory keeps memories without one")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	writer, err := sql.Open("sqlite", dsn(path, opts, true))
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	if err := migrate(ctx, writer); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	reader, err := sql.Open("sqlite", dsn(path, opts, false))
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	reader.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	b := &Backend{writer: writer, reader: reader, path: path}
	b.reading = reading{Dialect: &dialect, Read: b.read}
	return b, nil
}

// dsn names the file and what each connection to it sets.
func dsn(path string, opts Options, writes bool) string {
	wait := opts.Wait
	if wait <= 0 {
		wait = 10 * time.Second
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()))
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "secure_delete(ON)")
	if opts.Relaxed {
		q.Add("_pragma", "synchronous(NORMAL)")
	} else {
		q.Add("_pragma", "synchronous(FULL)")
	}
	if writes {
		q.Set("_txlock", "immediate") // or two transactions that read before they write would refuse each other
	} else {
		q.Add("_pragma", "query_only(ON)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// Close waits for what runs and closes the file. The last one to close it removes its log.
func (b *Backend) Close() error {
	b.readers.Lock()
	defer b.readers.Unlock()
	return errors.Join(b.reader.Close(), b.writer.Close())
}
