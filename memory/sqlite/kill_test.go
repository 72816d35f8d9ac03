//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// childFile names the environment variable that makes this program a writer that waits to be killed.
const childFile = "MEMORY_SQLITE_TEST_CHILD"

// child writes for ever: two memories at a time, every third pair replaced by a deletion of the pair before. It prints
// what was acknowledged.
func child(path string) {
	fail := func(err error) {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx := context.Background()
	backend, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		fail(err)
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		fail(err)
	}
	all, err := store.GetAll(ctx, memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil {
		fail(err)
	}
	var last []memory.Change
	for i := len(all); ; i++ {
		if i%3 == 2 && len(last) > 0 {
			id := last[0].ID
			fmt.Println("try delete", id)
			if err := store.Delete(ctx, id, memory.DeleteOptions{}); err != nil {
				fail(err)
			}
			fmt.Println("deleted", id)
			last = nil
			continue
		}
		if last, err = store.Add(ctx, memory.Scope{User: "ana"},
			said(fmt.Sprintf("left %d %d", os.Getpid(), i), fmt.Sprintf("right %d %d", os.Getpid(), i)),
			memory.AddOptions{}); err != nil {
			fail(err)
		}
		fmt.Println("added", last[0].ID, last[1].ID)
	}
}

// A process that is killed while it writes loses at most what it had not acknowledged; what was written together is there
// together; every memory has its history.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	testkit.NotUnderRace(t) // the processes have one goroutine each
	path := filepath.Join(t.TempDir(), "memories.db")
	live := map[string]bool{} // acknowledged
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 12 {
		doubtful := killOne(t, path, 1+random.IntN(25), live)
		check(t, path, round, live, doubtful)
	}
}

// killOne lets a child write, kills it after so many acknowledgements, and returns the ID whose deletion was begun.
func killOne(t *testing.T, path string, after int, live map[string]bool) (doubtful string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "added":
			live[words[1]], live[words[2]] = true, true
			acknowledged++
		case "try":
			doubtful = words[2]
			continue
		case "deleted":
			delete(live, words[1])
			doubtful = ""
			acknowledged++
		default:
			t.Errorf("the child says %q", in.Text())
		}
		if acknowledged == after { // SIGKILL; the lines that the child wrote before it died are still read
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	if acknowledged < after {
		t.Fatalf("the child ended after %d of %d acknowledgements", acknowledged, after)
	}
	return doubtful
}

func check(t *testing.T, path string, round int, live map[string]bool, doubtful string) {
	t.Helper()
	store := open(t, path)
	all, err := store.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have, pairs := map[string]bool{}, map[string]int{}
	unknown := 0
	for _, m := range all {
		have[m.ID] = true
		_, number, _ := strings.Cut(m.Text, " ")
		pairs[number]++
		if !live[m.ID] {
			unknown++
			live[m.ID] = true
		}
		if rows, err := store.History(t.Context(), m.ID); err != nil || len(rows) != 1 || rows[0].New != m.Text {
			t.Errorf("round %d: history %+v, %v", round, rows, err)
		}
		hits, err := store.Search(t.Context(), memory.Scope{User: "ana"}, m.Text, 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Memory.ID != m.ID {
			t.Errorf("round %d: %q does not find itself, %v", round, m.Text, err)
		}
	}
	if unknown != 0 && unknown != 2 {
		t.Errorf("round %d: %d memories that were not acknowledged, want none or one change of two", round, unknown)
	}
	for id := range live {
		switch {
		case have[id]:
		case id == doubtful:
			delete(live, id)
		default:
			t.Errorf("round %d: acknowledged memory %s is lost", round, id)
		}
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	integrity(t, path)
}

// integrity asks SQLite to check the file.
func integrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity %q, %v", verdict, err)
	}
}
