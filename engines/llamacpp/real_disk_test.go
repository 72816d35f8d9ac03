package llamacpp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
)

// realText is text that SmolLM2 can read, of some 130 tokens, which differs from the first word on by the number.
func realText(n int) string {
	names := []string{"Anna", "Boris", "Clara", "David", "Elena", "Felix"}
	things := []string{"a boat", "two horses", "a bakery", "an old piano", "a small garden", "three bicycles"}
	name := names[n%len(names)]
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "%s %d owns %s and keeps %s in town number %d. ", name, n, things[(n+i)%6], things[(n+2*i+1)%6], 10+n*i)
	}
	return b.String()
}

// startSmolLM2 starts a server of SmolLM2 with a folder for its slots.
func startSmolLM2(t *testing.T, args ...string) (s *server, dir string) {
	t.Helper()
	model := os.Getenv("RAGPILOT_LLAMA_SMOLLM2")
	if model == "" {
		t.Skip("needs a real model: RAGPILOT_LLAMA_SMOLLM2 names the GGUF file of SmolLM2-135M-Instruct")
	}
	dir = t.TempDir()
	s = startServer(t, append([]string{"-m", model, "-c", "4096", "--parallel", "2", "--slot-save-path", dir}, args...)...)
	return s, dir
}

// hostCaches are the server's own caches in memory: none, and the default.
var hostCaches = map[string][]string{"cache-ram 0": {"--cache-ram", "0"}, "default cache-ram": nil}

func greedy(id string, messages []engines.Message, maxTokens int) engines.Request {
	return engines.Request{
		ID: id, Messages: messages, MaxTokens: maxTokens, Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0")},
	}
}

// After a restart of both sides everything but the prompt's last token comes from the file, and the greedy answer is the same.
func TestRealDiskRestart(t *testing.T) {
	for name, args := range hostCaches {
		t.Run(name, func(t *testing.T) {
			s, dir := startSmolLM2(t, args...)
			use := func(c *llamacpp.Config) { c.SlotDir = dir }
			var answers [2]map[int]string
			for run := range answers {
				answers[run] = map[int]string{}
				engine, l := s.engine(use)
				for i := range 2 {
					req := greedy(fmt.Sprint(i), []engines.Message{{Role: engines.User, Content: realText(i) + "What does the person own?"}}, 24)
					response := ask(t.Context(), t, engine, req)
					answers[run][i] = response.Text
					p, u := l.of(req.ID), response.Usage
					t.Logf("slot files: %s: %d restarts, %d of %d tokens cached, first token after %v", name, run, u.CachedTokens, u.PromptTokens,
						response.TTFT.Round(time.Millisecond))
					if run == 1 && (u.CachedTokens != u.PromptTokens-1 || p.Cached != u.CachedTokens || !p.Exact) {
						t.Errorf("after a restart: usage %+v, predicted %+v", u, p)
					}
				}
				if err := engine.Close(); err != nil {
					t.Fatal(err)
				}
				s.restart()
			}
			for i, answer := range answers[0] {
				if answers[1][i] != answer || answer == "" {
					t.Errorf("answer %d: %q, after the restart %q", i, answer, answers[1][i])
				}
			}
		})
	}
}

// Six conversations, or in short three, on two slots: of the prompt tokens that are computed without the tier, at most three tenths are with it.
func TestRealDiskConversations(t *testing.T) {
	conversations := 6
	if testing.Short() {
		conversations = 3
	}
	for name, args := range hostCaches {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(args) == 0 {
				t.Skip("the server's own cache has most of what slots lose: it computes for a minute")
			}
			var computed [2]int
			var answers [2][]string
			for with := range computed {
				s, dir := startSmolLM2(t, args...)
				engine, _ := s.engine(func(c *llamacpp.Config) {
					if with == 1 {
						c.SlotDir = dir
					}
				})
				chats := make([][]engines.Message, conversations)
				for turn := range 5 {
					for i := range chats {
						text := fmt.Sprintf("And what about town %d?", turn)
						if turn == 0 {
							text = realText(i)
						}
						chats[i] = append(chats[i], engines.Message{Role: engines.User, Content: text})
						response := ask(t.Context(), t, engine, greedy(fmt.Sprint(i, "-", turn), chats[i], 6))
						chats[i] = append(chats[i], engines.Message{Role: engines.Assistant, Content: response.Text})
						computed[with] += response.Usage.PromptTokens - response.Usage.CachedTokens
						answers[with] = append(answers[with], response.Text)
					}
				}
				stats := engine.Stats()
				t.Logf("%v: %d prompt tokens computed, %+v", with == 1, computed[with], stats)
				if stats.Below != 0 || stats.Disk.Refusals != 0 {
					t.Errorf("stats %+v", stats)
				}
				if err := engine.Close(); err != nil {
					t.Fatal(err)
				}
				s.stop()
			}
			ratio := float64(computed[1]) / float64(computed[0])
			same := 0
			for i, answer := range answers[0] {
				if answers[1][i] == answer {
					same++
				}
			}
			t.Logf("slot files: %s: %d of %d prompt tokens computed (%.3f); %d of %d answers are the same", name, computed[1], computed[0], ratio,
				same, len(answers[0]))
			// The server's own cache has most of what slots lose.
			if limit := 0.3; len(args) > 0 && ratio > limit || ratio > 1 || same < len(answers[0])-1 {
				t.Error("more is computed, or other answers are given")
			}
		})
	}
}

