package qdrant_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/memorytest"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

var ana = memory.Scope{User: "ana"}

func said(texts ...string) []memory.Message {
	messages := make([]memory.Message, len(texts))
	for i, text := range texts {
		messages[i] = memory.Message{Role: memory.User, Content: text}
	}
	return messages
}

// TestMain asks for fewer random checks than usual: each step of each is some requests to a server.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// name returns the name of a store that only this test uses and that is dropped after it.
func name(t *testing.T, addr string) string {
	t.Helper()
	name := "ragpilot-test-memory-" + strings.ToLower(rand.Text())
	client := dial(t, addr)
	t.Cleanup(func() {
		ctx := context.Background() // that of the test has ended
		all, err := client.ListCollections(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, c := range all {
			if strings.HasPrefix(c, name) {
				if err := client.DeleteCollection(ctx, c); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return name
}

func TestConformance(t *testing.T) {
	addr := storetest.Qdrant(t)
	memorytest.RunBackend(t, func(t *testing.T) memory.Backend {
		// Texts of 10 MiB take their time on a machine that is busy.
		backend, err := qdrant.Open(t.Context(), qdrant.Options{Addr: addr, Collection: name(t, addr), Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return backend
	})
}

// open opens the store of that name as another process does.
func open(t testing.TB, opts qdrant.Options) *qdrant.Backend {
	t.Helper()
	return testkit.Opened[*qdrant.Backend](t)(qdrant.Open(t.Context(), opts))
}

// Two processes with one name are two backends with one name: what both add is stored once, and no change is lost.
func TestShared(t *testing.T) {
	addr := storetest.Qdrant(t)
	shared := name(t, addr)
	const processes, changes = 3, 8
	var group sync.WaitGroup
	for range processes {
		backend := open(t, qdrant.Options{Addr: addr, Collection: shared})
		store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for range changes {
				if _, err := store.Add(t.Context(), ana, said("the same"), memory.AddOptions{}); err != nil {
					t.Error(err)
				}
				if err := store.AppendMessages(t.Context(), ana, said("one more")...); err != nil {
					t.Error(err)
				}
				if _, err := store.Search(t.Context(), ana, "the same", 1, memory.SearchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	store, err := memory.New(open(t, qdrant.Options{Addr: addr, Collection: shared}), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.GetAll(t.Context(), ana, memory.ListOptions{})
	if err != nil || len(all) != 1 {
		t.Errorf("%d memories, %v; want 1", len(all), err)
	}
	messages, err := store.Messages(t.Context(), ana, 0)
	if err != nil || len(messages) != processes*changes {
		t.Errorf("%d messages, %v; want %d", len(messages), err, processes*changes)
	}
}

// A transaction that another process overtakes runs again on what is there then.
func TestOvertaken(t *testing.T) {
	addr := storetest.Qdrant(t)
	shared := name(t, addr)
	a, b := open(t, qdrant.Options{Addr: addr, Collection: shared}), open(t, qdrant.Options{Addr: addr, Collection: shared})
	log := memory.Log{Scope: ana, Kind: "k"}
	runs := 0
	err := a.Change(t.Context(), func(tx memory.Tx) error {
		if runs++; runs == 1 {
			if err := b.Change(t.Context(), func(tx memory.Tx) error { return tx.AppendMessages(t.Context(), log, said("b"), 0) }); err != nil {
				t.Error(err)
			}
		}
		return tx.AppendMessages(t.Context(), log, said("a"), 0)
	})
	if err != nil || runs != 2 {
		t.Fatalf("%d runs, %v; want 2", runs, err)
	}
	messages, err := b.Messages(t.Context(), log, 0)
	if err != nil || len(messages) != 2 || messages[0].Content != "b" || messages[1].Content != "a" {
		t.Errorf("%+v, %v; want b, then a", messages, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for field, opts := range map[string]qdrant.Options{
		"Addr":            {Addr: "nowhere"},
		"Collection":      {Collection: " "},
		"Attempts":        {Attempts: -1},
		"MaxMessageBytes": {MaxMessageBytes: -1},
		"Client":          {Client: new(api.Client), APIKey: "secret"},
	} {
		backend, err := qdrant.Open(t.Context(), opts)
		if err == nil {
			_ = backend.Close()
			t.Fatalf("%s: opened", field)
		}
		if !strings.Contains(err.Error(), "Options."+field) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := qdrant.Open(t.Context(), qdrant.Options{Addr: "127.0.0.1:1", Attempts: 1})
	if !errors.Is(err, qdrant.ErrUnavailable) {
		t.Errorf("nobody there: %v, want ErrUnavailable", err)
	}
}
