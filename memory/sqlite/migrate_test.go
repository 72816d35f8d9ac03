package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// toOlder brings a file back to the form of version 2, and of version 1.
var toOlder = []struct {
	version    int
	statements []string
}{
	{2, []string{
		"DROP INDEX memories_version", "DROP INDEX memories_unembedded", "DROP TABLE removed", "DROP TABLE state",
		"ALTER TABLE memories DROP COLUMN version", "ALTER TABLE memories ADD COLUMN terms INTEGER NOT NULL DEFAULT 0",
		"CREATE VIRTUAL TABLE lexicon USING fts5 (terms, tokenize = 'ascii')", "PRAGMA user_version = 2",
	}},
	{1, []string{"ALTER TABLE memories DROP COLUMN entities", "PRAGMA user_version = 1"}},
}

// Files of versions 1, which had no entities, and 2, which had a full-text index, are read and written.
func TestOlderFile(t *testing.T) {
	for _, oldest := range toOlder {
		path := filepath.Join(t.TempDir(), "memories.db")
		store := open(t, path)
		scope := memory.Scope{User: "ana"}
		mustAdd(t, store, scope, "Lives in Oslo.")
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range toOlder {
			if step.version < oldest.version {
				break
			}
			for _, statement := range step.statements {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		store = open(t, path)
		defer store.Close()
		mustAdd(t, store, scope, "Moves to Bergen.")
		boosts := map[string]float64{"what of Oslo?": 1, "what of Bergen?": 1}
		if oldest.version == 1 {
			boosts["what of Oslo?"] = 0
		}
		for query, want := range boosts {
			hits, err := store.Search(t.Context(), scope, query, 1, memory.SearchOptions{})
			if err != nil || len(hits) != 1 || hits[0].Entity != want {
				t.Errorf("version %d, %s: %+v, %v; want boost %v", oldest.version, query, hits, err, want)
			}
		}
	}
}

// A database of another program is refused and left as it is.
func TestNotMemories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE songs (title TEXT)"); err != nil {
		t.Fatal(err)
	}
	backend, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil {
		t.Fatal("opened", backend.Close())
	}
	if want := "a database of something else than memories"; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want %s and the file", err, want)
	}
	var tables int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v; want 1", tables, err)
	}
}
