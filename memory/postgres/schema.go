package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// tables makes what a new schema needs; search_path is set to it.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS space (one INT PRIMARY KEY CHECK (one = 1), dimensions INT NOT NULL, embedder TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS memories (
		id TEXT PRIMARY KEY,
		user_id TEXT NOT NULL, agent_id TEXT NOT NULL, run_id TEXT NOT NULL,
		hash TEXT NOT NULL,
		text TEXT NOT NULL,
		role TEXT NOT NULL, actor TEXT NOT NULL,
		metadata JSON,
		created TIMESTAMPTZ NOT NULL, updated TIMESTAMPTZ NOT NULL, expires TIMESTAMPTZ,
		vector BYTEA NOT NULL,
		UNIQUE (user_id, agent_id, run_id, hash)
	)`,
	`ALTER TABLE memories ADD COLUMN IF NOT EXISTS entities TEXT[] NOT NULL DEFAULT '{}'`, // older tables have none
	`CREATE INDEX IF NOT EXISTS memories_agent ON memories (agent_id) WHERE agent_id <> ''`,
	`CREATE INDEX IF NOT EXISTS memories_run ON memories (run_id) WHERE run_id <> ''`,
	`ALTER TABLE memories DROP COLUMN IF EXISTS terms`, // of older tables
	// What version, removed and state are for, see package sqlstore.
	`ALTER TABLE memories ADD COLUMN IF NOT EXISTS version BIGINT NOT NULL DEFAULT 0`,
	`CREATE INDEX IF NOT EXISTS memories_version ON memories (version)`,
	`CREATE INDEX IF NOT EXISTS memories_unembedded ON memories (id) WHERE length(vector) = 0`,
	`CREATE TABLE IF NOT EXISTS removed (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, version BIGINT NOT NULL, id TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS state (one INT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL, forgotten BIGINT NOT NULL)`,
	`INSERT INTO state VALUES (1, 1, 1) ON CONFLICT (one) DO NOTHING`,
	`CREATE TABLE IF NOT EXISTS history (
		seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		memory TEXT NOT NULL,
		event TEXT NOT NULL,
		user_id TEXT NOT NULL, agent_id TEXT NOT NULL, run_id TEXT NOT NULL,
		old TEXT NOT NULL, new TEXT NOT NULL,
		role TEXT NOT NULL, actor TEXT NOT NULL,
		at TIMESTAMPTZ NOT NULL
	)`,
	`CREATE INDEX IF NOT EXISTS history_memory ON history (memory)`,
	`CREATE INDEX IF NOT EXISTS history_scope ON history (user_id, agent_id, run_id)`,
	`CREATE TABLE IF NOT EXISTS messages (
		seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		kind TEXT NOT NULL,
		user_id TEXT NOT NULL, agent_id TEXT NOT NULL, run_id TEXT NOT NULL,
		role TEXT NOT NULL, content TEXT NOT NULL, name TEXT NOT NULL, extra BYTEA
	)`,
	`CREATE INDEX IF NOT EXISTS messages_log ON messages (kind, user_id, agent_id, run_id, seq)`,
}

// create makes schema and tables if they are missing; several processes may do so at a time.
func (b *Backend) create(ctx context.Context) error {
	return b.change(ctx, func(t *sqlstore.Tx) error {
		if _, err := t.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{b.schema}.Sanitize()); err != nil {
			return err
		}
		for _, statement := range tables {
			if _, err := t.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%.40s: %w", statement, err)
			}
		}
		return nil
	})
}
