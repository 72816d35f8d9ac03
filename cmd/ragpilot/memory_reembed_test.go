package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// storeWith opens a SQLite store; the test closes it.
func storeWith(t *testing.T, path string, e embed.Embedder) *memory.Local {
	t.Helper()
	backend, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(backend, memory.Config{Embedder: e})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// stored makes a store with so many memories, which hashed vectors find.
func stored(t *testing.T, path string, n int) {
	t.Helper()
	store := storeWith(t, path, embed.NewHashed(64))
	var said []memory.Message
	for i := range n {
		said = append(said, memory.Message{Role: memory.User, Content: fmt.Sprintf("Ana has %d bees.", i)})
	}
	if _, err := store.Add(t.Context(), memory.Scope{User: "ana"}, said, memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// fakeEmbeddings is a fake server of embeddings: hashed vectors of 32 dimensions. It fails from its request number fails on, if that
// is not 0.
func fakeEmbeddings(t *testing.T, fails int) string {
	t.Helper()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; fails > 0 && requests >= fails {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		vectors, err := embed.NewHashed(32).EmbedDocuments(r.Context(), in.Input)
		if err != nil {
			t.Error(err)
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		data := make([]item, len(vectors))
		for i, v := range vectors {
			data[i] = item{i, v}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Every store of a folder is brought to the embedder, and once more has nothing to do. A file that is no store is an error that
// keeps no other from it.
func TestMemoryReembed(t *testing.T) {
	dir := t.TempDir()
	a, b, broken := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db"), filepath.Join(dir, "broken.db")
	stored(t, a, 3)
	stored(t, b, 600)
	reembed := func(path string) (out, notes string, err error) {
		t.Helper()
		return runErr(t, "memory", "reembed", path, "--embedder", fakeEmbeddings(t, 0), "--embedder-model", "fake")
	}
	out, notes, err := reembed(dir)
	if err != nil || out != a+": 3 memories, 3 embedded now; embedder fake\n"+b+": 600 memories, 600 embedded now; embedder fake\n" ||
		notes != b+": 512 memories embedded\n" {
		t.Fatalf("%v\n%s%s", err, out, notes)
	}
	if err := os.WriteFile(broken, []byte("no database, and long enough to be seen as none"), 0o600); err != nil {
		t.Fatal(err)
	}
	stored(t, filepath.Join(dir, "c.db"), 1)
	out, _, err = reembed(dir)
	if err == nil || !strings.Contains(err.Error(), broken) || !strings.Contains(out, "c.db: 1 memories, 1 embedded now") ||
		!strings.Contains(out, b+": 600 memories, 0 embedded now") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What ends in the midst goes on from there: nothing is embedded twice.
func TestMemoryReembedGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memories.db")
	stored(t, file, 200)
	// The first request asks for the dimensions, and there is one for each 64 memories.
	_, _, err := runErr(t, "memory", "reembed", file, "--embedder", fakeEmbeddings(t, 4), "--embedder-model", "fake")
	if err == nil || !strings.Contains(err.Error(), "128 memories were embedded, and the same command goes on from there") {
		t.Fatalf("%v", err)
	}
	out, _, err := runErr(t, "memory", "reembed", file, "--embedder", fakeEmbeddings(t, 0), "--embedder-model", "fake")
	if err != nil || out != file+": 200 memories, 72 embedded now; embedder fake\n" {
		t.Errorf("%v\n%s", err, out)
	}
	// Without vectors any embedder may make the first ones.
	if out, _, err = runErr(t, "memory", "reembed", file, "--embedder", "lexical"); err != nil ||
		out != file+": 200 memories, 0 embedded now; embedder lexical\n" {
		t.Errorf("%v\n%s", err, out)
	}
	store := storeWith(t, file, embed.NewHashed(64))
	if n, err := store.Fill(t.Context()); n != 200 || err != nil {
		t.Errorf("after lexical %d memories lack vectors, %v; want 200", n, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryReembedErrors(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "memories.db"), filepath.Join(dir, "missing")
	stored(t, file, 1)
	for want, args := range map[string][]string{
		"no such file or directory":                     {missing},
		`no store of memories (*.db) in it`:             {t.TempDir()},
		`--embedder "hashed": want auto, minilm`:        {file, "--embedder", "hashed"},
		"--embedder-model: want the name of the server": {file, "--embedder", "http://127.0.0.1:1"},
		"does not have the sentence model":              {file, "--embedder", "minilm:" + missing},
		"search by words (memory.Lexical":               {file, "--embedder", "minilm:" + missing},
		"accepts 1 arg(s), received 0":                  {},
		"the same command goes on from there":           {file, "--embedder", "http://127.0.0.1:1", "--embedder-model", "m"},
	} {
		if _, _, err := runErr(t, append([]string{"memory", "reembed"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a store was made")
	}
	store := storeWith(t, file, embed.NewHashed(64))
	defer store.Close()
	if hits, err := store.Search(t.Context(), memory.Scope{User: "ana"}, "bees", 1, memory.SearchOptions{}); err != nil || len(hits) != 1 ||
		hits[0].Semantic == 0 {
		t.Errorf("after errors: %+v, %v", hits, err)
	}
}
