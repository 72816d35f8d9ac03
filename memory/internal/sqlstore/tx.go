package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/memory"
)

// Tx is a [memory.Tx] over a transaction of the database.
type Tx struct {
	*Dialect
	Conn
	// Erased reports that a text was removed.
	Erased bool
	// Erasing is called before texts are removed, with the query that selects them and those of them that are stored elsewhere.
	// nil: nothing is called.
	Erasing func(ctx context.Context, kept map[string]bool, query string, args []any) error

	number int64 // of the transaction; 0: it has changed no memories
}

var _ memory.Tx = (*Tx)(nil)

// Get returns a memory.
func (t *Tx) Get(ctx context.Context, id string) (memory.Memory, bool, error) {
	return t.memory(ctx, "id = $1", id)
}

// Find returns the memory of a hash.
func (t *Tx) Find(ctx context.Context, scope memory.Scope, hash string) (memory.Memory, bool, error) {
	return t.memory(ctx, "("+t.scope()+", hash) = ($1, $2, $3, $4)", scope.User, scope.Agent, scope.Run, hash)
}

func (t *Tx) memory(ctx context.Context, where string, args ...any) (m memory.Memory, ok bool, err error) {
	ok, err = one(ctx, t, "SELECT "+t.memoryColumns()+" FROM memories WHERE "+where, args, func(row Row) (err error) {
		m, err = readMemory(row)
		return err
	})
	return m, ok, err
}

// IDs returns a scope's IDs.
func (t *Tx) IDs(ctx context.Context, scope memory.Scope) (ids []string, err error) {
	where, args := t.covered(scope)
	err = t.Each(ctx, "SELECT id FROM memories WHERE "+where, args, func(row Row) (bool, error) {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return true, err
	})
	return ids, err
}

// Put stores a record.
func (t *Tx) Put(ctx context.Context, r *memory.Record) error {
	m := &r.Memory
	var metadata, expires any // NULL
	if len(m.Metadata) > 0 {
		raw, err := json.Marshal(m.Metadata)
		if err != nil {
			return fmt.Errorf("metadata of %q: %w", m.ID, err)
		}
		metadata = string(raw)
	}
	if !m.ExpiresAt.IsZero() {
		expires = t.Time(m.ExpiresAt)
	}
	version, err := t.version(ctx)
	if err != nil {
		return err
	}
	// For those who follow the scope that it leaves.
	_, err = t.Exec(ctx, "INSERT INTO removed (version, id) SELECT $1, id FROM memories WHERE id = $2 AND ("+t.scope()+") <> ($3, $4, $5)",
		version, m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run)
	if err != nil {
		return err
	}
	columns := "id, " + t.scope() + ", hash, text, role, actor, metadata, created, updated, expires, vector, entities, version"
	_, err = t.Exec(ctx, insert("memories", columns)+"ON CONFLICT (id) DO UPDATE SET ("+columns+") = (excluded."+
		strings.ReplaceAll(columns, ", ", ", excluded.")+")",
		m.ID, m.Scope.User, m.Scope.Agent, m.Scope.Run, m.Hash, m.Text, m.Role, m.Actor, metadata,
		t.Time(m.CreatedAt), t.Time(m.UpdatedAt), expires, EncodeVector(r.Vector), t.Names(r.Entities), version)
	return err
}

// version returns the number of this transaction, which it takes when memories change first.
func (t *Tx) version(ctx context.Context) (int64, error) {
	if t.number > 0 {
		return t.number, nil
	}
	_, err := one(ctx, t, "UPDATE state SET version = version + 1 RETURNING version", nil, func(row Row) error { return row.Scan(&t.number) })
	return t.number, err
}

// SetVector replaces a vector.
func (t *Tx) SetVector(ctx context.Context, id string, vector []float32) error {
	version, err := t.version(ctx)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, "UPDATE memories SET vector = $1, version = $2 WHERE id = $3", EncodeVector(vector), version, id)
	return err
}

// DropVectors empties the column. Who follows a scope begins anew.
func (t *Tx) DropVectors(ctx context.Context) error {
	if _, err := t.Exec(ctx, "UPDATE memories SET vector = $1 WHERE length(vector) > 0", EncodeVector(nil)); err != nil {
		return err
	}
	return t.Restart(ctx)
}

// Restart makes all who follow a scope begin anew.
func (t *Tx) Restart(ctx context.Context) error {
	if _, err := t.version(ctx); err != nil {
		return err
	}
	_, err := t.Exec(ctx, "UPDATE state SET forgotten = version")
	return err
}

// removedRows bounds the table of removed IDs: it is cut to that when it has twice as many.
const removedRows = 2000

