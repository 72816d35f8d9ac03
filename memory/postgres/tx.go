package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/blob"
)

// tx is a transaction that holds the schema's lock.
type tx struct {
	inner  pgx.Tx
	number int64 // of the transaction, if it has changed memories
}

var _ memory.Tx = (*tx)(nil)

func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.count(ctx, query, args...)
	return err
}

// count executes and returns how many rows changed.
func (t *tx) count(ctx context.Context, query string, args ...any) (int, error) {
	tag, err := t.inner.Exec(ctx, query, args...)
	if err != nil {
		return 0, wrapped(err)
	}
	return int(tag.RowsAffected()), nil
}

// Get returns a memory.
func (t *tx) Get(ctx context.Context, id string) (memory.Memory, bool, error) {
	return t.one(ctx, "SELECT "+memoryColumns+" FROM memories WHERE id = $1", id)
}

// Find returns the memory of a hash.
func (t *tx) Find(ctx context.Context, scope memory.Scope, hash string) (memory.Memory, bool, error) {
	return t.one(ctx, "SELECT "+memoryColumns+" FROM memories WHERE user_id = $1 AND agent_id = $2 AND run_id = $3 AND hash = $4",
		scope.User, scope.Agent, scope.Run, hash)
}

func (t *tx) one(ctx context.Context, query string, args ...any) (m memory.Memory, ok bool, err error) {
	err = scanMemory(t.inner.QueryRow(ctx, query, args...), &m)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return memory.Memory{}, false, nil
	case err != nil:
		return memory.Memory{}, false, wrapped(err)
	}
	return m, true, nil
}

// IDs returns a scope's IDs.
func (t *tx) IDs(ctx context.Context, scope memory.Scope) (ids []string, err error) {
	where, args := covered(scope, nil)
	err = each(ctx, t.inner, "SELECT id FROM memories WHERE "+where, args, func(rows pgx.Rows) (bool, error) {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return true, err
	})
	return ids, err
}

