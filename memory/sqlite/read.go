package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/memory"
)

// batch bounds the parameters of one query.
const batch = 500

// Get returns the memories that exist.
func (b *Backend) Get(ctx context.Context, ids []string) (found []memory.Memory, err error) {
	b.readers.RLock()
	defer b.readers.RUnlock()
	for some := range slices.Chunk(ids, batch) {
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id
		}
		query := "SELECT " + memoryColumns + " FROM memories WHERE id IN (?" + strings.Repeat(", ?", len(some)-1) + ")"
		err := each(ctx, b.reader, query, args, func(rows *sql.Rows) (bool, error) {
			var m memory.Memory
			err := scanMemory(rows, &m)
			found = append(found, m)
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Scan reads the columns that the part needs.
func (b *Backend) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	b.readers.RLock()
	defer b.readers.RUnlock()
	where, args := covered(scope)
	if part == memory.Unembedded {
		where += " AND length(vector) = 0"
	}
	if part == memory.Whole {
		return eachRecord(ctx, b.reader, where, args, yield)
	}
	return each(ctx, b.reader, "SELECT "+memoryColumns+" FROM memories WHERE "+where, args, func(rows *sql.Rows) (bool, error) {
		var r memory.Record
		err := scanMemory(rows, &r.Memory)
		return err == nil && yield(&r), err
	})
}

// eachRecord reads whole records. Their vectors share one slice.
func eachRecord(ctx context.Context, q querier, where string, args []any, yield func(*memory.Record) bool) error {
	var vector []float32
	query := "SELECT " + memoryColumns + ", entities, vector FROM memories WHERE " + where
	return each(ctx, q, query, args, func(rows *sql.Rows) (bool, error) {
		var r memory.Record
		var err error
		if vector, err = scanRecord(rows, &r, vector); err != nil {
			return false, err
		}
		return yield(&r), nil
	})
}

// Follow reads what bears a later version, in one transaction.
func (b *Backend) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (memory.State, error) {
	b.readers.RLock()
	defer b.readers.RUnlock()
	tx, err := b.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return memory.State{}, fmt.Errorf("sqlite: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it has nothing to commit
	var state memory.State
	var forgotten int64
	err = tx.QueryRowContext(ctx, "SELECT version, forgotten FROM state").Scan(&state.Version, &forgotten)
	if err != nil {
		return memory.State{}, fmt.Errorf("sqlite: %w", err)
	}
	if state.Space, err = spaceOf(ctx, tx); err != nil || state.Version == since {
		return state, err
	}
	from := "memories"
	where, args := covered(scope)
	if since < forgotten || since > state.Version {
		to.Reset()
	} else {
		err = each(ctx, tx, "SELECT id FROM removed WHERE version > ?", []any{since}, func(rows *sql.Rows) (bool, error) {
			var id string
			err := rows.Scan(&id)
			to.Remove(id)
			return true, err
		})
		if err != nil {
			return memory.State{}, err
		}
		from, where, args = "memories INDEXED BY memories_version", where+" AND version > ?", append(args, since)
	}
	var vector []float32
	query := "SELECT id, text, role, created, expires, entities, vector FROM " + from + " WHERE " + where
	err = each(ctx, tx, query, args, func(rows *sql.Rows) (more bool, err error) {
		var r memory.Record
		if vector, err = scanFollowed(rows, &r, vector); err == nil {
			to.Put(&r)
		}
		return true, err
	})
	return state, err
}

// History returns a memory's revisions.
func (b *Backend) History(ctx context.Context, memoryID string) (found []memory.Revision, err error) {
	b.readers.RLock()
	defer b.readers.RUnlock()
	err = each(ctx, b.reader, "SELECT "+revisionColumns+" FROM history WHERE memory = ? ORDER BY seq", []any{memoryID},
		func(rows *sql.Rows) (bool, error) {
			r, err := scanRevision(rows)
			found = append(found, r)
			return true, err
		})
	return found, err
}

// ScopeHistory walks through a scope's revisions.
func (b *Backend) ScopeHistory(ctx context.Context, scope memory.Scope, yield func(*memory.Revision) bool) error {
	b.readers.RLock()
	defer b.readers.RUnlock()
	where, args := covered(scope)
	return each(ctx, b.reader, "SELECT "+revisionColumns+" FROM history WHERE "+where+" ORDER BY seq", args,
		func(rows *sql.Rows) (bool, error) {
			r, err := scanRevision(rows)
			return err == nil && yield(&r), err
		})
}

// Messages returns a log.
func (b *Backend) Messages(ctx context.Context, log memory.Log, last int) (found []memory.Message, err error) {
	b.readers.RLock()
	defer b.readers.RUnlock()
	if last <= 0 {
		last = -1 // no limit
	}
	query := "SELECT role, content, name, extra FROM messages WHERE " + sameLog + " ORDER BY seq DESC LIMIT ?"
	err = each(ctx, b.reader, query, append(logArgs(log), last), func(rows *sql.Rows) (bool, error) {
		var m memory.Message
		var extra []byte
		err := rows.Scan((*string)(&m.Role), &m.Content, &m.Name, &extra)
		if len(extra) > 0 {
			m.Extra = extra
		}
		found = append(found, m)
		return true, err
	})
	slices.Reverse(found)
	return found, err
}

// spaceOf reads the space.
func spaceOf(ctx context.Context, tx *sql.Tx) (memory.Space, error) {
	var space memory.Space
	err := tx.QueryRowContext(ctx, "SELECT dimensions, embedder FROM space").Scan(&space.Dimensions, &space.Embedder)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return memory.Space{}, fmt.Errorf("sqlite: %w", err)
	}
	return space, nil
}
