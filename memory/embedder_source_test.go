package memory_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/minilmtest"
	"github.com/ragpilot/ragpilot/memory"
)

func TestEmbedderSetting(t *testing.T) {
	const want = "want auto, minilm, minilm:DIR, lexical, or the http or https URL of a server"
	for value, want := range map[string]string{
		"": "", "auto": "", "minilm": "", "minilm:/models/x": "", "lexical": "", "http://localhost:8080": "", "https://host/v1": "",
		"MiniLM":                want,
		"hashed":                want,
		"localhost:8080":        want,
		"ftp://host":            want,
		"minilm:":               "want minilm:DIR with a folder",
		"http://":               "is not the URL of a server",
		"http://h/%zz":          "is not the URL of a server",
		"https://u:secret@host": "must have no user: the key is a setting of its own",
		"http://host/v1?x=1":    "must have no query and no fragment",
		"http://host/v1#x":      "must have no query and no fragment",
	} {
		err := memory.EmbedderSetting{Value: value}.Check()
		if got := errorText(err); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
		if want == "" {
			continue
		}
		if _, err := memory.OpenEmbedder(memory.EmbedderSetting{Value: value}, memory.EmbedderOptions{}); !strings.HasSuffix(errorText(err), `": `+want) ||
			strings.Contains(errorText(err), "secret") {
			t.Errorf("%q is opened: %v", value, err)
		}
	}
	_, err := memory.OpenEmbedder(memory.EmbedderSetting{Value: "http://host"}, memory.EmbedderOptions{})
	if !errors.Is(err, memory.ErrNoEmbedderModel) {
		t.Errorf("a server without the name of its model: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func openEmbedder(t *testing.T, s memory.EmbedderSetting, o memory.EmbedderOptions) (*memory.EmbedderSource, *testkit.Log) {
	t.Helper()
	l := new(testkit.Log)
	o.Log = slog.New(slog.NewTextHandler(l, nil))
	src, err := memory.OpenEmbedder(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src, l
}

// What needs no model in this process is ready at once.
func TestEmbedderReadyAtOnce(t *testing.T) {
	for value, want := range map[string]embed.Embedder{"lexical": memory.Lexical, "http://host": nil} {
		src, _ := openEmbedder(t, memory.EmbedderSetting{Value: value, Model: "m"}, memory.EmbedderOptions{})
		if err := src.Check(); err != nil || src.Arrived() != nil {
			t.Errorf("%s: %v", value, err)
		}
		if want != nil && src.Embedder() != want {
			t.Errorf("%s is %v", value, src.Embedder())
		}
		if want == nil && embed.NameOf(src.Embedder()) != "m" {
			t.Errorf("%s: the server's model is %q", value, embed.NameOf(src.Embedder()))
		}
	}
}

// slow is a command in place of pip that never ends.
var slow = []string{"sh", "-c", "exec sleep 600"}

// empty makes the cache folder empty, so that a model has to be fetched.
func empty(t *testing.T) {
	t.Helper()
	t.Setenv(minilm.FolderVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// until waits for a condition that another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

// While the model is being fetched nothing is served. With auto words serve after a while, which is logged once; a caller
// that asks then is not kept waiting. The name is the model's all the time.
func TestAutoEmbedderWithoutModel(t *testing.T) {
	empty(t)
	src, _ := openEmbedder(t, memory.EmbedderSetting{}, memory.EmbedderOptions{Pip: slow})
	if err := src.Check(); !errors.Is(err, embed.ErrNotReady) {
		t.Errorf("before the time is over: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := src.Embedder().EmbedQuery(ctx, "ana"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that leaves: %v", err)
	}

	src, l := openEmbedder(t, memory.EmbedderSetting{Value: "auto"}, memory.EmbedderOptions{Pip: slow, Wait: time.Millisecond})
	if _, err := src.Embedder().EmbedDocuments(t.Context(), []string{"ana"}); !errors.Is(err, embed.ErrNotReady) {
		t.Errorf("a caller that waits: %v", err)
	}
	for range 3 {
		if err := src.Check(); err != nil {
			t.Errorf("when the time is over: %v", err)
		}
	}
	until(t, "a warning", func() bool { return strings.Contains(l.String(), "level=WARN") })
	if got := l.String(); strings.Count(got, "memories are found by words") != 1 || !strings.Contains(got, "it is not there after 1ms") {
		t.Errorf("logged: %s", got)
	}
	if name := embed.NameOf(src.Embedder()); name != "all-minilm-l6-v2-384" {
		t.Errorf("its name is %q", name)
	}
	if arrived(src) {
		t.Error("a model has arrived")
	}
}

func arrived(s *memory.EmbedderSource) bool {
	select {
	case <-s.Arrived():
		return true
	default:
		return false
	}
}

// A model that cannot be had is not waited for: with auto words serve at once, and with minilm nothing does until it is there.
func TestNoEmbedderModel(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(minilm.FolderVariable, missing)
	src, l := openEmbedder(t, memory.EmbedderSetting{Value: "auto"}, memory.EmbedderOptions{Wait: time.Hour})
	until(t, "words serve", func() bool { return src.Check() == nil })
	until(t, "a warning", func() bool { return strings.Contains(l.String(), missing) })

	for _, value := range []string{"minilm", "minilm:" + missing} {
		src, l := openEmbedder(t, memory.EmbedderSetting{Value: value}, memory.EmbedderOptions{})
		until(t, "an error is logged", func() bool { return strings.Contains(l.String(), "memories are not served until it is there") })
		if err := src.Check(); !errors.Is(err, embed.ErrNotReady) || !errors.Is(err, os.ErrNotExist) || src.Arrived() != nil {
			t.Errorf("%s: %v", value, err)
		}
		if _, err := src.Embedder().EmbedQuery(t.Context(), "ana"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s embeds: %v", value, err)
		}
	}
}

// The real model, where it is: ready soon, and from then on auto embeds with it.
func TestEmbedderModel(t *testing.T) {
	dir := minilmtest.Folder(t)
	t.Setenv(minilm.FolderVariable, dir)
	for _, value := range []string{"auto", "minilm", "minilm:" + dir} {
		src, l := openEmbedder(t, memory.EmbedderSetting{Value: value}, memory.EmbedderOptions{Wait: time.Minute})
		until(t, "ready", func() bool { return src.Check() == nil })
		if strings.Contains(l.String(), "no sentence model") {
			t.Fatalf("%s: logged: %s", value, l)
		}
		v, err := src.Embedder().EmbedQuery(t.Context(), "When do I need a new passport?")
		if err != nil || len(v) != 384 {
			t.Errorf("%s: %d dimensions, %v", value, len(v), err)
		}
		if value == "auto" {
			until(t, "it arrives", func() bool { return arrived(src) })
		}
		until(t, "it is logged", func() bool { return strings.Contains(l.String(), "is ready") })
		if strings.Contains(l.String(), "fetching") {
			t.Errorf("%s: logged: %s", value, l)
		}
	}
}