// Put stores a record.
func (t *tx) Put(ctx context.Context, r *memory.Record) error {
	m := &r.Memory
	var metadata []byte
	if len(m.Metadata) > 0 {
		var err error
		if metadata, err = json.Marshal(m.Metadata); err != nil {
			return fmt.Errorf("postgres: metadata: %w", err)
		}
	}
	entities := r.Entities
	if entities == nil {
		entities = []string{}
	}
	version, err := t.version(ctx)
	if err != nil {
		return err
	}
	// For those who follow the scope that it leaves.
	err = t.exec(ctx, `INSERT INTO removed (version, id) SELECT $1, id FROM memories
		WHERE id = $2 AND (user_id, agent_id, run_id) <> ($3, $4, $5)`, version, m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run)
	if err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO memories
		(id, user_id, agent_id, run_id, hash, text, role, actor, metadata, created, updated, expires, vector, entities, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, agent_id = excluded.agent_id, run_id = excluded.run_id,
		hash = excluded.hash, text = excluded.text, role = excluded.role, actor = excluded.actor,
		metadata = excluded.metadata, created = excluded.created, updated = excluded.updated, expires = excluded.expires,
		vector = excluded.vector, entities = excluded.entities, version = excluded.version`,
		m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run, m.Hash, m.Text, m.Role, m.Actor, metadata,
		m.CreatedAt, m.UpdatedAt, optional(m.ExpiresAt), blob.Encode(r.Vector), entities, version)
}

// version returns the number of this transaction, which it takes when memories change first.
func (t *tx) version(ctx context.Context) (int64, error) {
	if t.number == 0 {
		if err := t.inner.QueryRow(ctx, "UPDATE state SET version = version + 1 RETURNING version").Scan(&t.number); err != nil {
			return 0, wrapped(err)
		}
	}
	return t.number, nil
}

// SetVector replaces a vector.
func (t *tx) SetVector(ctx context.Context, id string, vector []float32) error {
	version, err := t.version(ctx)
	if err != nil {
		return err
	}
	return t.exec(ctx, "UPDATE memories SET vector = $1, version = $2 WHERE id = $3", blob.Encode(vector), version, id)
}

// DropVectors empties the column. Who follows a scope begins anew.
func (t *tx) DropVectors(ctx context.Context) error {
	if err := t.exec(ctx, "UPDATE memories SET vector = '' WHERE length(vector) > 0"); err != nil {
		return err
	}
	return t.restart(ctx)
}

// restart has all who follow a scope begin anew.
func (t *tx) restart(ctx context.Context) error {
	if _, err := t.version(ctx); err != nil {
		return err
	}
	return t.exec(ctx, "UPDATE state SET forgotten = version")
}

// removedRows bounds the table of removed IDs: it is cut to that when it has twice as many.
const removedRows = 2000

// Remove removes a record.
func (t *tx) Remove(ctx context.Context, id string) (bool, error) {
	n, err := t.count(ctx, "DELETE FROM memories WHERE id = $1", id)
	if err != nil || n == 0 {
		return false, err
	}
	version, err := t.version(ctx)
	if err != nil {
		return false, err
	}
	var seq int64
	err = t.inner.QueryRow(ctx, "INSERT INTO removed (version, id) VALUES ($1, $2) RETURNING seq", version, id).Scan(&seq)
	if err != nil {
		return false, wrapped(err)
	}
	if seq%removedRows != 0 {
		return true, nil
	}
	oldest := seq - removedRows
	err = t.exec(ctx, "UPDATE state SET forgotten = greatest(forgotten, (SELECT coalesce(max(version), 0) FROM removed WHERE seq <= $1))", oldest)
	if err != nil {
		return false, err
	}
	return true, t.exec(ctx, "DELETE FROM removed WHERE seq <= $1", oldest)
}

// Append writes a row of history.
func (t *tx) Append(ctx context.Context, r *memory.Revision) (bool, error) {
	n, err := t.count(ctx, `INSERT INTO history (id, memory, event, user_id, agent_id, run_id, old, new, role, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING`,
		r.ID, r.MemoryID, string(r.Event), r.Scope.User, r.Scope.Agent, r.Scope.Run, r.Old, r.New, r.Role, r.Actor, r.At)
	return n > 0, err
}

const blank = "UPDATE history SET old = '', new = '' WHERE (old <> '' OR new <> '') AND "

// Erase blanks the rows of a memory.
func (t *tx) Erase(ctx context.Context, memoryID string) (int, error) {
	return t.count(ctx, blank+"memory = $1", memoryID)
}

// EraseScope blanks the rows of a scope.
func (t *tx) EraseScope(ctx context.Context, scope memory.Scope) (int, error) {
	where, args := covered(scope, nil)
	return t.count(ctx, blank+where, args...)
}

// SetMessages replaces a log.
func (t *tx) SetMessages(ctx context.Context, log memory.Log, messages []memory.Message) error {
	if err := t.exec(ctx, "DELETE FROM messages WHERE "+sameLog, logArgs(log)...); err != nil {
		return err
	}
	return t.AppendMessages(ctx, log, messages, 0)
}

// AppendMessages adds to a log.
func (t *tx) AppendMessages(ctx context.Context, log memory.Log, messages []memory.Message, keep int) error {
	for i := range messages {
		m := &messages[i]
		args := append(logArgs(log), string(m.Role), m.Content, m.Name, []byte(m.Extra))
		err := t.exec(ctx, `INSERT INTO messages (kind, user_id, agent_id, run_id, role, content, name, extra)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, args...)
		if err != nil {
			return err
		}
	}
	if keep <= 0 {
		return nil
	}
	return t.exec(ctx, "DELETE FROM messages WHERE "+sameLog+` AND seq NOT IN
		(SELECT seq FROM messages WHERE `+sameLog+` ORDER BY seq DESC LIMIT $5)`, append(logArgs(log), keep)...)
}

// DropMessages removes logs.
func (t *tx) DropMessages(ctx context.Context, kind string, scope memory.Scope) error {
	where, args := covered(scope, []any{kind})
	return t.exec(ctx, "DELETE FROM messages WHERE kind = $1 AND "+where, args...)
}

// Space returns the space.
func (t *tx) Space(ctx context.Context) (memory.Space, error) { return spaceOf(ctx, t.inner) }

// SetSpace replaces the space, which who follows a scope sees as a change.
func (t *tx) SetSpace(ctx context.Context, space memory.Space) error {
	if _, err := t.version(ctx); err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO space (one, dimensions, embedder) VALUES (1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET dimensions = excluded.dimensions, embedder = excluded.embedder`,
		space.Dimensions, space.Embedder)
}

// optional is NULL for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
