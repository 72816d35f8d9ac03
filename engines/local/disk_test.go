package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
)

// larger writes a model that reads 1024 tokens. Computing a block takes a millisecond or more, so that loading it is faster on
// a machine with other work, too.
func larger(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "larger.gguf")
	if err := tinymodel.Write(path, tinymodel.Options{Seed: 3, Context: 1024, Hidden: 256, FFN: 1024}); err != nil {
		t.Fatal(err)
	}
	return path
}

// long writes a model that reads 1024 tokens, and computes a block in no time.
func long(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "long.gguf")
	if err := localtest.WriteModel(path, 3); err != nil {
		t.Fatal(err)
	}
	return path
}

// A chat that goes on in another process computes what is new, and the answers are those of one process, bit for bit.
func TestChatOverARestart(t *testing.T) {
	model, dir := larger(t), t.TempDir()
	begin := func(dir string) *local.Engine { return open(t, 200, local.Config{Model: model, CacheDir: dir}) }
	with, without := begin(dir), begin("")
	chat := []engines.Message{{Role: engines.System, Content: text(7, 400)}}
	known := 0 // tokens of the turn before, with its answer
	for turn := range 10 {
		chat = append(chat, engines.Message{Role: engines.User, Content: text(turn, 20)})
		if turn == 5 {
			if err := with.Close(); err != nil {
				t.Fatal(err)
			}
			with = begin(dir)
		}
		req := engines.Request{MaxTokens: 8, Extra: extra("ignore_eos", true), Messages: chat}
		before := with.Stats().PromptTokens
		got, want := generate(t, with, req), generate(t, without, req)
		if got.Text != want.Text {
			t.Errorf("turn %d: answer %q, without files %q", turn, got.Text, want.Text)
		}
		if got.Usage.CachedTokens != want.Usage.CachedTokens {
			t.Errorf(
				"turn %d: %d of %d tokens cached, in one process %d",
				turn,
				got.Usage.CachedTokens,
				got.Usage.PromptTokens,
				want.Usage.CachedTokens,
			)
		}
		if computed, added := with.Stats().PromptTokens-before, int64(got.Usage.PromptTokens-known); turn > 0 && computed > added+31 {
			t.Errorf("turn %d: %d prompt tokens were computed, %d were new", turn, computed, added)
		}
		known = got.Usage.PromptTokens + got.Usage.OutputTokens
		chat = append(chat, engines.Message{Role: engines.Assistant, Content: got.Text})
	}
	if s := with.Stats(); s.LoadedBlocks < 25 || s.Disk.Read != s.LoadedBlocks || s.Disk.Damaged+s.Disk.Errors > 0 || !s.Disk.Writable {
		t.Errorf("%+v", s)
	}
}

// Contexts that memory has no room for come from files: each is computed once.
func TestMoreContextsThanMemory(t *testing.T) {
	model, dir := larger(t), t.TempDir()
	const contexts, blocks = 8, 60 // of 25 blocks each
	ask := func(e *local.Engine, n, question int) engines.Response {
		return generate(t, e, engines.Request{
			MaxTokens: 1, Extra: extra("ignore_eos", true),
			Messages: []engines.Message{{Role: engines.System, Content: text(n, 400)}, {Role: engines.User, Content: fmt.Sprint(question)}},
		})
	}
	e := open(t, blocks, local.Config{Model: model, CacheDir: dir})
	first := 0
	for n := range contexts {
		first += ask(e, n, 0).Usage.PromptTokens
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, blocks, local.Config{Model: model, CacheDir: dir})
	prompts := 0
	for i := range 60 {
		prompts += ask(e, i%contexts, 1+i).Usage.PromptTokens
	}
	s := e.Stats()
	if share := float64(s.PromptTokens) / float64(prompts); share > 0.1 || s.Evictions == 0 {
		t.Errorf("%.3f of the prompt tokens were computed (%d of %d; %d at first): %+v", share, s.PromptTokens, prompts, first, s)
	}
}

