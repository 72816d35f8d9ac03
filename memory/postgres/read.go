package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/blob"
)

// read calls f for each row of a query on a connection of its own.
func (b *Backend) read(ctx context.Context, query string, args []any, f func(pgx.Rows) (bool, error)) error {
	return b.pool.with(ctx, func(conn *pgx.Conn) error { return each(ctx, conn, query, args, f) })
}

// Get returns the memories that exist.
func (b *Backend) Get(ctx context.Context, ids []string) (found []memory.Memory, err error) {
	err = b.read(ctx, "SELECT "+memoryColumns+" FROM memories WHERE id = ANY ($1)", []any{ids}, func(rows pgx.Rows) (bool, error) {
		var m memory.Memory
		err := scanMemory(rows, &m)
		found = append(found, m)
		return true, err
	})
	return found, err
}

// Scan reads the columns that the part needs.
func (b *Backend) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	where, args := covered(scope, nil)
	if part == memory.Unembedded {
		where += " AND length(vector) = 0"
	}
	if part == memory.Whole {
		return b.pool.with(ctx, func(conn *pgx.Conn) error { return eachRecord(ctx, conn, where, args, yield) })
	}
	return b.read(ctx, "SELECT "+memoryColumns+" FROM memories WHERE "+where, args, func(rows pgx.Rows) (bool, error) {
		var r memory.Record
		err := scanMemory(rows, &r.Memory)
		return err == nil && yield(&r), err
	})
}

// eachRecord reads whole records. Their vectors share one slice.
func eachRecord(ctx context.Context, q querier, where string, args []any, yield func(*memory.Record) bool) error {
	var vector []float32
	query := "SELECT " + memoryColumns + ", entities, vector FROM memories WHERE " + where
	return each(ctx, q, query, args, func(rows pgx.Rows) (bool, error) {
		var r memory.Record
		raw, err := scanRecord(rows, &r)
		if err != nil {
			return false, err
		}
		if vector, err = blob.Decode(vector, raw); err != nil {
			return false, fmt.Errorf("memory %q: %w", r.Memory.ID, err)
		}
		if len(vector) > 0 {
			r.Vector = vector
		}
		return yield(&r), nil
	})
}

// Follow reads what bears a later version, in one transaction.
func (b *Backend) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (state memory.State, err error) {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = b.transaction(ctx, opts, func(inner pgx.Tx) error {
		var forgotten int64
		if err := inner.QueryRow(ctx, "SELECT version, forgotten FROM state").Scan(&state.Version, &forgotten); err != nil {
			return wrapped(err)
		}
		if state.Space, err = spaceOf(ctx, inner); err != nil || state.Version == since {
			return err
		}
		where, args := covered(scope, nil)
		if since < forgotten || since > state.Version {
			to.Reset()
		} else {
			err := each(ctx, inner, "SELECT id FROM removed WHERE version > $1", []any{since}, func(rows pgx.Rows) (bool, error) {
				var id string
				err := rows.Scan(&id)
				to.Remove(id)
				return true, err
			})
			if err != nil {
				return err
			}
			where, args = covered(scope, []any{since})
			where += " AND version > $1"
		}
		return eachRecord(ctx, inner, where, args, func(r *memory.Record) bool {
			to.Put(r)
			return true
		})
	})
	return state, err
}

// History returns a memory's revisions.
func (b *Backend) History(ctx context.Context, memoryID string) (found []memory.Revision, err error) {
	err = b.read(ctx, "SELECT "+revisionColumns+" FROM history WHERE memory = $1 ORDER BY seq", []any{memoryID},
		func(rows pgx.Rows) (bool, error) {
			r, err := scanRevision(rows)
			found = append(found, r)
			return true, err
		})
	return found, err
}

// ScopeHistory walks through a scope's revisions.
func (b *Backend) ScopeHistory(ctx context.Context, scope memory.Scope, yield func(*memory.Revision) bool) error {
	where, args := covered(scope, nil)
	return b.read(ctx, "SELECT "+revisionColumns+" FROM history WHERE "+where+" ORDER BY seq", args,
		func(rows pgx.Rows) (bool, error) {
			r, err := scanRevision(rows)
			return err == nil && yield(&r), err
		})
}

// Messages returns a log.
func (b *Backend) Messages(ctx context.Context, log memory.Log, last int) (found []memory.Message, err error) {
	var limit *int // NULL: no limit
	if last > 0 {
		limit = &last
	}
	query := "SELECT role, content, name, extra FROM messages WHERE " + sameLog + " ORDER BY seq DESC LIMIT $5"
	err = b.read(ctx, query, append(logArgs(log), limit), func(rows pgx.Rows) (bool, error) {
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
func spaceOf(ctx context.Context, inner pgx.Tx) (memory.Space, error) {
	var space memory.Space
	err := inner.QueryRow(ctx, "SELECT dimensions, embedder FROM space").Scan(&space.Dimensions, &space.Embedder)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return memory.Space{}, wrapped(err)
	}
	return space, nil
}
