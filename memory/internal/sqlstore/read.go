package sqlstore

import (
	"context"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/memory"
)

// Reader is the reading half of a [memory.Backend].
type Reader struct {
	*Dialect
	// Read calls f with a connection. If whole is true, all that f reads is of one state of the database.
	Read func(ctx context.Context, whole bool, f func(c Conn) error) error
}

// each calls f for each row of a query on a connection of its own.
func (r *Reader) each(ctx context.Context, query string, args []any, f func(Row) (bool, error)) error {
	return r.Read(ctx, false, func(c Conn) error { return c.Each(ctx, query, args, f) })
}

// all returns what read makes of each row.
func all[T any](ctx context.Context, r *Reader, query string, args []any, read func(Row) (T, error)) (found []T, err error) {
	err = r.each(ctx, query, args, func(row Row) (bool, error) {
		one, err := read(row)
		found = append(found, one)
		return true, err
	})
	return found, err
}

// Get returns the memories that exist.
func (r *Reader) Get(ctx context.Context, ids []string) ([]memory.Memory, error) {
	return all(ctx, r, "SELECT "+r.memoryColumns()+" FROM memories WHERE "+r.WithIDs, []any{r.List(ids)}, readMemory)
}

// Scan reads the columns that the part needs. The vectors of whole records share one slice.
func (r *Reader) Scan(ctx context.Context, scope memory.Scope, part memory.Part, yield func(*memory.Record) bool) error {
	columns := r.memoryColumns()
	where, args := r.covered(scope)
	switch part {
	case memory.Unembedded:
		where += " AND length(vector) = 0"
	case memory.Whole:
		columns += ", entities, vector"
	}
	var shared vector
	return r.each(ctx, "SELECT "+columns+" FROM memories WHERE "+where, args, func(row Row) (bool, error) {
		var out memory.Record
		to := places(&out.Memory)
		if part == memory.Whole {
			to = append(to, r.ReadNames(&out.Entities), &shared)
		}
		err := scan(row, &out.Memory, to...)
		out.Vector = shared
		return err == nil && yield(&out), err
	})
}

// Follow reads the rows with a later version, all from one state.
func (r *Reader) Follow(ctx context.Context, scope memory.Scope, since int64, to memory.Changes) (state memory.State, err error) {
	err = r.Read(ctx, true, func(c Conn) (err error) {
		var forgotten int64
		_, err = one(ctx, c, "SELECT version, forgotten FROM state", nil, func(row Row) error { return row.Scan(&state.Version, &forgotten) })
		if err != nil {
			return err
		}
		if state.Space, err = spaceOf(ctx, c); err != nil || state.Version == since {
			return err
		}
		from := "memories"
		where, args := r.covered(scope)
		if since < forgotten || since > state.Version {
			to.Reset()
		} else {
			err = c.Each(ctx, "SELECT id FROM removed WHERE version > $1", []any{since}, func(row Row) (bool, error) {
				var id string
				err := row.Scan(&id)
				to.Remove(id)
				return true, err
			})
			if err != nil {
				return err
			}
			from = r.ByVersion
			where, args = r.covered(scope, since)
			where += " AND version > $1"
		}
		var shared vector
		query := "SELECT id, text, role, created, expires, entities, vector FROM " + from + " WHERE " + where
		return c.Each(ctx, query, args, func(row Row) (bool, error) {
			var out memory.Record
			m := &out.Memory
			err := scan(row, m, &m.ID, &m.Text, &m.Role, moment{&m.CreatedAt}, moment{&m.ExpiresAt}, r.ReadNames(&out.Entities), &shared)
			if out.Vector = shared; err == nil {
				to.Put(&out)
			}
			return true, err
		})
	})
	return state, err
}

// History walks through revisions.
func (r *Reader) History(ctx context.Context, scope memory.Scope, memoryID string, yield func(*memory.Revision) bool) error {
	where, args := r.revisions(scope, memoryID)
	return r.each(ctx, "SELECT "+r.revisionColumns()+" FROM history WHERE "+where+" ORDER BY seq", args, func(row Row) (bool, error) {
		revision, err := readRevision(row)
		return err == nil && yield(&revision), err
	})
}

// Messages returns a log.
func (r *Reader) Messages(ctx context.Context, log memory.Log, last int) ([]memory.Message, error) {
	if last <= 0 {
		last = math.MaxInt
	}
	where, args := r.inLog(log)
	query := "SELECT role, content, name, extra FROM messages WHERE " + where + " ORDER BY seq DESC LIMIT $5"
	found, err := all(ctx, r, query, append(args, last), func(row Row) (m memory.Message, err error) {
		var extra []byte
		err = row.Scan((*string)(&m.Role), &m.Content, &m.Name, &extra)
		if len(extra) > 0 {
			m.Extra = extra
		}
		return m, err
	})
	slices.Reverse(found)
	return found, err
}

// spaceOf reads the space.
func spaceOf(ctx context.Context, c Conn) (space memory.Space, err error) {
	_, err = one(ctx, c, "SELECT dimensions, embedder FROM space", nil, func(row Row) error {
		return row.Scan(&space.Dimensions, &space.Embedder)
	})
	return space, err
}
