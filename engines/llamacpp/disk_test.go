package llamacpp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
)

// words returns n words that no other text has in common with this one.
func words(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s-%d ", name, i)
	}
	return b.String()
}

// diskFake returns a fake with a folder for its slots.
func diskFake(t *testing.T, traits traits) *fake {
	t.Helper()
	traits.slotDir = filepath.Join(t.TempDir(), "slots")
	traits.slots = max(traits.slots, 1)
	return startFake(t, traits)
}

// diskEngine returns an engine that uses it.
func (f *fake) diskEngine(change func(*llamacpp.Config)) (*llamacpp.Engine, *ledger) {
	f.t.Helper()
	return f.engine(func(c *llamacpp.Config) {
		c.SlotDir = f.traits.slotDir
		if change != nil {
			change(c)
		}
	})
}

// asks runs questions and returns the cached tokens of the last.
func asks(t *testing.T, engine *llamacpp.Engine, texts ...string) (cached int) {
	t.Helper()
	for _, text := range texts {
		cached = ask(t.Context(), t, engine, question(text[:min(8, len(text))], text)).Usage.CachedTokens
	}
	return cached
}

func wantDisk(t *testing.T, engine *llamacpp.Engine, want string) {
	t.Helper()
	info, err := engine.Info(t.Context())
	if err != nil || !strings.Contains(info.Disk, want) {
		t.Errorf("disk tier %q, error %v; want %q", info.Disk, err, want)
	}
}

// slotFiles returns the files of slots in a folder, with their notes' bytes left out.
func slotFiles(t testing.TB, dir string) (names []string, size int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.slot"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return names, size
}

