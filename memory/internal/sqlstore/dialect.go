// Package sqlstore keeps memories in the tables of an SQL database. It is what the backends sqlite and postgres share: the
// statements, how rows are read and written, and the numbers by which a reader finds what has changed. Both databases know
// parameters as $1 and upserts as ON CONFLICT; a [Dialect] holds the rest.
//
// Every transaction that changes memories has a number. Rows have the number of the last one that changed them, and the table
// removed lists those that are gone, as far back as state.forgotten.
package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// Dialect is what differs between the databases.
type Dialect struct {
	// User, Agent and Run are the columns of a scope.
	User, Agent, Run string
	// ByVersion is the table memories, read through the index of versions.
	ByVersion string
	// WithIDs is the condition for the IDs in $1, which is what List returns.
	WithIDs string
	List    func(ids []string) any
	// Time returns a time as it is stored.
	Time func(t time.Time) any
	// Names returns entities as they are stored, and ReadNames where a column of entities is read into.
	Names     func(names []string) any
	ReadNames func(names *[]string) any
}

// Row is the current row of a result.
type Row interface{ Scan(dest ...any) error }

// Each calls f for each row until it returns false or an error.
func Each[R interface {
	Row
	Next() bool
	Err() error
}](rows R, f func(Row) (more bool, err error)) error {
	for more := true; more && rows.Next(); {
		var err error
		if more, err = f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Conn is a connection or a transaction. Its errors say which database they come from.
type Conn interface {
	// Each calls f for each row of a result until it returns false or an error.
	Each(ctx context.Context, query string, args []any, f func(row Row) (more bool, err error)) error
	// Exec executes a statement and returns how many rows it changed.
	Exec(ctx context.Context, query string, args ...any) (int, error)
}

// one reads the only row of a result. ok is false if there is none.
func one(ctx context.Context, c Conn, query string, args []any, read func(Row) error) (ok bool, err error) {
	err = c.Each(ctx, query, args, func(row Row) (bool, error) {
		ok = true
		return true, read(row)
	})
	return ok && err == nil, err
}

// scope returns the columns of a scope, separated by commas.
func (d *Dialect) scope() string { return d.User + ", " + d.Agent + ", " + d.Run }

func (d *Dialect) memoryColumns() string {
	return "id, " + d.scope() + ", hash, text, role, actor, CAST(metadata AS TEXT), created, updated, expires"
}

func (d *Dialect) revisionColumns() string {
	return "id, memory, event, " + d.scope() + ", old, new, role, actor, at"
}

// insert returns the beginning of a statement that inserts a row with these columns.
func insert(table, columns string) string {
	var places strings.Builder
	for i := range strings.Count(columns, ",") + 1 {
		fmt.Fprintf(&places, ", $%d", i+1)
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + places.String()[2:] + ") "
}

// covered returns the condition that selects what a scope covers. Its parameters follow args.
func (d *Dialect) covered(scope memory.Scope, args ...any) (where string, all []any) {
	conditions := []string{"TRUE"}
	for _, f := range []struct{ column, value string }{{d.User, scope.User}, {d.Agent, scope.Agent}, {d.Run, scope.Run}} {
		if f.value != "" {
			args = append(args, f.value)
			// The second condition lets a partial index serve.
			conditions = append(conditions, f.column+" = $"+strconv.Itoa(len(args)), f.column+" <> ''")
		}
	}
	return strings.Join(conditions, " AND "), args
}

// revisions returns the condition that selects the revisions of a memory, "" for all, that a scope covers.
func (d *Dialect) revisions(scope memory.Scope, memoryID string) (where string, args []any) {
	if memoryID == "" {
		return d.covered(scope)
	}
	where, args = d.covered(scope, memoryID)
	return "memory = $1 AND " + where, args
}

// inLog returns the condition that selects a log's messages.
func (d *Dialect) inLog(log memory.Log) (where string, args []any) {
	return "kind = $1 AND " + d.User + " = $2 AND " + d.Agent + " = $3 AND " + d.Run + " = $4",
		[]any{log.Kind, log.Scope.User, log.Scope.Agent, log.Scope.Run}
}
