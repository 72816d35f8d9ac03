package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	driver "modernc.org/sqlite" // "sqlite"
)

// Schema is the schema of PostgreSQL that holds the tables, River's included, unless the DSN sets search_path.
const Schema = "ragpilot_batch"

// Options configure [Open]; the zero Options are the usual ones.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
	// Heartbeat is how often a process that works or loads gives a sign of life; after five without one it counts as dead, with SQLite after
	// thirty if it is known to exist. 0: 2 s.
	Heartbeat time.Duration
}

// Queue is a database of batch jobs. It is safe for concurrent use.
type Queue struct {
	dialect   dialect
	write     *sql.DB       // SQLite: one connection, also River's: transactions one after the other
	read      *sql.DB       // PostgreSQL: the same as write
	pool      *pgxpool.Pool // nil: SQLite
	client    riverClient   // inserts and controls River jobs; it works none
	log       *slog.Logger
	heartbeat time.Duration
	closed    atomic.Bool
}

// riverClient is a River client of either database.
type riverClient interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Queues() *river.QueueBundle
	QueueResume(ctx context.Context, name string, opts *river.QueuePauseOpts) error
	InsertManyFast(ctx context.Context, params []river.InsertManyParams) (int, error)
	JobDeleteMany(ctx context.Context, params *river.JobDeleteManyParams) (*river.JobDeleteManyResult, error)
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Open opens a database and makes the tables if they are missing, River's included; several processes may do so at a time. dsn is
// "postgres://..." or the path of an SQLite file, which is made if it is not there; its folder must exist. It refuses an SQLite file of
// another application, and a schema where another application has River's tables. Errors never hold the password.
func Open(ctx context.Context, dsn string, opts Options) (*Queue, error) {
	q := &Queue{log: opts.Logger, heartbeat: opts.Heartbeat}
	if q.log == nil {
		q.log = slog.New(slog.DiscardHandler)
	}
	if q.heartbeat <= 0 {
		q.heartbeat = 2 * time.Second
	}
	where := "PostgreSQL database"
	scheme, _, isURL := strings.Cut(dsn, "://")
	var err error
	switch {
	case isURL && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql")):
		err = q.openPostgres(ctx, strings.ToLower(scheme)+dsn[len(scheme):])
	case isURL: // the rest of it may hold a password
		where = "database"
		err = fmt.Errorf("%q is not supported: want the path of a file, or postgres://user@host/name", scheme+"://")
	case connection.MatchString(dsn): // as the name of a file its password could be read
		where = "database"
		err = errors.New("want the path of a file, or postgres://user@host/name, and no other form of a connection")
	default:
		where = fmt.Sprintf("SQLite file %q", dsn)
		err = q.openSQLite(ctx, dsn)
	}
	if err == nil {
		err = q.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the %s of batch jobs: %w", where, err), q.Close())
	}
	return q, nil
}

// connection matches what names a PostgreSQL database and is no URL: "host=a password=b", "postgres:/user:b@a".
var connection = regexp.MustCompile(`(?i)^\s*(host|hostaddr|port|user|dbname|service)\s*=|(^|\s)password\s*=|^postgres(ql)?:`)

func (q *Queue) prepare(ctx context.Context) (err error) {
	if q.client, err = q.newClient(&river.Config{}, nil); err != nil {
		return err
	}
	return q.removeAbandoned(ctx)
}

// Close closes the connections. Workers must have ended.
func (q *Queue) Close() error {
	q.closed.Store(true)
	var errs []error
	if q.read != nil && q.read != q.write {
		errs = append(errs, q.read.Close())
	}
	if q.write != nil {
		errs = append(errs, q.write.Close())
	}
	if q.pool != nil {
		q.pool.Close()
	}
	return errors.Join(errs...)
}