// The pilot learns that what memory gives up can be loaded.
func TestMovedToDisk(t *testing.T) {
	e := open(t, 40, local.Config{Model: long(t), CacheDir: t.TempDir()})
	moved := make(chan contextpilot.Event, 100)
	e.Subscribe(func(events ...contextpilot.Event) {
		for _, ev := range events {
			if ev.Kind == contextpilot.Moved || ev.Kind == contextpilot.Gone {
				moved <- ev
			}
		}
	})
	generate(t, e, ask("first", text(1, 300), 1))
	eventually(t, "the first prompt is in files", func() bool { return e.Stats().Disk.Written >= 18 })
	generate(t, e, ask("second", text(2, 500), 1))
	if ev := <-moved; ev.Kind != contextpilot.Moved || ev.Request != "first" || ev.Tier != local.DiskTier {
		t.Errorf("%+v", ev)
	}
}

// Salted requests leave nothing in files by default, and can be forgotten.
func TestForgetOnDisk(t *testing.T) {
	for _, salted := range []bool{false, true} {
		dir := t.TempDir()
		e := open(t, 60, local.Config{Model: long(t), CacheDir: dir, DiskSalted: salted})
		for _, salt := range []string{"one", "two"} {
			req := ask("", text(1, 200), 1)
			req.Extra = extra("ignore_eos", true, "cache_salt", salt)
			generate(t, e, req)
		}
		e.Close()
		blocks := func() int {
			all, err := local.InspectDisk(dir)
			if err != nil || len(all) != 1 || all[0].Damaged > 0 {
				t.Fatal(all, err)
			}
			return all[0].Blocks
		}
		if n := blocks(); (n > 0) != salted {
			t.Errorf("salted %v: %d blocks in files", salted, n)
		}
	}
}