// A real server's files, damaged in each way: it is not asked to read them, or refuses, and the slot is right afterwards.
func TestRealDiskFaults(t *testing.T) {
	s, dir := startSmolLM2(t, "--cache-ram", "0", "--parallel", "1")
	engine, l := s.engine(func(c *llamacpp.Config) { c.SlotDir = dir })
	answer := ask(t.Context(), t, engine, realRequest(0)).Text
	for i, harm := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { b[len(b)/2] ^= 0x40; return b },
		func([]byte) []byte { return nil },
	} {
		ask(t.Context(), t, engine, realRequest(1))
		names, err := filepath.Glob(filepath.Join(dir, "*.slot"))
		if err != nil || len(names) == 0 {
			t.Fatalf("files %v, error %v", names, err)
		}
		for _, name := range names {
			change(t, name, harm)
		}
		response := ask(t.Context(), t, engine, realRequest(0))
		// all have the same system prompt
		if p := l.of("0"); response.Text != answer || p.Cached != response.Usage.CachedTokens || p.Cached > 30 {
			t.Errorf("damage %d: %q, want %q; usage %+v, predicted %+v", i, response.Text, answer, response.Usage, p)
		}
	}
	if stats := engine.Stats(); stats.Disk.Refusals < 3 || stats.Below != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// A file of another model under a name and a note that fit: the server refuses it, and the slot is right afterwards.
func TestRealDiskForeign(t *testing.T) {
	s, dir := startSmolLM2(t, "--cache-ram", "0", "--parallel", "1")
	engine, _ := s.engine(func(c *llamacpp.Config) { c.SlotDir = dir })
	// A token that is computed by itself, as the last one is the second time, is not computed to the last bit as among many.
	var answers [2]string
	for i := range answers {
		answers[i] = ask(t.Context(), t, engine, realRequest(0)).Text
	}
	ask(t.Context(), t, engine, realRequest(1))
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	tiny := startServer(t, "--cache-ram", "0", "--parallel", "1", "--slot-save-path", other)
	tiny.post("/completion", `{"prompt":"something else","n_predict":2}`)
	tiny.post("/slots/0?action=save", `{"filename":"tiny.slot"}`)
	data, err := os.ReadFile(filepath.Join(other, "tiny.slot"))
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.slot"))
	for _, name := range names {
		forge(t, name, data)
	}
	engine, l := s.engine(func(c *llamacpp.Config) { c.SlotDir = dir })
	for _, answer := range answers { // the first one has overwritten what the slot had, too
		response := ask(t.Context(), t, engine, realRequest(0))
		if p := l.of("0"); response.Text != answer || p.Cached != response.Usage.CachedTokens {
			t.Errorf("%q, want %q; usage %+v, predicted %+v", response.Text, answer, response.Usage, p)
		}
	}
	if stats := engine.Stats(); stats.Disk.Refusals != 1 || stats.Disk.Restores != 0 || stats.Disk.Files != len(names)-1 {
		t.Errorf("stats %+v", stats)
	}
}

// Models with sliding windows: the server computes what it restored, or, with --swa-full, takes the last tokens for all.
func TestRealDiskWindows(t *testing.T) {
	for want, args := range map[string][]string{
		"llama.cpp #26676":          {"-m", model(t, "RAGPILOT_LLAMA_WINDOW32")},
		"those of a sliding window": {"-m", model(t, "RAGPILOT_LLAMA_WINDOW512"), "--swa-full"},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			s := startServer(t, append(args, "--parallel", "2", "--cache-ram", "0", "--slot-save-path", dir)...)
			engine, _ := s.engine(func(c *llamacpp.Config) { c.SlotDir = dir })
			askInTurns(t, engine, 40)
			wantDisk(t, engine, want)
			if stats := engine.Stats(); stats.Disk.Restores > 0 || stats.Disk.Files > 0 {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

// askInTurns asks twice about each of three prompts, which repeat a passage.
func askInTurns(t *testing.T, engine *llamacpp.Engine, repeat int) {
	t.Helper()
	for i := range 6 {
		ask(t.Context(), t, engine, engines.Request{
			ID: fmt.Sprint(i), MaxTokens: 2,
			Messages: []engines.Message{{Role: engines.User, Content: strings.Repeat(passage(i%3), repeat)}},
		})
	}
}

// model returns the file that a variable of the environment names.
func model(t *testing.T, name string) string {
	t.Helper()
	file := os.Getenv(name)
	if file == "" {
		t.Skipf("needs models of next to no size: %s names one with a sliding window", name)
	}
	return file
}

// A server without the flag, and one that shares its memory among slots.
func TestRealDiskOff(t *testing.T) {
	for want, args := range map[string][]string{
		"--slot-save-path":   {"--parallel", "2"},
		"empties idle slots": {"--slot-save-path", t.TempDir()},
		"on":                 {"--parallel", "2", "--slot-save-path", "DIR"},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			for i := range args {
				if args[i] == "DIR" {
					args[i] = dir
				}
			}
			s := startServer(t, args...)
			engine, _ := s.engine(func(c *llamacpp.Config) { c.SlotDir = dir })
			askInTurns(t, engine, 4)
			wantDisk(t, engine, want)
		})
	}
}

// realRequest asks for eight tokens behind a text of its own.
func realRequest(i int) engines.Request {
	return greedy(fmt.Sprint(i), []engines.Message{{Role: engines.User, Content: realText(i)}}, 8)
}
