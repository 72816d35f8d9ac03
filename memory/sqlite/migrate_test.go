package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/memory"
)

// A file of version 1, which had no entities, is read and written.
func TestOlderFile(t *testing.T) {
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
	for _, statement := range []string{"ALTER TABLE memories DROP COLUMN entities", "PRAGMA user_version = 1"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store = open(t, path)
	defer store.Close()
	mustAdd(t, store, scope, "Moves to Bergen.")
	for query, want := range map[string]float64{"what of Oslo?": 0, "what of Bergen?": 0.5} {
		hits, err := store.Search(t.Context(), scope, query, 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Entity != want {
			t.Errorf("%s: %+v, %v; want boost %v", query, hits, err, want)
		}
	}
}
