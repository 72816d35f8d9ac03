package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/blob"
	"github.com/ragpilot/ragpilot/memory/internal/names"
)

const (
	memoryColumns   = "id, user, agent, run, hash, text, role, actor, metadata, created, updated, expires"
	revisionColumns = "id, memory, event, user, agent, run, old, new, role, actor, at"
	sameLog         = "kind = ? AND user = ? AND agent = ? AND run = ?"
)

func logArgs(log memory.Log) []any {
	return []any{log.Kind, log.Scope.User, log.Scope.Agent, log.Scope.Run}
}

// covered is the condition that selects what a scope covers.
func covered(scope memory.Scope) (where string, args []any) {
	conditions := []string{"TRUE"}
	for _, f := range []struct{ column, value string }{{"user", scope.User}, {"agent", scope.Agent}, {"run", scope.Run}} {
		if f.value != "" {
			conditions = append(conditions, f.column+" = ?", f.column+" <> ''") // the second lets a partial index serve
			args = append(args, f.value)
		}
	}
	return strings.Join(conditions, " AND "), args
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls f for each row until it returns false or an error.
func each(ctx context.Context, q querier, query string, args []any, f func(*sql.Rows) (bool, error)) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		more, err := f(rows)
		if err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
		if !more {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// memoryRow holds what must be translated.
type memoryRow struct {
	metadata         sql.NullString
	created, updated int64
	expires          sql.NullInt64
	entities         string // of a record
}

func (r *memoryRow) places(m *memory.Memory) []any {
	return []any{
		&m.ID, &m.Scope.User, &m.Scope.Agent, &m.Scope.Run, &m.Hash, &m.Text, &m.Role, &m.Actor,
		&r.metadata, &r.created, &r.updated, &r.expires,
	}
}

func (r *memoryRow) finish(m *memory.Memory) error {
	m.CreatedAt, m.UpdatedAt, m.ExpiresAt = moment(r.created), moment(r.updated), time.Time{}
	if r.expires.Valid {
		m.ExpiresAt = moment(r.expires.Int64)
	}
	if !r.metadata.Valid {
		return nil
	}
	if err := json.Unmarshal([]byte(r.metadata.String), &m.Metadata); err != nil {
		return fmt.Errorf("metadata of %q: %w", m.ID, err)
	}
	return nil
}

func scanMemory(row scanner, m *memory.Memory) error {
	var r memoryRow
	if err := row.Scan(r.places(m)...); err != nil {
		return err
	}
	return r.finish(m)
}

// scanRecord reads a whole record, its vector into a slice that it returns, which it may have replaced by a longer one.
func scanRecord(rows *sql.Rows, r *memory.Record, vector []float32) ([]float32, error) {
	var row memoryRow
	var raw sql.RawBytes
	if err := rows.Scan(append(row.places(&r.Memory), &row.entities, &raw)...); err != nil {
		return vector, err
	}
	r.Entities = names.Split(row.entities)
	vector, err := decodeVector(r, raw, vector)
	return vector, errors.Join(err, row.finish(&r.Memory))
}

// scanFollowed reads what Follow reports of a record, its vector as scanRecord does.
func scanFollowed(rows *sql.Rows, r *memory.Record, vector []float32) ([]float32, error) {
	var row memoryRow
	var raw sql.RawBytes
	m := &r.Memory
	if err := rows.Scan(&m.ID, &m.Text, &m.Role, &row.created, &row.expires, &row.entities, &raw); err != nil {
		return vector, err
	}
	r.Entities = names.Split(row.entities)
	m.CreatedAt = moment(row.created)
	if row.expires.Valid {
		m.ExpiresAt = moment(row.expires.Int64)
	}
	return decodeVector(r, raw, vector)
}

// decodeVector reads a record's vector into a slice that it returns.
func decodeVector(r *memory.Record, raw []byte, vector []float32) ([]float32, error) {
	vector, err := blob.Decode(vector, raw)
	if err != nil {
		return vector, fmt.Errorf("memory %q: %w", r.Memory.ID, err)
	}
	if len(vector) > 0 {
		r.Vector = vector
	}
	return vector, nil
}

func scanRevision(row scanner) (memory.Revision, error) {
	var r memory.Revision
	var at int64
	err := row.Scan(&r.ID, &r.MemoryID, (*string)(&r.Event), &r.Scope.User, &r.Scope.Agent, &r.Scope.Run,
		&r.Old, &r.New, &r.Role, &r.Actor, &at)
	r.At = moment(at)
	return r, err
}

func encodeMetadata(metadata map[string]any) (any, error) {
	if len(metadata) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("sqlite: metadata: %w", err)
	}
	return string(raw), nil
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func optionalMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }
