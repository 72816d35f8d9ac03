package queue

import (
	"context"
	"fmt"
	"strings"
)

// tables makes the tables. Upper-case words in braces differ between the databases. Times are milliseconds since 1970. Texts of users and
// engines are bytes: a text column of PostgreSQL takes no NUL and no invalid UTF-8.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS batch_job (
		id {ID},
		name TEXT NOT NULL UNIQUE,
		spec {BYTES} NOT NULL,
		state TEXT NOT NULL,
		reason {BYTES} NOT NULL,
		requests BIGINT NOT NULL, num_rows BIGINT NOT NULL, subtrees BIGINT NOT NULL,
		created BIGINT NOT NULL, ended BIGINT NOT NULL,
		loader TEXT NOT NULL
	)`,
	`CREATE TABLE IF NOT EXISTS batch_request (
		job BIGINT NOT NULL, seq BIGINT NOT NULL, subtree BIGINT NOT NULL,
		num_rows TEXT NOT NULL,
		text {BYTES}, body {BYTES},
		PRIMARY KEY (job, seq)
	) {CLUSTERED}`,
	`CREATE TABLE IF NOT EXISTS batch_row (
		job BIGINT NOT NULL, num BIGINT NOT NULL, seq BIGINT NOT NULL,
		PRIMARY KEY (job, num)
	) {CLUSTERED}`,
	`CREATE TABLE IF NOT EXISTS batch_subtree (
		job BIGINT NOT NULL, subtree BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
		PRIMARY KEY (job, subtree)
	) {CLUSTERED}`,
	`CREATE TABLE IF NOT EXISTS batch_answer (
		job BIGINT NOT NULL, seq BIGINT NOT NULL,
		text {BYTES} NOT NULL, finish TEXT NOT NULL,
		prompt_tokens BIGINT NOT NULL, cached_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, cached_known BOOLEAN NOT NULL,
		attempts BIGINT NOT NULL, took BIGINT NOT NULL,
		replica TEXT NOT NULL,
		failure_code TEXT NOT NULL, failure_message {BYTES} NOT NULL, failure_status BIGINT NOT NULL,
		at BIGINT NOT NULL,
		PRIMARY KEY (job, seq)
	)`,
	`CREATE TABLE IF NOT EXISTS batch_progress (
		job BIGINT NOT NULL, process TEXT NOT NULL, replica TEXT NOT NULL,
		done BIGINT NOT NULL, failed BIGINT NOT NULL, rows_done BIGINT NOT NULL, rows_failed BIGINT NOT NULL,
		prompt_tokens BIGINT NOT NULL, cached_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, attempts BIGINT NOT NULL,
		first_at BIGINT NOT NULL, last_at BIGINT NOT NULL,
		PRIMARY KEY (job, process, replica)
	)`,
	`CREATE TABLE IF NOT EXISTS batch_death (
		job BIGINT NOT NULL, subtree BIGINT NOT NULL,
		answered BIGINT NOT NULL, deaths BIGINT NOT NULL,
		seq BIGINT NOT NULL, starts BIGINT NOT NULL,
		PRIMARY KEY (job, subtree)
	)`,
	`CREATE TABLE IF NOT EXISTS batch_process (
		id TEXT PRIMARY KEY,
		host TEXT NOT NULL, pid BIGINT NOT NULL,
		beat BIGINT NOT NULL,
		seen BIGINT NOT NULL
	)`,
}

// dialect is what differs between the databases.
type dialect struct {
	words *strings.Replacer // for tables
	// lastTaker is the ID of the River client that took a River job last.
	lastTaker string
	// lock is a statement that makes transactions which change the tables' definitions run one after the other; empty: they do.
	lock string
	// lockSums keeps answers from being counted until a transaction ends, so that it sees those that are, and no others; empty: transactions
	// that write run one after the other.
	lockSums string
	// foreign finds a table of another application, in a place that has none of ours. advice says what to do then.
	foreign, advice string
}

var sqliteDialect = dialect{
	words:     strings.NewReplacer("{ID}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{BYTES}", "BLOB", "{CLUSTERED}", "WITHOUT ROWID"),
	lastTaker: "json_extract(attempted_by, '$[#-1]')",
	foreign: `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'
		AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'batch_job') LIMIT 1`,
	advice: "name a file for batch jobs alone",
}

var postgresDialect = dialect{
	words:     strings.NewReplacer("{ID}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{BYTES}", "BYTEA", "{CLUSTERED}", ""),
	lastTaker: "attempted_by[cardinality(attempted_by)]",
	lock:      "SELECT pg_advisory_xact_lock(7020113907311245)",
	lockSums:  "LOCK TABLE batch_progress IN SHARE ROW EXCLUSIVE MODE",
	// Other tables do no harm. But one leader looks after all of River's jobs in a schema, and discards those that it does not know.
	foreign: "SELECT 'river_job' WHERE to_regclass('river_job') IS NOT NULL AND to_regclass('batch_job') IS NULL",
	advice:  "set another search_path, or none",
}

// makeTables makes what is missing, before River makes its tables. Tables of another application are left alone: it refuses a place where
// our tables would mix with them.
func (q *Queue) makeTables(ctx context.Context, tx execer) error {
	if q.dialect.lock != "" {
		if _, err := tx.ExecContext(ctx, q.dialect.lock); err != nil {
			return err
		}
	}
	if err := q.refuseForeign(ctx, tx); err != nil {
		return err
	}
	for _, statement := range tables {
		if _, err := tx.ExecContext(ctx, q.dialect.words.Replace(statement)); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return nil
}

func (q *Queue) refuseForeign(ctx context.Context, db execer) error {
	var table string
	err := db.QueryRowContext(ctx, q.dialect.foreign).Scan(&table)
	if err == nil {
		return fmt.Errorf("table %q there is of another application: %s", table, q.dialect.advice)
	} else if isNoRows(err) {
		return nil
	}
	return err
}
