package membench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.db")
	target := Target{Store: "sqlite", Embedder: embed.NewHashed(0), Name: "hashed", Open: func(ctx context.Context) (memory.Backend, error) {
		return sqlite.Open(ctx, file, sqlite.Options{Relaxed: true})
	}}
	var steps []string
	got, err := Load(t.Context(), target, LoadOptions{
		Memories: 300, Writers: 2, Searches: 10, Adds: 3,
		Size: func() (n int64, err error) {
			files, err := filepath.Glob(file + "*") // and the log
			for _, name := range files {
				info, err := os.Stat(name)
				if err != nil {
					return 0, err
				}
				n += info.Size()
			}
			return n, err
		},
		Progress: func(step string) { steps = append(steps, step) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Search.Count != 10 || got.Add.Count != 3 || got.SearchBusy.Count != 10 || got.AddBusy.Count < 2 || got.Disk < 300*384*4 ||
		len(steps) != 4 {
		t.Errorf("%+v, steps %q", got, steps)
	}
	var out strings.Builder
	if err := got.Write(&out); err != nil || !strings.Contains(out.String(), "search, 2 writers") ||
		!strings.Contains(out.String(), "random directions") {
		t.Errorf("%v: %s", err, out.String())
	}
	backend, err := target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(backend, memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := store.GetAll(t.Context(), loadScope, memory.ListOptions{})
	if err != nil || len(all) != 300+3+got.AddBusy.Count {
		t.Errorf("%d memories, %v", len(all), err)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(t.Context(), Target{}, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "memories 0") {
		t.Errorf("got %v", err)
	}
}
