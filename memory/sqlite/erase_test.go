package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/internal/sqlstore"
)

// secret returns a text with words that occur nowhere else.
func secret(i int) (text, word string) {
	word = fmt.Sprintf("zq%dxv%dkj", i, i*7919)
	return "The password is " + word + " and was given on a Tuesday.", word
}

// traces counts in which of the store's files a byte string still stands.
func traces(t *testing.T, path string, what []byte) (where []string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		raw, err := os.ReadFile(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, what) {
			where = append(where, filepath.Base(path)+suffix)
		}
	}
	return where
}

// A deleted memory leaves nothing in the file or its log, while the store is open: text and vector.
func TestDeletedIsGone(t *testing.T) {
	testkit.NotUnderRace(t) // one goroutine, and SQLite in Go is slow under the detector
	path := filepath.Join(t.TempDir(), "memories.db")
	store := open(t, path)
	defer store.Close()
	scope := memory.Scope{User: "ana"}
	random := rand.New(rand.NewPCG(1, 2))
	const n = 400
	ids := make([]string, n)
	for i := range n { // some long enough for pages of their own
		text, _ := secret(i)
		ids[i] = mustAdd(t, store, scope, text+strings.Repeat(" padding", random.IntN(900)*(i%2)))[0].ID
	}
	_, word := secret(7)
	if len(traces(t, path, []byte(word))) == 0 {
		t.Fatal("a stored text is not found in the files: the test cannot see anything")
	}
	updated := "now the word is changed"
	if _, err := store.Update(t.Context(), ids[7], memory.Update{Text: &updated}); err != nil {
		t.Fatal(err)
	}
	deleted := map[int]bool{7: true}
	for i := range n {
		if random.IntN(2) == 0 {
			deleted[i] = true
		}
	}
	for i := range deleted {
		if err := store.Delete(t.Context(), ids[i], memory.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		_, word := secret(i)
		if where := traces(t, path, []byte(word)); deleted[i] && len(where) > 0 {
			t.Errorf("deleted memory %d still stands in %q", i, where)
		} else if !deleted[i] && len(where) == 0 {
			t.Errorf("kept memory %d stands nowhere", i)
		}
	}
	if n, err := store.DeleteAll(t.Context(), scope, memory.DeleteOptions{}); err != nil || n != len(ids)-len(deleted) {
		t.Errorf("DeleteAll = %d, %v", n, err)
	}
	for i := range n {
		text, word := secret(i)
		vectors, err := embed.NewHashed(0).EmbedDocuments(t.Context(), []string{text})
		if err != nil {
			t.Fatal(err)
		}
		for name, what := range map[string][]byte{"word": []byte(word), "vector": sqlstore.EncodeVector(vectors[0])[:64]} {
			if where := traces(t, path, what); len(where) > 0 && !bytes.Equal(what, make([]byte, 64)) {
				t.Errorf("after DeleteAll the %s of %d stands in %q", name, i, where)
			}
		}
	}
}
