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
	columns := memoryColumns + ", entities, vector"
	switch part {
	case memory.Vectors:
		columns = "id, created, expires, entities, vector"
	case memory.Memories:
		columns = memoryColumns
	}
	where, args := covered(scope, nil)
	var vector []float32
	return b.read(ctx, "SELECT "+columns+" FROM memories WHERE "+where, args, func(rows pgx.Rows) (bool, error) {
		var r memory.Record
		raw, err := scanRecord(rows, part, &r)
		if err != nil {
			return false, err
		}
		if raw != nil {
			if vector, err = blob.Decode(vector, raw); err != nil {
				return false, fmt.Errorf("memory %q: %w", r.Memory.ID, err)
			}
			r.Vector = vector
		}
		return yield(&r), nil
	})
}

// Lexicon asks the index of terms, and the table for the sums, in one transaction.
func (b *Backend) Lexicon(ctx context.Context, scope memory.Scope, terms []string) (lex memory.Lexicon, err error) {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = b.transaction(ctx, opts, func(inner pgx.Tx) error {
		where, args := covered(scope, nil)
		row := inner.QueryRow(ctx, "SELECT count(*), coalesce(sum(cardinality(terms)), 0) FROM memories WHERE "+where, args...)
		if err := row.Scan(&lex.Memories, &lex.Terms); err != nil {
			return wrapped(err)
		}
		where, args = covered(scope, []any{terms})
		return each(ctx, inner, "SELECT id, terms FROM memories WHERE terms && $1 AND "+where, args, func(rows pgx.Rows) (bool, error) {
			var p memory.Posting
			err := rows.Scan(&p.ID, &p.Terms)
			lex.Postings = append(lex.Postings, p)
			return true, err
		})
	})
	return lex, err
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

// Space records the first space. It is asked for once by each store.
func (b *Backend) Space(ctx context.Context, space memory.Space) (memory.Space, error) {
	err := b.Change(ctx, func(t memory.Tx) error {
		var have memory.Space
		err := t.(*tx).inner.QueryRow(ctx, "SELECT dimensions, embedder FROM space").Scan(&have.Dimensions, &have.Embedder)
		switch {
		case err == nil && have.Dimensions > 0:
			space = have
			return nil
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return wrapped(err)
		}
		return t.SetSpace(ctx, space)
	})
	return space, err
}
