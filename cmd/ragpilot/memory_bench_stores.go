package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/embed/openai"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/inmem"
	"github.com/ragpilot/ragpilot/memory/postgres"
	"github.com/ragpilot/ragpilot/memory/qdrant"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// benchName is what the benchmark's tables and collections are called on servers.
const benchName = "ragpilot_memory_bench"

// storeName returns which kind of store a flag's value names; "" for none.
func storeName(value string) string {
	kind, _, url := strings.Cut(value, "://")
	switch {
	case url && (kind == "postgres" || kind == "postgresql"):
		return "postgres"
	case url && kind == "qdrant":
		return "qdrant"
	case !url && (value == "inmem" || value == "sqlite"):
		return value
	}
	return ""
}

// openSQLite opens a file in the folder.
func openSQLite(ctx context.Context, dir string) (memory.Backend, error) {
	return sqlite.Open(ctx, filepath.Join(dir, "memories.db"), sqlite.Options{})
}

// openStore opens a store other than SQLite's, empties it, and has it empty itself when it is closed.
func openStore(ctx context.Context, value string) (memory.Backend, error) {
	var backend memory.Backend
	var err error
	switch storeName(value) {
	case "inmem":
		return inmem.New(), nil
	case "postgres":
		backend, err = postgres.Open(ctx, value, postgres.Options{Schema: benchName})
	default:
		backend, err = qdrant.Open(ctx, qdrant.Options{Addr: strings.TrimPrefix(value, "qdrant://"), Collection: benchName})
	}
	if err != nil {
		return nil, err
	}
	if err := backend.Reset(ctx); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	return emptied{backend}, nil
}

// emptied is a backend that is emptied in the end.
type emptied struct{ memory.Backend }

// Close empties and closes it.
func (e emptied) Close() error {
	return errors.Join(e.Reset(context.Background()), e.Backend.Close())
}

// namedEmbedder is an embedder under the name of the command line.
type namedEmbedder struct {
	name     string
	embedder embed.Embedder
}

// openEmbedder opens what --embedder names. MiniLM is fetched unless it is there.
func openEmbedder(ctx context.Context, value, model, key string, progress io.Writer) (namedEmbedder, error) {
	kind, dir, _ := strings.Cut(value, ":")
	switch {
	case value == "lexical":
		return namedEmbedder{value, memory.Lexical}, nil
	case kind == "minilm" && (dir != "" || value == "minilm"):
		if dir == "" {
			dir = os.Getenv("RAGPILOT_MINILM")
		}
		if dir == "" {
			var err error
			fmt.Fprintln(progress, "embedder minilm: looking for the model, fetching it unless it is there")
			if dir, err = minilm.Pull(ctx, minilm.PullOptions{}); err != nil {
				return namedEmbedder{}, fmt.Errorf("%w; --embedder lexical needs no model, minilm:DIR takes one from a folder", err)
			}
		}
		m, err := minilm.Open(dir)
		return namedEmbedder{"minilm", m}, err
	case kind == "http" || kind == "https":
		e, err := openai.New(openai.Options{URL: value, Model: model, Key: key})
		name := model
		if name == "" {
			name = "server"
		}
		return namedEmbedder{name, e}, err
	}
	return namedEmbedder{}, errors.New("want minilm, minilm:DIR, lexical or the URL of a server")
}
