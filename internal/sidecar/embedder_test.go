package sidecar_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/serve"
	"github.com/ragpilot/ragpilot/internal/sidecar"
)

// status asks and returns the status with what the client reads of it.
func status(t *testing.T, method, address, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s%s", resp.StatusCode, resp.Header.Get("Retry-After"), text)
}

// embedding starts a server with an embedder, which keeps its memories in a new folder.
func embedding(t *testing.T, value string) live {
	t.Helper()
	return newTenants(t, sidecar.Options{Log: slog.New(slog.DiscardHandler)}, func(c *serve.Config) { c.Memory.Dir, c.Memory.Embedder = t.TempDir(), value })
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

// Auto serves without a model that cannot be had.
func TestMemoriesWithoutModel(t *testing.T) {
	t.Setenv(minilm.FolderVariable, filepath.Join(t.TempDir(), "missing"))
	l := embedding(t, "auto")
	waitServed(t, l)
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
	if os.Getenv(minilm.FolderVariable) == "" {
		dir, err := minilm.DefaultDir()
		if err == nil {
			_, err = os.Stat(filepath.Join(dir, "model.safetensors"))
		}
		if err != nil {
			t.Skip("needs the sentence model, 83 MB: RAGPILOT_MINILM names its folder, and \"ragpilot model pull minilm\" fetches it")
		}
	}
	l := embedding(t, serve.Default().Memory.Embedder)
	waitServed(t, l)
	for _, fact := range []string{"Ana drives an old Volvo.", "Ana's travel document expires in May.", "Ana is allergic to peanuts.", "Ana needs new tyres."} {
		if got := status(t, http.MethodPost, l.front.URL+"/memories", fmt.Sprintf(`{"messages":%q,"user_id":"ana"}`, fact)); !strings.HasPrefix(got, "200 ") {
			t.Fatal(got)
		}
	}
	got := status(t, http.MethodPost, l.front.URL+"/search", `{"query":"When do I need a new passport?","user_id":"ana","top_k":1}`)
	if !strings.Contains(got, "travel document") {
		t.Errorf("found %s", got)
	}
}
