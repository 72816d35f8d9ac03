package byname_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/byname"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/minilmtest"
	"github.com/ragpilot/ragpilot/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSetting(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "auto": "", "minilm": "", "minilm:/models/x": "", "lexical": "", "http://localhost:8080": "", "https://host/v1": "",
		"MiniLM":                byname.Want,
		"hashed":                byname.Want,
		"localhost:8080":        byname.Want,
		"ftp://host":            byname.Want,
		"minilm:":               "want minilm:DIR with a folder",
		"http://":               "is not the URL of a server",
		"http://h/%zz":          "is not the URL of a server",
		"https://u:secret@host": "must have no user: the key is a setting of its own",
		"http://host/v1?x=1":    "must have no query and no fragment",
		"http://host/v1#x":      "must have no query and no fragment",
	} {
		err := byname.Setting{Value: value}.Check()
		if got := message(err); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
		if want == "" {
			continue
		}
		if _, err := byname.Open(byname.Setting{Value: value}, byname.Options{}); !strings.HasSuffix(message(err), `": `+want) ||
			strings.Contains(message(err), "secret") {
			t.Errorf("%q is opened: %v", value, err)
		}
	}
	if _, err := byname.Open(byname.Setting{Value: "http://host"}, byname.Options{}); !errors.Is(err, byname.ErrModel) {
		t.Errorf("a server without the name of its model: %v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func open(t *testing.T, s byname.Setting, o byname.Options) (*byname.Source, *testkit.Log) {
	t.Helper()
	l := new(testkit.Log)
	o.Log = slog.New(slog.NewTextHandler(l, nil))
	src, err := byname.Open(s, o)
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
func TestReadyAtOnce(t *testing.T) {
	for value, want := range map[string]embed.Embedder{"lexical": memory.Lexical, "http://host": nil} {
		src, _ := open(t, byname.Setting{Value: value, Model: "m"}, byname.Options{})
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
func TestAutoWithoutModel(t *testing.T) {
	empty(t)
	src, _ := open(t, byname.Setting{}, byname.Options{Pip: slow})
	if err := src.Check(); !errors.Is(err, embed.ErrNotReady) {
		t.Errorf("before the time is over: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := src.Embedder().EmbedQuery(ctx, "ana"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that leaves: %v", err)
	}

	src, l := open(t, byname.Setting{Value: "auto"}, byname.Options{Pip: slow, Wait: time.Millisecond})
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

func arrived(s *byname.Source) bool {
	select {
	case <-s.Arrived():
		return true
	default:
		return false
	}
}

// A model that cannot be had is not waited for: with auto words serve at once, and with minilm nothing does until it is there.
func TestNoModel(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(minilm.FolderVariable, missing)
	src, l := open(t, byname.Setting{Value: "auto"}, byname.Options{Wait: time.Hour})
	until(t, "words serve", func() bool { return src.Check() == nil })
	until(t, "a warning", func() bool { return strings.Contains(l.String(), missing) })

	for _, value := range []string{"minilm", "minilm:" + missing} {
		src, l := open(t, byname.Setting{Value: value}, byname.Options{})
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
func TestModel(t *testing.T) {
	dir := minilmtest.Folder(t)
	t.Setenv(minilm.FolderVariable, dir)
	for _, value := range []string{"auto", "minilm", "minilm:" + dir} {
		src, l := open(t, byname.Setting{Value: value}, byname.Options{Wait: time.Minute})
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
