package llamacpp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/base/durable"
)

// The quota is kept, by the files used longest ago, also over restarts.
func TestDiskQuota(t *testing.T) {
	f := diskFake(t, traits{})
	const file = 103_000
	quota := func(c *llamacpp.Config) { c.SlotBytes = 2*file + 10 }
	engine, _ := f.diskEngine(quota)
	text := func(i int) string { return words(fmt.Sprint("text", i), 100) }
	for i := range 6 {
		asks(t, engine, text(i))
		if _, size := slotFiles(t, f.traits.slotDir); size > 2*file+10 {
			t.Errorf("after %d texts %d bytes", i, size)
		}
	}
	f.mu.Lock()
	most := f.mostBytes
	f.mu.Unlock()
	if most > 3*file+10 {
		t.Errorf("%d bytes while a file was saved", most)
	}
	if cached := asks(t, engine, text(3)); cached != 101 { // which is now the one used last, beside 5
		t.Errorf("%d tokens cached", cached)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	engine, _ = f.diskEngine(func(c *llamacpp.Config) { c.SlotBytes = file })
	if s := engine.Stats().Disk; s.Files != 1 || s.Bytes != file {
		t.Errorf("stats %+v", s)
	}
	if cached := asks(t, engine, text(3)); cached != 101 {
		t.Errorf("%d tokens cached of the file that was used last", cached)
	}
	// A file that would be larger than the quota is not made.
	asks(t, engine, words("large", 300), words("next", 100))
	if s := engine.Stats().Disk; s.Files != 1 || s.Saves != 0 || s.Refusals != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Of two files the one that was restored last stays, although the other one was saved after it.
func TestDiskRecency(t *testing.T) {
	f := diskFake(t, traits{})
	engine, _ := f.diskEngine(func(c *llamacpp.Config) { c.SlotBytes = 2*103_000 + 10 })
	text := func(i int) string { return words(fmt.Sprint("text", i), 100) }
	for _, i := range []int{0, 1, 2, 0, 3, 4} {
		asks(t, engine, text(i))
	}
	if cached := asks(t, engine, text(0)); cached != 101 {
		t.Errorf("%d tokens cached", cached)
	}
}

// What another client has put into a slot is not taken for what was there.
func TestDiskOtherClient(t *testing.T) {
	f := diskFake(t, traits{})
	engine, _ := f.diskEngine(nil)
	asks(t, engine, words("a", 100))
	f.mu.Lock()
	f.slots[0].tokens = f.tokenize(words("other", 200))
	f.mu.Unlock()
	asks(t, engine, words("b", 100))
	if names, _ := slotFiles(t, f.traits.slotDir); len(names) != 0 {
		t.Errorf("files %v", names)
	}
	if s := engine.Stats().Disk; s.Saves != 0 || s.Refusals != 1 {
		t.Errorf("stats %+v", s)
	}
}

// A disk that is full costs what was to be saved, nothing else.
func TestDiskFull(t *testing.T) {
	f := diskFake(t, traits{})
	engine, _ := f.diskEngine(nil)
	a, b := words("a", 100), words("b", 100)
	asks(t, engine, a)
	f.mu.Lock()
	f.full = true
	f.mu.Unlock()
	asks(t, engine, b)
	if names, _ := slotFiles(t, f.traits.slotDir); len(names) != 0 {
		t.Errorf("files %v", names)
	}
	f.mu.Lock()
	f.full = false
	f.mu.Unlock()
	if asks(t, engine, a, b) != 101 {
		t.Error("nothing is saved after the disk has room again")
	}
	if s := engine.Stats().Disk; s.Refusals != 1 {
		t.Errorf("stats %+v", s)
	}
}

// The folder: who may use it, what is deleted in it, and what it and its files may be read by.
func TestDiskFolder(t *testing.T) {
	f := diskFake(t, traits{})
	dir := f.traits.slotDir
	open := func() error {
		engine, err := llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: f.URL}, SlotDir: dir})
		if err == nil {
			err = engine.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	digits := strings.Repeat("0a", 16)
	ours := []string{"ragpilot-" + digits + ".slot", "ragpilot-" + digits + ".part", "ragpilot-" + strings.Repeat("0b", 16) + ".json"}
	others := []string{"my.slot", "ragpilot-notes.slot", "ragpilot-" + digits, "ragpilot-0a.json"}
	for _, name := range append(ours, others...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	for _, name := range ours {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	engine, _ := f.diskEngine(nil)
	if err := open(); !errors.Is(err, durable.ErrLocked) || !strings.Contains(err.Error(), "SlotDir") {
		t.Errorf("while another uses it: %v", err)
	}
	asks(t, engine, words("a", 100), words("b", 100))
	for _, pattern := range []string{"ragpilot-????????????????????????????????.slot", "*.json"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range names {
			if info, err := os.Stat(name); filepath.Base(name) != others[3] && (err != nil || info.Mode().Perm() != 0o600) {
				t.Errorf("%v, %v", info, err)
			}
		}
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "anyone may write") {
		t.Errorf("a folder for anyone: %v", err)
	}
}

// Loading that takes longer than computing is left out.
func TestDiskSlow(t *testing.T) {
	f := diskFake(t, traits{})
	now := time.Now()
	engine, _ := f.diskEngine(func(c *llamacpp.Config) {
		// Each look at the clock takes a minute.
		c.Server.Now = func() time.Time { now = now.Add(time.Minute); return now }
	})
	a, b := words("a", 100), words("b", 100)
	if asks(t, engine, a, b, a) != 101 {
		t.Error("nothing was restored before it was measured")
	}
	if cached := asks(t, engine, b); cached > 1 {
		t.Errorf("%d tokens cached although loading takes a minute", cached)
	}
}

// forge replaces a file by another one and makes its note fit.
func forge(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	change(t, strings.TrimSuffix(file, ".slot")+".json", func(note []byte) []byte {
		var n map[string]any
		if err := json.Unmarshal(note, &n); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		n["bytes"], n["sha256"] = len(data), hex.EncodeToString(sum[:])
		note, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		return note
	})
}