// Remove removes a record.
func (t *Tx) Remove(ctx context.Context, id string) (bool, error) {
	n, err := t.erase(ctx, nil, "DELETE FROM memories", "text", "memories", "id = $1", id)
	if err != nil || n == 0 {
		return false, err
	}
	version, err := t.version(ctx)
	if err != nil {
		return false, err
	}
	var seq int64
	_, err = one(ctx, t, insert("removed", "version, id")+"RETURNING seq", []any{version, id}, func(row Row) error { return row.Scan(&seq) })
	if err != nil || seq%removedRows != 0 {
		return err == nil, err
	}
	oldest := seq - removedRows
	const last = "(SELECT max(version) FROM removed WHERE seq <= $1)"
	if _, err = t.Exec(ctx, "UPDATE state SET forgotten = "+last+" WHERE forgotten < "+last, oldest); err != nil {
		return false, err
	}
	_, err = t.Exec(ctx, "DELETE FROM removed WHERE seq <= $1", oldest)
	return true, err
}

// erase executes a statement that removes the texts in columns of the rows that match, and returns how many rows there were.
func (t *Tx) erase(ctx context.Context, kept map[string]bool, statement, columns, table, where string, args ...any) (int, error) {
	if t.Erasing != nil {
		if err := t.Erasing(ctx, kept, "SELECT "+columns+" FROM "+table+" WHERE "+where, args); err != nil {
			return 0, err
		}
	}
	n, err := t.Exec(ctx, statement+" WHERE "+where, args...)
	t.Erased = t.Erased || n > 0
	return n, err
}

// Append writes a row of history.
func (t *Tx) Append(ctx context.Context, r *memory.Revision) (bool, error) {
	n, err := t.Exec(ctx, insert("history", t.revisionColumns())+"ON CONFLICT (id) DO NOTHING",
		r.ID, r.MemoryID, string(r.Event), r.Scope.User, r.Scope.Agent, r.Scope.Run, r.Old, r.New, r.Role, r.Actor, t.Time(r.At))
	return n > 0, err
}

// Erase blanks rows.
func (t *Tx) Erase(ctx context.Context, scope memory.Scope, memoryID string) (int, error) {
	where, args := t.revisions(scope, memoryID)
	return t.erase(ctx, nil, "UPDATE history SET old = '', new = ''", "old, new", "history", "(old <> '' OR new <> '') AND "+where, args...)
}

// SetMessages replaces a log.
func (t *Tx) SetMessages(ctx context.Context, log memory.Log, messages []memory.Message) error {
	kept := map[string]bool{}
	for i := range messages {
		kept[messages[i].Content] = true
	}
	where, args := t.inLog(log)
	if _, err := t.erase(ctx, kept, "DELETE FROM messages", "content", "messages", where, args...); err != nil {
		return err
	}
	return t.AppendMessages(ctx, log, messages, 0)
}

// AppendMessages adds to a log. Messages beyond keep are not needed any more, but they need not be erased.
func (t *Tx) AppendMessages(ctx context.Context, log memory.Log, messages []memory.Message, keep int) error {
	where, args := t.inLog(log)
	add := insert("messages", "kind, "+t.scope()+", role, content, name, extra")
	for i := range messages {
		m := &messages[i]
		if _, err := t.Exec(ctx, add, append(args[:4:4], string(m.Role), m.Content, m.Name, []byte(m.Extra))...); err != nil {
			return err
		}
	}
	if keep <= 0 {
		return nil
	}
	newest := "SELECT seq FROM messages WHERE " + where + " ORDER BY seq DESC LIMIT $5"
	_, err := t.Exec(ctx, "DELETE FROM messages WHERE "+where+" AND seq NOT IN ("+newest+")", append(args, keep)...)
	return err
}

// DropMessages removes logs.
func (t *Tx) DropMessages(ctx context.Context, kind string, scope memory.Scope) error {
	where, args := t.covered(scope, kind)
	_, err := t.erase(ctx, nil, "DELETE FROM messages", "content", "messages", "kind = $1 AND "+where, args...)
	return err
}

// Space returns the space.
func (t *Tx) Space(ctx context.Context) (memory.Space, error) { return spaceOf(ctx, t) }

// SetSpace replaces the space, which who follows a scope sees as a change.
func (t *Tx) SetSpace(ctx context.Context, space memory.Space) error {
	if _, err := t.version(ctx); err != nil {
		return err
	}
	_, err := t.Exec(ctx, insert("space", "one, dimensions, embedder")+
		"ON CONFLICT (one) DO UPDATE SET dimensions = excluded.dimensions, embedder = excluded.embedder", 1, space.Dimensions, space.Embedder)
	return err
}
