package sidecar_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/memories"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/minilmtest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// status asks and returns the status with what the client reads of it.
func status(t *testing.T, method, address, body string) string {
	t.Helper()
	r := request(t, method, address, body)
	return fmt.Sprintf("%d %s%s", r.code, r.header.Get("Retry-After"), r.text)
}

// embedding starts a server with an embedder, which keeps its memories in a new folder.
func embedding(t *testing.T, value string) live {
	t.Helper()
	return embeddingIn(t, t.TempDir(), value, slog.DiscardHandler)
}

// embeddingIn does so in a folder that may have memories.
func embeddingIn(t *testing.T, dir, value string, log slog.Handler) live {
	t.Helper()
	return newTenants(t, sidecar.Options{Log: slog.New(log)}, func(c *settings.Config) { c.Memory.Dir, c.Memory.Embedder = dir, value })
}

// Without a model the routes of memories answer 503, in each form, and all others go on; a tenant can be forgotten.
func TestMemoriesNotReady(t *testing.T) {
	l := embedding(t, "minilm:"+filepath.Join(t.TempDir(), "missing"))
	const want = `503 1{"detail":"The sentence model of the memories is not ready: ask again"}` + "\n"
	for _, request := range [][3]string{
		{http.MethodPost, "/v1/memories/", `{"messages":"Ana keeps bees.","user_id":"ana"}`},
		{http.MethodPost, "/mem0/memories", `{"messages":"Ana keeps bees.","user_id":"ana"}`},
		{http.MethodGet, "/memories?user_id=ana", ""},
		{http.MethodPost, "/search", `{"query":"bees","user_id":"ana"}`},
		{http.MethodPost, "/v3/memories/search/", `{"query":"bees","user_id":"ana"}`},
	} {
		if got := status(t, request[0], l.front.URL+request[1], request[2]); got != want {
			t.Errorf("%s %s: %s, want %s", request[0], request[1], got, want)
		}
	}
	if got := status(t, http.MethodPost, l.front.URL+"/reorder", `{"contexts":[["a","b"],["b","a"]]}`); !strings.HasPrefix(got, "200 ") {
		t.Errorf("/reorder: %s", got)
	}
	if got := status(t, http.MethodPost, l.admin.URL+"/forget?tenant=a", ""); strings.HasPrefix(got, "503") {
		t.Errorf("/forget: %s", got)
	}
}

// Auto serves without a model that cannot be had: what is added then is found by its words, and given vectors when there is one.
func TestMemoriesWithoutModel(t *testing.T) {
	t.Setenv(minilm.FolderVariable, filepath.Join(t.TempDir(), "missing"))
	dir := t.TempDir()
	l := embeddingIn(t, dir, "auto", slog.DiscardHandler)
	waitServed(t, l)
	bees := func(s memory.Store) memory.Hit {
		t.Helper()
		hits, err := s.Search(t.Context(), ana, "bees", 1, memory.SearchOptions{})
		if err != nil || len(hits) != 1 || hits[0].Memory.Text != "Ana keeps bees." {
			t.Fatalf("%+v, %v", hits, err)
		}
		return hits[0]
	}
	s := memoriesOf(t, l, "")
	remember(t, s, "Ana keeps bees.")
	bees(s)

	// This server's model never comes: a store of its own on the server's file has one that does.
	backend, err := sqlite.Open(t.Context(), filepath.Join(dir, memories.FileOf("")), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &lateEmbedder{Embedder: embed.NewHashed(64)}
	late, err := memory.New(backend, memory.Config{Embedder: e})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if n, err := late.Fill(t.Context()); n != 0 || err != nil {
		t.Errorf("before the model is there: %d, %v", n, err)
	}
	e.arrived = true
	if n, err := late.Fill(t.Context()); n != 1 || err != nil {
		t.Errorf("when the model is there: %d, %v", n, err)
	}
	if hit := bees(late); hit.Semantic == 0 {
		t.Errorf("found without its vector: %+v", hit)
	}
}

// lateEmbedder is a fake embedder that is not ready until it has arrived.
type lateEmbedder struct {
	embed.Embedder
	arrived bool
}

func (e *lateEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if !e.arrived {
		return nil, embed.ErrNotReady
	}
	return e.Embedder.EmbedDocuments(ctx, texts)
}

func (e *lateEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if !e.arrived {
		return nil, embed.ErrNotReady
	}
	return e.Embedder.EmbedQuery(ctx, text)
}

// What a server does whose embedder is not the one that made the vectors: with auto it finds by words and says so in its log once, and
// with a model that is named it answers what the operator can do.
func TestMemoriesOfAnotherEmbedder(t *testing.T) {
	minilmtest.Folder(t)
	dir := t.TempDir()
	backend, err := sqlite.Open(t.Context(), filepath.Join(dir, memories.FileOf("")), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := memory.New(backend, memory.Config{Embedder: embed.NewHashed(384)})
	if err != nil {
		t.Fatal(err)
	}
	remember(t, before, "Ana keeps bees.")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	log := new(testkit.Log)
	auto := embeddingIn(t, dir, "auto", slog.NewTextHandler(log, nil))
	waitServed(t, auto) // by words, if the model takes longer than 10 s
	await(t, "the model", func() bool { return strings.Contains(log.String(), "the sentence model of memories is ready") })
	s := memoriesOf(t, auto, "")
	remember(t, s, "Ana has a cat.")
	for range 2 {
		if found := recall(t, s); len(found) == 0 || found[0] != "Ana keeps bees." {
			t.Errorf("found %q", found)
		}
	}
	if got := log.String(); strings.Count(got, "ragpilot memory reembed") != 1 || !strings.Contains(got, "level=WARN") {
		t.Errorf("logged: %s", got)
	}

	named := embeddingIn(t, dir, "minilm", slog.DiscardHandler)
	waitServed(t, named)
	got := status(t, http.MethodPost, named.front.URL+"/search", `{"query":"bees","user_id":"ana"}`)
	if !strings.HasPrefix(got, "500 {") || !strings.Contains(got, "ragpilot memory reembed") {
		t.Errorf("a search is answered %s", got)
	}
}

// waitServed waits until memories are listed.
func waitServed(t *testing.T, l live) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := status(t, http.MethodGet, l.front.URL+"/memories?user_id=ana", "")
		if strings.HasPrefix(got, "200 ") {
			return
		}
		if !strings.HasPrefix(got, "503 1") || time.Now().After(end) {
			t.Fatal(got)
		}
	}
}

// With no option set, the real model finds what is asked in other words.
func TestMemoriesByMeaning(t *testing.T) {
	minilmtest.Folder(t)
	l := embedding(t, settings.Default().Memory.Embedder)
	waitServed(t, l)
	for _, fact := range []string{
		"Ana drives an old Volvo.", "Ana's travel document expires in May.", "Ana is allergic to peanuts.",
		"Ana needs new tyres.",
	} {
		if got := status(t, http.MethodPost, l.front.URL+"/memories", fmt.Sprintf(`{"messages":%q,"user_id":"ana"}`, fact)); !strings.HasPrefix(
			got,
			"200 ",
		) {
			t.Fatal(got)
		}
	}
	got := ""
	// By words, if the model takes longer than 10 s.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		got = status(t, http.MethodPost, l.front.URL+"/search", `{"query":"When do I need a new passport?","user_id":"ana","top_k":1}`)
		if strings.Contains(got, "travel document") {
			return
		}
	}
	t.Errorf("found %s", got)
}
