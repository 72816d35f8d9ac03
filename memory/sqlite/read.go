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
	columns := memoryColumns + ", entities, vector"
	switch part {
	case memory.Vectors:
		columns = "id, created, expires, entities, vector"
	case memory.Memories:
		columns = memoryColumns
	}
	where, args := covered(scope)
	var vector []float32
	return each(ctx, b.reader, "SELECT "+columns+" FROM memories WHERE "+where, args, func(rows *sql.Rows) (bool, error) {
		var r memory.Record
		var raw sql.RawBytes
		if err := scanRecord(rows, part, &r, &raw); err != nil {
			return false, err
		}
		var err error
		if vector, err = decodeVector(vector, raw, &r); err != nil {
			return false, err
		}
		return yield(&r), nil
	})
}

// Lexicon asks the full-text index, and the table for the sums, in one transaction.
func (b *Backend) Lexicon(ctx context.Context, scope memory.Scope, terms []string) (memory.Lexicon, error) {
	b.readers.RLock()
	defer b.readers.RUnlock()
	var lex memory.Lexicon
	tx, err := b.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return lex, fmt.Errorf("sqlite: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it has nothing to commit
	where, args := covered(scope)
	err = tx.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(terms), 0) FROM memories WHERE "+where, args...).
		Scan(&lex.Memories, &lex.Terms)
	if err != nil {
		return lex, fmt.Errorf("sqlite: %w", err)
	}
	if len(terms) == 0 {
		return lex, nil
	}
	query := `SELECT memories.id, lexicon.terms FROM lexicon JOIN memories ON memories.seq = lexicon.rowid
		WHERE lexicon MATCH ? AND ` + where
	match := `"` + strings.Join(terms, `" OR "`) + `"`
	err = each(ctx, tx, query, append([]any{match}, args...), func(rows *sql.Rows) (bool, error) {
		var p memory.Posting
		var all string
		err := rows.Scan(&p.ID, &all)
		p.Terms = strings.Fields(all)
		lex.Postings = append(lex.Postings, p)
		return true, err
	})
	return lex, err
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

// Space records the first space. It is asked for once by each store.
func (b *Backend) Space(ctx context.Context, space memory.Space) (memory.Space, error) {
	err := b.Change(ctx, func(t memory.Tx) error {
		inner := t.(*tx)
		var have memory.Space
		err := inner.sql.QueryRowContext(ctx, "SELECT dimensions, embedder FROM space").Scan(&have.Dimensions, &have.Embedder)
		switch {
		case err == nil && have.Dimensions > 0:
			space = have
			return nil
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("sqlite: %w", err)
		}
		return t.SetSpace(ctx, space)
	})
	return space, err
}
