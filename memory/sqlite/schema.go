package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// version is the form of the tables, kept in the file's user_version.
const version = 3

// schema. Times are microseconds since 1970 in UTC. Every transaction that changes memories has a number: rows bear that of the last
// one that changed them, and removed lists those that are gone, as far back as state.forgotten.
var schema = []string{
	`CREATE TABLE space (one INTEGER PRIMARY KEY CHECK (one = 1), dimensions INTEGER NOT NULL, embedder TEXT NOT NULL)`,
	`CREATE TABLE memories (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		user TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL,
		hash TEXT NOT NULL,
		text TEXT NOT NULL,
		role TEXT NOT NULL, actor TEXT NOT NULL,
		metadata TEXT,
		created INTEGER NOT NULL, updated INTEGER NOT NULL, expires INTEGER,
		vector BLOB NOT NULL,
		entities TEXT NOT NULL DEFAULT '',
		version INTEGER NOT NULL DEFAULT 0,
		UNIQUE (user, agent, run, hash)
	)`,
	`CREATE INDEX memories_agent ON memories (agent) WHERE agent <> ''`,
	`CREATE INDEX memories_run ON memories (run) WHERE run <> ''`,
	`CREATE INDEX memories_version ON memories (version)`,
	`CREATE INDEX memories_unembedded ON memories (seq) WHERE length(vector) = 0`,
	`CREATE TABLE removed (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, id TEXT NOT NULL)`,
	`CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, forgotten INTEGER NOT NULL)`,
	`INSERT INTO state VALUES (1, 1, 1)`,
	`CREATE TABLE history (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		memory TEXT NOT NULL,
		event TEXT NOT NULL,
		user TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL,
		old TEXT NOT NULL, new TEXT NOT NULL,
		role TEXT NOT NULL, actor TEXT NOT NULL,
		at INTEGER NOT NULL
	)`,
	`CREATE INDEX history_memory ON history (memory)`,
	`CREATE INDEX history_scope ON history (user, agent, run)`,
	`CREATE TABLE messages (
		seq INTEGER PRIMARY KEY,
		kind TEXT NOT NULL,
		user TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL,
		role TEXT NOT NULL, content TEXT NOT NULL, name TEXT NOT NULL, extra BLOB
	)`,
	`CREATE INDEX messages_log ON messages (kind, user, agent, run, seq)`,
	fmt.Sprintf(`PRAGMA user_version = %d`, version),
}

// everything lists the tables that Reset empties. What follows a reset has a version of its own.
var everything = []string{"space", "memories", "removed", "history", "messages"}

// entitiesAdded brings a file of version 1 to version 2: its memories have no entities until they are changed.
var entitiesAdded = []string{
	`ALTER TABLE memories ADD COLUMN entities TEXT NOT NULL DEFAULT ''`,
}

// versionsAdded brings a file of version 2 to version 3: the full-text index goes, and changes are numbered.
var versionsAdded = []string{
	`DROP TABLE lexicon`,
	`ALTER TABLE memories DROP COLUMN terms`,
	`ALTER TABLE memories ADD COLUMN version INTEGER NOT NULL DEFAULT 0`,
	`CREATE INDEX memories_version ON memories (version)`,
	`CREATE INDEX memories_unembedded ON memories (seq) WHERE length(vector) = 0`,
	`CREATE TABLE removed (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, id TEXT NOT NULL)`,
	`CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, forgotten INTEGER NOT NULL)`,
	`INSERT INTO state VALUES (1, 1, 1)`,
	`PRAGMA user_version = 3`,
}

// migrate makes the tables of a new file, brings an older one up to date, and refuses files of later versions and of other programs.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	var have int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	statements := schema
	switch have {
	case 0:
		var others int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&others); err != nil {
			return err
		}
		if others > 0 {
			return errors.New("the file is a database of something else than memories")
		}
	case 1:
		statements = slices.Concat(entitiesAdded, versionsAdded)
	case 2:
		statements = versionsAdded
	case version:
		return nil
	default:
		return fmt.Errorf("the file has version %d, this program knows %d", have, version)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return tx.Commit()
}