// What a slot loses comes back from its file, also after restarts of both sides, and the predictions know it.
func TestDisk(t *testing.T) {
	f := diskFake(t, traits{})
	engine, l := f.diskEngine(nil)
	wantDisk(t, engine, "not tried yet")
	a, b := words("a", 100), words("b", 100)
	asks(t, engine, a)
	wantDisk(t, engine, "on")
	asks(t, engine, b)
	before, err := engine.Predict(t.Context(), question("p", a))
	if cached := asks(t, engine, a); cached != 101 || err != nil || before.Cached != cached || !before.Exact {
		t.Errorf("%d tokens cached, predicted %+v, error %v", cached, before, err)
	}
	if p := l.of(a[:8]); p.Cached != 101 || !p.Exact {
		t.Errorf("predicted %+v", p)
	}
	if s := engine.Stats().Disk; s.Saves != 2 || s.Restores != 1 || s.RestoredTokens != 101 || s.Refusals != 0 || s.Files != 2 ||
		s.Bytes != 206_000 {
		t.Errorf("stats %+v", s)
	}
	if got := l.count(contextpilot.Gone) + l.count(contextpilot.Shrunk); got != 2 {
		t.Errorf("%d losses, events %v", got, l.kinds)
	}
	for _, text := range []string{a, b} {
		if left, got := l.resident[text[:8]], f.left(text); got < left {
			t.Errorf("the events leave %d tokens of %s, the slot has %d", left, text[:8], got)
		}
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
	asks(t, engine, b)
	wantDisk(t, engine, "off: the engine was closed")
	if s := engine.Stats().Disk; s.Restores != 1 || s.Refusals != 0 {
		t.Errorf("after it was closed: %+v", s)
	}
	f.restart()
	engine, _ = f.diskEngine(nil)
	for _, text := range []string{a, b} {
		if cached := asks(t, engine, text); cached != 101 {
			t.Errorf("after the restart %d tokens are cached", cached)
		}
	}
	if names, _ := slotFiles(t, f.traits.slotDir); len(names) != 2 {
		t.Errorf("files %v", names)
	}
}

// A conversation's file is replaced by that of its next turns.
func TestDiskTurns(t *testing.T) {
	f := diskFake(t, traits{})
	engine, l := f.diskEngine(nil)
	var chats [3][]engines.Message
	for turn := range 4 {
		for i := range chats {
			text := words(fmt.Sprint(i, "-", turn), 60)
			chats[i] = append(chats[i], engines.Message{Role: engines.User, Content: text})
			req := engines.Request{ID: fmt.Sprint(i, turn), Messages: chats[i], MaxTokens: 3}
			response := ask(t.Context(), t, engine, req)
			chats[i] = append(chats[i], engines.Message{Role: engines.Assistant, Content: response.Text})
			p := l.of(req.ID)
			// What a turn adds is computed, with the last word of the answer, which was never read.
			if computed := response.Usage.PromptTokens - response.Usage.CachedTokens; !p.Exact || p.Cached != response.Usage.CachedTokens ||
				computed > 65 {
				t.Errorf("chat %d, turn %d: predicted %+v, usage %+v", i, turn, p, response.Usage)
			}
		}
	}
	if s := engine.Stats(); s.Disk.Files != 3 || s.Disk.Restores != 9 || s.Below != 0 || s.Disk.Refusals != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Where the server cannot do it the tier is off, nothing is saved, and it says why.
func TestDiskOff(t *testing.T) {
	for want, traits := range map[string]traits{
		"--slot-save-path":             {slotDir: "none"},
		"llama.cpp #26676":             {forgetful: 1},
		"has only 90000 bytes":         {window: 90},
		"adapters":                     {adapters: `[{"id":0,"scale":1.0}]`},
		"another folder":               {slotDir: "elsewhere"},
		"have no count of what is cac": {noCompletion: true},
		"empties idle slots":           {clears: true, slots: 3},
		"#26676, or other clients":     {forgetful: 80},
		"requests are not sent to slo": {slots: 2},
	} {
		t.Run(want, func(t *testing.T) {
			f := diskFake(t, traits)
			dir := f.traits.slotDir
			switch traits.slotDir {
			case "none":
				f.traits.slotDir = ""
			case "elsewhere":
				f.traits.slotDir = t.TempDir()
			}
			engine, _ := f.engine(func(c *llamacpp.Config) {
				c.SlotDir = dir
				c.Unpinned = strings.HasPrefix(want, "requests")
			})
			for i := range 8 {
				asks(t, engine, words(fmt.Sprint("a", i%3), 100))
			}
			wantDisk(t, engine, want)
			if names, _ := slotFiles(t, dir); len(names) > 0 && traits.forgetful != 80 {
				t.Errorf("files %v", names)
			}
			if traits.forgetful == 80 && f.restores() != 3 {
				t.Errorf("%d restored: the probe and two that were computed", f.restores())
			}
		})
	}
}

// Files from before a server was started so that it empties idle slots are not restored once that is known: its requests are not
// sent to slots.
func TestDiskClears(t *testing.T) {
	f := diskFake(t, traits{slots: 2})
	engine, _ := f.diskEngine(nil)
	var texts []string
	for i := range 6 {
		texts = append(texts, words(fmt.Sprint("text", i), 100))
	}
	asks(t, engine, texts...)
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.traits.clears = true
	f.mu.Unlock()
	f.restart()
	engine, _ = f.diskEngine(nil)
	asks(t, engine, words("x", 100), words("y", 100), words("z", 100))
	wantDisk(t, engine, "empties idle slots")
	before := f.restores()
	asks(t, engine, texts...)
	if got := f.restores() - before; got > 0 {
		t.Errorf("%d restored", got)
	}
}

// Whatever happens to the files, a request is answered, the damage is counted, and the server is never asked to read a file that is
// not the one it wrote.
func TestDiskFaults(t *testing.T) {
	for name, test := range map[string]struct {
		harm  func(t *testing.T, f *fake, file string)
		reads int // restores, of those the engine can have found nothing wrong with
	}{
		"truncated": {func(t *testing.T, _ *fake, file string) {
			change(t, file, func(b []byte) []byte { return b[:len(b)-1] })
		}, 0},
		"flipped": {func(t *testing.T, _ *fake, file string) {
			change(t, file, func(b []byte) []byte { b[7] ^= 1; return b })
		}, 0},
		"longer": {func(t *testing.T, _ *fake, file string) {
			change(t, file, func(b []byte) []byte { return append(b, 0) })
		}, 0},
		"missing": {func(t *testing.T, _ *fake, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"folder removed": {func(t *testing.T, f *fake, _ string) {
			if err := os.RemoveAll(f.traits.slotDir); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"refused": {func(_ *testing.T, f *fake, _ string) {
			f.mu.Lock()
			f.refuses = true
			f.mu.Unlock()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := diskFake(t, traits{})
			engine, l := f.diskEngine(nil)
			a, b := words("a", 100), words("b", 10)
			asks(t, engine, a, b)
			names, _ := slotFiles(t, f.traits.slotDir)
			if len(names) != 1 {
				t.Fatalf("files %v", names)
			}
			test.harm(t, f, names[0])
			before := f.restores()
			if cached := asks(t, engine, a); cached > 1 {
				t.Errorf("%d tokens cached", cached)
			}
			if p := l.of(a[:8]); p.Cached > 1 {
				t.Errorf("predicted %+v", p)
			}
			if got := f.restores() - before; got != test.reads {
				t.Errorf("%d restored, want %d", got, test.reads)
			}
			s := engine.Stats()
			if s.Disk.Refusals != 1 || s.Disk.Restores != 0 || s.Disk.Files != 0 || s.Below != 0 {
				t.Errorf("stats %+v", s)
			}
			if _, err := os.Stat(names[0]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func change(t *testing.T, file string, how func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, how(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files of another model, or of another tenant, are left alone, and so are those of salted requests.
func TestDiskOthers(t *testing.T) {
	a, b := words("a", 100), words("b", 100)
	t.Run("model", func(t *testing.T) {
		f := diskFake(t, traits{})
		engine, _ := f.diskEngine(nil)
		asks(t, engine, a, b)
		f.mu.Lock()
		f.traits.model = "other.gguf"
		f.mu.Unlock()
		f.restart()
		if cached := asks(t, engine, b, a); cached > 1 {
			t.Errorf("%d tokens of another model's file are cached", cached)
		}
		if s := engine.Stats().Disk; s.Files != 2 || s.Restores != 0 {
			t.Errorf("stats %+v", s)
		}
	})
	t.Run("tenant", func(t *testing.T) {
		f := diskFake(t, traits{})
		for i, tenant := range []string{"x", "y", "x"} {
			engine, _ := f.diskEngine(func(c *llamacpp.Config) { c.Server.Scope.Tenant = tenant })
			if cached := asks(t, engine, b, a); (cached > 1) != (i == 2) {
				t.Errorf("tenant %s: %d tokens cached", tenant, cached)
			}
			if err := engine.Close(); err != nil {
				t.Fatal(err)
			}
			f.restart()
		}
	})
	t.Run("salt", func(t *testing.T) {
		f := diskFake(t, traits{})
		engine, _ := f.diskEngine(nil)
		salted := func(text string) engines.Request {
			req := question("salted", text)
			req.Extra = map[string]json.RawMessage{"cache_salt": json.RawMessage(`"s"`)}
			return req
		}
		ask(t.Context(), t, engine, salted(a))
		asks(t, engine, b)
		if s := engine.Stats().Disk; s.Saves != 0 {
			t.Errorf("a salted request's slot was saved: %+v", s)
		}
		if response := ask(t.Context(), t, engine, salted(a)); response.Usage.CachedTokens > 1 {
			t.Errorf("usage %+v", response.Usage)
		}
		if response := ask(t.Context(), t, engine, salted(b)); response.Usage.CachedTokens > 1 {
			t.Errorf("a salted request got an unsalted file: %+v", response.Usage)
		}
		if s := engine.Stats().Disk; s.Saves != 1 || s.Restores != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// The server is restarted with another model while a file is restored: the new process is asked to empty the slot again.
func TestDiskRestartWithin(t *testing.T) {
	f := diskFake(t, traits{})
	engine, l := f.diskEngine(func(c *llamacpp.Config) {
		c.Server.Retries, c.Server.RetryWait, c.Server.MaxRetryWait = 1000, time.Millisecond, time.Millisecond
	})
	a, b := words("a", 100), words("b", 100)
	asks(t, engine, a, b)
	f.mu.Lock()
	f.onRestore = func() {
		f.mu.Lock()
		f.traits.model = "other.gguf"
		f.mu.Unlock()
		f.restart()
	}
	f.mu.Unlock()
	if cached := asks(t, engine, a); cached > 1 {
		t.Errorf("%d tokens of another model are used", cached)
	}
	if p := l.of(a[:8]); p.Cached > 1 {
		t.Errorf("predicted %+v", p)
	}
	asks(t, engine, b)
	if s := engine.Stats(); s.Disk.Restores != 0 || s.Disk.Refusals != 0 || s.Disk.Files == 0 || s.Restarts != 1 || s.Below != 0 {
		t.Errorf("stats %+v", s)
	}
}

// A connection that breaks says nothing about the file.
func TestDiskBroken(t *testing.T) {
	f := diskFake(t, traits{})
	engine, _ := f.diskEngine(nil)
	a, b := words("a", 100), words("b", 100)
	asks(t, engine, a, b)
	for _, breaks := range []bool{true, false} {
		f.mu.Lock()
		f.breaks = breaks
		f.mu.Unlock()
		if cached := asks(t, engine, a); (cached > 1) == breaks {
			t.Errorf("connections break: %v; %d tokens are cached", breaks, cached)
		}
		asks(t, engine, b)
	}
	if s := engine.Stats().Disk; s.Refusals != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Many at once, on fewer slots than conversations: predictions stay exact, and files are not mixed up.
func TestDiskManyAtOnce(t *testing.T) {
	f := diskFake(t, traits{slots: 3})
	engine, l := f.diskEngine(func(c *llamacpp.Config) { c.SlotBytes = 700_000 })
	var wait sync.WaitGroup
	for user := range 8 {
		wait.Go(func() {
			for i := range 12 {
				req := question(fmt.Sprintf("u%d-%d", user, i), words(fmt.Sprint("user", user), 60+10*i))
				response, err := engine.Generate(t.Context(), req, nil)
				if err != nil {
					t.Errorf("%s: %v", req.ID, err)
				} else if p := l.of(req.ID); p.Exact && p.Cached != response.Usage.CachedTokens {
					t.Errorf("%s: predicted %+v, usage %+v", req.ID, p, response.Usage)
				}
			}
		})
	}
	wait.Wait()
	stats := engine.Stats()
	if stats.Equal != 96 || stats.Disk.Restores == 0 || stats.Disk.Refusals != 0 || stats.Disk.Bytes > 700_000 {
		t.Errorf("stats %+v", stats)
	}
	if _, size := slotFiles(t, f.traits.slotDir); size != stats.Disk.Bytes {
		t.Errorf("%d bytes in the folder, stats %+v", size, stats.Disk)
	}
}
