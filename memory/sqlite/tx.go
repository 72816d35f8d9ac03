package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/blob"
	"github.com/ragpilot/ragpilot/memory/internal/names"
)

// tx is a transaction.
type tx struct {
	sql     *sql.Tx
	number  int64 // of the transaction, if it has changed memories
	removed bool  // something that must not stay in the log
	left    leftovers
}

var _ memory.Tx = (*tx)(nil)

func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.count(ctx, query, args...)
	return err
}

// count executes and returns how many rows changed.
func (t *tx) count(ctx context.Context, query string, args ...any) (int, error) {
	result, err := t.sql.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("sqlite: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Get returns a memory.
func (t *tx) Get(ctx context.Context, id string) (memory.Memory, bool, error) {
	return t.one(ctx, "SELECT "+memoryColumns+" FROM memories WHERE id = ?", id)
}

// Find returns the memory of a hash.
func (t *tx) Find(ctx context.Context, scope memory.Scope, hash string) (memory.Memory, bool, error) {
	return t.one(ctx, "SELECT "+memoryColumns+" FROM memories WHERE user = ? AND agent = ? AND run = ? AND hash = ?",
		scope.User, scope.Agent, scope.Run, hash)
}

func (t *tx) one(ctx context.Context, query string, args ...any) (m memory.Memory, ok bool, err error) {
	err = scanMemory(t.sql.QueryRowContext(ctx, query, args...), &m)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return memory.Memory{}, false, nil
	case err != nil:
		return memory.Memory{}, false, fmt.Errorf("sqlite: %w", err)
	}
	return m, true, nil
}

// IDs returns a scope's IDs.
func (t *tx) IDs(ctx context.Context, scope memory.Scope) (ids []string, err error) {
	where, args := covered(scope)
	err = each(ctx, t.sql, "SELECT id FROM memories WHERE "+where, args, func(rows *sql.Rows) (bool, error) {
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
	metadata, err := encodeMetadata(m.Metadata)
	if err != nil {
		return err
	}
	version, err := t.version(ctx)
	if err != nil {
		return err
	}
	// For those who follow the scope that it leaves.
	err = t.exec(ctx, "INSERT INTO removed (version, id) SELECT ?, id FROM memories WHERE id = ? AND (user, agent, run) <> (?, ?, ?)",
		version, m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run)
	if err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO memories
		(id, user, agent, run, hash, text, role, actor, metadata, created, updated, expires, vector, entities, version)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET user = excluded.user, agent = excluded.agent, run = excluded.run, hash = excluded.hash,
		text = excluded.text, role = excluded.role, actor = excluded.actor, metadata = excluded.metadata,
		created = excluded.created, updated = excluded.updated, expires = excluded.expires,
		vector = excluded.vector, entities = excluded.entities, version = excluded.version`,
		m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run, m.Hash, m.Text, m.Role, m.Actor, metadata,
		micros(m.CreatedAt), micros(m.UpdatedAt), optionalMicros(m.ExpiresAt), blob.Encode(r.Vector), names.Join(r.Entities), version)
}

// version returns the number of this transaction, which it takes when memories change first.
func (t *tx) version(ctx context.Context) (int64, error) {
	if t.number == 0 {
		err := t.sql.QueryRowContext(ctx, "UPDATE state SET version = version + 1 RETURNING version").Scan(&t.number)
		if err != nil {
			return 0, fmt.Errorf("sqlite: %w", err)
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
	return t.exec(ctx, "UPDATE memories SET vector = ?, version = ? WHERE id = ?", blob.Encode(vector), version, id)
}

// DropVectors empties the column. Who follows a scope begins anew.
func (t *tx) DropVectors(ctx context.Context) error {
	if err := t.exec(ctx, "UPDATE memories SET vector = x'' WHERE length(vector) > 0"); err != nil {
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
	if err := t.note(ctx, nil, "SELECT text FROM memories WHERE id = ?", id); err != nil {
		return false, err
	}
	n, err := t.count(ctx, "DELETE FROM memories WHERE id = ?", id)
	if err != nil || n == 0 {
		return false, err
	}
	t.removed = true
	version, err := t.version(ctx)
	if err != nil {
		return false, err
	}
	var seq int64
	err = t.sql.QueryRowContext(ctx, "INSERT INTO removed (version, id) VALUES (?, ?) RETURNING seq", version, id).Scan(&seq)
	if err != nil {
		return false, fmt.Errorf("sqlite: %w", err)
	}
	if seq%removedRows != 0 {
		return true, nil
	}
	oldest := seq - removedRows
	err = t.exec(ctx, "UPDATE state SET forgotten = max(forgotten, (SELECT coalesce(max(version), 0) FROM removed WHERE seq <= ?))", oldest)
	if err != nil {
		return false, err
	}
	return true, t.exec(ctx, "DELETE FROM removed WHERE seq <= ?", oldest)
}

// Append writes a row of history.
func (t *tx) Append(ctx context.Context, r *memory.Revision) (bool, error) {
	n, err := t.count(ctx, `INSERT INTO history (id, memory, event, user, agent, run, old, new, role, actor, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		r.ID, r.MemoryID, string(r.Event), r.Scope.User, r.Scope.Agent, r.Scope.Run, r.Old, r.New, r.Role, r.Actor, micros(r.At))
	return n > 0, err
}

// Erase blanks the rows of a memory.
func (t *tx) Erase(ctx context.Context, memoryID string) (int, error) {
	return t.erase(ctx, "memory = ?", []any{memoryID})
}

// EraseScope blanks the rows of a scope.
func (t *tx) EraseScope(ctx context.Context, scope memory.Scope) (int, error) {
	where, args := covered(scope)
	return t.erase(ctx, where, args)
}

func (t *tx) erase(ctx context.Context, where string, args []any) (int, error) {
	if err := t.note(ctx, nil, "SELECT old, new FROM history WHERE "+where, args...); err != nil {
		return 0, err
	}
	n, err := t.count(ctx, "UPDATE history SET old = '', new = '' WHERE (old <> '' OR new <> '') AND "+where, args...)
	t.removed = t.removed || n > 0
	return n, err
}

// SetMessages replaces a log.
func (t *tx) SetMessages(ctx context.Context, log memory.Log, messages []memory.Message) error {
	stay := map[string]bool{}
	for i := range messages {
		stay[messages[i].Content] = true
	}
	if err := t.note(ctx, stay, "SELECT content FROM messages WHERE "+sameLog, logArgs(log)...); err != nil {
		return err
	}
	n, err := t.count(ctx, "DELETE FROM messages WHERE "+sameLog, logArgs(log)...)
	if err != nil {
		return err
	}
	t.removed = t.removed || n > 0
	return t.AppendMessages(ctx, log, messages, 0)
}

// AppendMessages adds to a log. What falls out of its window is not wanted away, only not needed: the log is not emptied
// for that.
func (t *tx) AppendMessages(ctx context.Context, log memory.Log, messages []memory.Message, keep int) error {
	for i := range messages {
		m := &messages[i]
		args := append(logArgs(log), string(m.Role), m.Content, m.Name, []byte(m.Extra))
		err := t.exec(ctx, `INSERT INTO messages (kind, user, agent, run, role, content, name, extra)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, args...)
		if err != nil {
			return err
		}
	}
	if keep <= 0 {
		return nil
	}
	return t.exec(ctx, "DELETE FROM messages WHERE "+sameLog+` AND seq NOT IN
		(SELECT seq FROM messages WHERE `+sameLog+` ORDER BY seq DESC LIMIT ?)`,
		append(append(logArgs(log), logArgs(log)...), keep)...)
}

// DropMessages removes logs.
func (t *tx) DropMessages(ctx context.Context, kind string, scope memory.Scope) error {
	where, args := covered(scope)
	args = append(args, kind)
	if err := t.note(ctx, nil, "SELECT content FROM messages WHERE "+where+" AND kind = ?", args...); err != nil {
		return err
	}
	n, err := t.count(ctx, "DELETE FROM messages WHERE "+where+" AND kind = ?", args...)
	t.removed = t.removed || n > 0
	return err
}

// Space returns the space.
func (t *tx) Space(ctx context.Context) (memory.Space, error) { return spaceOf(ctx, t.sql) }

// SetSpace replaces the space, which who follows a scope sees as a change.
func (t *tx) SetSpace(ctx context.Context, space memory.Space) error {
	if _, err := t.version(ctx); err != nil {
		return err
	}
	return t.exec(ctx, "INSERT OR REPLACE INTO space (one, dimensions, embedder) VALUES (1, ?, ?)", space.Dimensions, space.Embedder)
}