func (q *Queue) openPostgres(ctx context.Context, dsn string) error {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err // pgx leaves the password out
	}
	schema := config.ConnConfig.RuntimeParams["search_path"]
	if schema == "" {
		schema = Schema
		config.ConnConfig.RuntimeParams["search_path"] = schema
	}
	// An answer that was stored outlives a crash of the server, also where the server's own setting is off.
	if value := config.ConnConfig.RuntimeParams["synchronous_commit"]; value == "" || value == "off" {
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = max(8, config.MaxConns)
	}
	q.dialect = postgresDialect
	if q.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	q.write = stdlib.OpenDBFromPool(q.pool)
	q.read = q.write
	// A lock of a connection: River commits between its migrations.
	return q.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(7020113907311246)"); err != nil {
			return err
		}
		defer func() {
			_, unlock := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(7020113907311246)")
			err = errors.Join(err, unlock)
		}()
		if !strings.ContainsAny(schema, `,"`) {
			if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil {
				return err
			}
		}
		if err := q.transaction(ctx, func(tx execer) error { return q.makeTables(ctx, tx) }); err != nil {
			return err
		}
		migrator, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: quiet(q.log)})
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
}

func (q *Queue) openSQLite(ctx context.Context, path string) error {
	if path == "" || strings.Contains(path, ":memory:") {
		return errors.New("a file is needed: workers of several processes share it")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	q.dialect = sqliteDialect
	plain, err := sql.Open("sqlite", sqliteDSN(path, false, "busy_timeout(10000)"))
	if err != nil {
		return err
	}
	if err := errors.Join(q.refuseForeign(ctx, plain), plain.Close()); err != nil { // before WAL mode changes the file
		return err
	}
	if q.write, err = sql.Open("sqlite", sqliteDSN(path, true, pragmas...)); err != nil {
		return err
	}
	q.write.SetMaxOpenConns(1)
	if q.read, err = sql.Open("sqlite", sqliteDSN(path, false, pragmas...)); err != nil {
		return err
	}
	q.read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	driver, err := newSQLiteDriver(q.write)
	if err != nil {
		return err
	}
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet(q.log)})
	if err != nil {
		return err
	}
	var tx *sql.Tx // it holds the file's lock: other processes migrate before or after
	if err := patiently(ctx, func() (err error) { tx, err = q.write.BeginTx(ctx, nil); return err }); err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if err := q.makeTables(ctx, tx); err != nil {
		return err
	}
	//nolint:staticcheck // deprecated for PostgreSQL, some of whose migrations need a commit before the next; Migrate takes no lock
	if _, err := migrator.MigrateTx(ctx, tx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	return tx.Commit()
}

// patiently calls f again for up to a minute while it finds an SQLite file locked. SQLite itself waits for ten seconds only, and looks now
// and then, so that busy processes may have the lock each time. It does not wait at all where others change a new file to WAL mode.
func patiently(ctx context.Context, f func() error) error {
	const sqliteBusy = 5
	for end := time.Now().Add(time.Minute); ; {
		err := f()
		if failed, ok := errors.AsType[*driver.Error](err); !ok || failed.Code()&0xff != sqliteBusy || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pragmas are what connections to SQLite set. With FULL an answer that was stored outlives a loss of power.
var pragmas = []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-65536)"}

// sqliteDSN names the file and what each connection to it sets.
func sqliteDSN(path string, writes bool, pragmas ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	params := url.Values{}
	for _, pragma := range pragmas {
		params.Add("_pragma", pragma)
	}
	if writes {
		params.Set("_txlock", "immediate") // or two transactions that read before they write would refuse each other
	} else {
		params.Add("_pragma", "query_only(ON)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + params.Encode()
}

// newClient returns a River client; limit, if not nil, limits what it takes.
func (q *Queue) newClient(config *river.Config, limit *gate) (riverClient, error) {
	config.Logger = quiet(q.log)
	if q.pool != nil {
		return river.NewClient(gatedDriver[pgx.Tx]{riverpgxv5.New(q.pool), limit}, config)
	}
	config.PollOnly = true // notifications through a file are polled for as well
	driver, err := newSQLiteDriver(q.write)
	if err != nil {
		return nil, err
	}
	return river.NewClient(gatedDriver[*sql.Tx]{driver, limit}, config)
}

// transaction runs f in a transaction, which is rolled back if f fails.
func (q *Queue) transaction(ctx context.Context, f func(tx execer) error) error {
	tx, err := q.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// quiet returns a logger for River that leaves out what is not at least a warning.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// each calls f for each row of a result.
func each(ctx context.Context, db execer, f func(scan func(dest ...any) error) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
