package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/memory"
)

const (
	memoryColumns   = "id, user_id, agent_id, run_id, hash, text, role, actor, metadata::text, created, updated, expires"
	revisionColumns = "id, memory, event, user_id, agent_id, run_id, old, new, role, actor, at"
	sameLog         = "kind = $1 AND user_id = $2 AND agent_id = $3 AND run_id = $4"
)

func logArgs(log memory.Log) []any {
	return []any{log.Kind, log.Scope.User, log.Scope.Agent, log.Scope.Run}
}

// covered is the condition that selects what a scope covers. Its parameters follow args.
func covered(scope memory.Scope, args []any) (where string, all []any) {
	conditions := []string{"TRUE"}
	for _, f := range []struct{ column, value string }{
		{"user_id", scope.User}, {"agent_id", scope.Agent}, {"run_id", scope.Run},
	} {
		if f.value != "" {
			args = append(args, f.value)
			conditions = append(conditions, f.column+" = $"+strconv.Itoa(len(args)), f.column+" <> ''") // for the partial indexes
		}
	}
	return strings.Join(conditions, " AND "), args
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// each calls f for each row until it returns false or an error.
func each(ctx context.Context, q querier, query string, args []any, f func(pgx.Rows) (bool, error)) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return wrapped(err)
	}
	defer rows.Close()
	for rows.Next() {
		more, err := f(rows)
		if err != nil {
			return wrapped(err)
		}
		if !more {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return wrapped(err)
	}
	return nil
}

// memoryRow holds what must be translated.
type memoryRow struct {
	metadata         *string
	created, updated time.Time
	expires          *time.Time
}

func (r *memoryRow) places(m *memory.Memory) []any {
	return []any{
		&m.ID, &m.Scope.User, &m.Scope.Agent, &m.Scope.Run, &m.Hash, &m.Text, &m.Role, &m.Actor,
		&r.metadata, &r.created, &r.updated, &r.expires,
	}
}

func (r *memoryRow) finish(m *memory.Memory) error {
	m.CreatedAt, m.UpdatedAt = r.created.UTC(), r.updated.UTC()
	if r.expires != nil {
		m.ExpiresAt = r.expires.UTC()
	}
	if r.metadata == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(*r.metadata), &m.Metadata); err != nil {
		return fmt.Errorf("metadata of %q: %w", m.ID, err)
	}
	return nil
}

func scanMemory(row pgx.Row, m *memory.Memory) error {
	var r memoryRow
	if err := row.Scan(r.places(m)...); err != nil {
		return err
	}
	return r.finish(m)
}

// scanRecord reads a whole record and returns the bytes of the vector.
func scanRecord(rows pgx.Rows, r *memory.Record) (raw []byte, err error) {
	var row memoryRow
	if err := rows.Scan(append(row.places(&r.Memory), &r.Entities, &raw)...); err != nil {
		return nil, err
	}
	return raw, row.finish(&r.Memory)
}

func scanRevision(row pgx.Row) (memory.Revision, error) {
	var r memory.Revision
	err := row.Scan(&r.ID, &r.MemoryID, (*string)(&r.Event), &r.Scope.User, &r.Scope.Agent, &r.Scope.Run,
		&r.Old, &r.New, &r.Role, &r.Actor, &r.At)
	r.At = r.At.UTC()
	return r, err
}