// A folder that cannot be used is an error at once.
func TestBadCacheDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	model := tiny(t)
	for name, c := range map[string]local.Config{
		"CacheDir":       {CacheDir: filepath.Join(file, "x")},
		"DiskFormat":     {DiskFormat: "q4"},
		"DiskBytes -1":   {DiskBytes: -1},
		"10 bytes are":   {CacheDir: t.TempDir(), DiskBytes: 10},
		"want f32, f16 ": {DiskFormat: "F32"},
	} {
		c.Model = model
		e, err := local.Open(c)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q in %v", name, err)
		}
	}
	if _, err := local.InspectDisk(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A second engine reads what the first writes.
func TestTwoEnginesOneFolder(t *testing.T) {
	model, dir := larger(t), t.TempDir()
	first := open(t, 60, local.Config{Model: model, CacheDir: dir})
	want := generate(t, first, ask("", text(1, 300), 4))
	eventually(t, "the prompt is in files", func() bool { return first.Stats().Disk.Written >= 18 })
	second := open(t, 60, local.Config{Model: model, CacheDir: dir})
	got := generate(t, second, ask("", text(1, 300), 4))
	if s := second.Stats(); got.Text != want.Text || s.Disk.Writable || s.LoadedBlocks < 18 {
		t.Errorf("%q, want %q; %+v", got.Text, want.Text, s)
	}
	if err := second.Forget(""); err == nil {
		t.Error("a reader deleted files")
	}
	if err := first.Forget(""); err != nil || first.Stats().Disk.Blocks > 0 {
		t.Errorf("%v, %+v", err, first.Stats().Disk)
	}
	if _, err := second.Generate(context.Background(), ask("", text(1, 310), 4), nil); err != nil {
		t.Errorf("after the files are gone: %v", err)
	}
}

// killedAsk is one of the requests of TestEngineKilled: eight contexts of 25 blocks, with questions.
func killedAsk(n int) engines.Request {
	return engines.Request{
		MaxTokens: 4, Extra: extra("ignore_eos", true),
		Messages: []engines.Message{{Role: engines.System, Content: text(n%8, 400)}, {Role: engines.User, Content: fmt.Sprint(n % 5)}},
	}
}

// answerForever is the process that TestEngineKilled kills. Memory has room for two contexts, files for five: all is moved all the time.
func answerForever(model, dir string) {
	e, err := local.Open(local.Config{Model: model, CacheDir: dir, CacheBytes: 60 * pageBytes, DiskBytes: 125 * (pageBytes + 200)})
	if err != nil {
		panic(err)
	}
	for n, answers := rand.IntN(8), 1; ; n, answers = n+3, answers+1 {
		if _, err := e.Generate(context.Background(), killedAsk(n), nil); err != nil {
			panic(err)
		}
		if answers == 4 {
			fmt.Println("some blocks are in files by now")
		}
	}
}

// An engine that is killed while it loads and writes leaves nothing that changes a later answer.
func TestEngineKilled(t *testing.T) {
	times := 3
	if os.Getenv("RAGPILOT_FAULTS") == "1" {
		times = 100
	}
	model, dir := long(t), t.TempDir()
	var want []string
	plain := open(t, 60, local.Config{Model: model})
	for n := range 40 {
		want = append(want, generate(t, plain, killedAsk(n)).Text)
	}
	loaded := int64(0)
	for i := range times {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "LOCAL_KILLED_MODEL="+model, "LOCAL_KILLED_DIR="+dir)
		cmd.Stderr = os.Stderr
		said, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := said.Read(make([]byte, 1)); err != nil { // on a busy machine it would be killed before it has begun
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+rand.IntN(500)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		e, err := local.Open(local.Config{Model: model, CacheDir: dir, CacheBytes: 60 * pageBytes, DiskBytes: 125 * (pageBytes + 200)})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			n += i * 8
			if got := generate(t, e, killedAsk(n)).Text; got != want[n%40] {
				t.Errorf("killed %d times: answer %q, want %q", i+1, got, want[n%40])
			}
		}
		s := e.Stats()
		loaded += s.LoadedBlocks
		if s.Disk.Damaged > 0 || s.Disk.Errors > 0 {
			t.Errorf("killed %d times: %+v", i+1, s.Disk)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if loaded == 0 {
		t.Error("nothing was loaded")
	}
	t.Logf("killed %d times, %d blocks loaded after it", times, loaded)
}

// What memory has no room for is kept in the tier in front of files, or of none: each context is computed once.
func TestHostMemory(t *testing.T) {
	model := larger(t)
	ask := func(e *local.Engine, n, question int) engines.Response {
		return generate(t, e, engines.Request{
			MaxTokens: 4, Extra: extra("ignore_eos", true),
			Messages: []engines.Message{{Role: engines.System, Content: text(n, 400)}, {Role: engines.User, Content: fmt.Sprint(question)}},
		})
	}
	plain := open(t, 400, local.Config{Model: model})
	for name, dir := range map[string]string{"alone": "", "in front of files": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			e := open(t, 60, local.Config{Model: model, HostBytes: 200 << 20, CacheDir: dir})
			tiers := make(chan string, 1000)
			e.Subscribe(func(events ...contextpilot.Event) {
				for _, ev := range events {
					if ev.Kind == contextpilot.Moved {
						tiers <- ev.Tier
					}
				}
			})
			const contexts = 6
			for round := range 3 {
				for n := range contexts {
					got, want := ask(e, n, round), ask(plain, n, round)
					if got.Text != want.Text {
						t.Errorf("context %d: %q, want %q", n, got.Text, want.Text)
					}
					if round > 0 && got.Usage.CachedTokens < 380 {
						t.Errorf("context %d: %d tokens cached", n, got.Usage.CachedTokens)
					}
				}
			}
			if dir != "" {
				eventually(t, "blocks are in files", func() bool { return e.Stats().Disk.Written > 0 })
			}
			s := e.Stats()
			if s.Evictions == 0 || s.LoadedBlocks == 0 || s.HostBlocks < 25*contexts || (s.Disk.Written > 0) != (dir != "") {
				t.Errorf("%+v", s)
			}
			want := local.HostTier
			if dir != "" {
				want = local.DiskTier
			}
			if got := <-tiers; got != want {
				t.Errorf("moved to %q, want %q", got, want)
			}
			e.Clear()
			if s := e.Stats(); s.HostBlocks != 0 {
				t.Errorf("%d blocks are kept", s.HostBlocks)
			}
		})
	}
}
