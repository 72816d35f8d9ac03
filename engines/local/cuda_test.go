//go:build cuda

package local_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/nn/gpu/cuda/emulator"
)

// both opens an engine on the CPU and one on a card.
func both(t *testing.T, blocks int, config local.Config) (cpu, card *local.Engine) {
	t.Helper()
	modeltest.Card(t)
	if config.Model == "" {
		config.Model = tiny(t)
	}
	config.Device = "cuda:0"
	card = open(t, blocks, config)
	if card.Device() != "cuda:0" || !strings.Contains(card.Name(), "cuda:0") {
		t.Fatalf("device %s of %s", card.Device(), card.Name())
	}
	config.Device, config.CacheDir = "cpu", ""
	return open(t, blocks, config), card
}

// Requests at a time, that share prefixes, in little memory: answers on a card are those of the CPU, and so is what was cached.
func TestCUDAAnswers(t *testing.T) {
	cpu, card := both(t, 30, local.Config{Running: 4})
	ask := func(i int) engines.Request { return ask("", text(1, 60)+text(2+i%3, 40), 12) }
	var answers sync.WaitGroup
	for i := range 9 {
		answers.Go(func() {
			got, err := card.Generate(context.Background(), ask(i), nil)
			if want := generate(t, cpu, ask(i)); err != nil || got.Text != want.Text {
				t.Errorf("request %d: %q, %v; want %q", i, got.Text, err, want.Text)
			}
		})
	}
	answers.Wait()
	idle(t, card)
	cpu.Clear()
	card.Clear()
	for i := range 3 {
		if got, want := generate(t, card, ask(i)), generate(t, cpu, ask(i)); got.Usage != want.Usage {
			t.Errorf("usage %+v, want %+v", got.Usage, want.Usage)
		}
	}
}

// Blocks at other places, and a compressed context, give the answers of the CPU.
func TestCUDABlocksAndContexts(t *testing.T) {
	modeltest.Card(t)
	model := reader(t)
	file := map[string]string{}
	for _, device := range []string{"cpu", "cuda:0"} {
		file[device] = filepath.Join(t.TempDir(), "corpus.context")
		compressed(t, local.Compression{Model: model, Device: device, Out: file[device], Format: "f32"})
	}
	var texts [2][]string
	for i, device := range []string{"cpu", "cuda:0"} {
		e := open(t, 100, local.Config{
			Model: model, Device: device, Reuse: local.ReuseBlocks, Recompute: 0.3, Contexts: map[string]string{"corpus": file[device]},
		})
		for _, seeds := range [][]int{{1, 2, 3}, {3, 1, 2}, {2, 3}} {
			texts[i] = append(texts[i], generate(t, e, blockRequest("", seeds...)).Text)
		}
		texts[i] = append(texts[i], generate(t, e, behind("corpus", "1 2", 16)).Text)
	}
	for i, want := range texts[0] {
		if got := texts[1][i]; got != want {
			t.Errorf("answer %d: %q, want %q", i, got, want)
		}
	}
	if _, err := local.Open(local.Config{Model: model, Device: "cuda:0", Contexts: map[string]string{"corpus": file["cpu"]}}); err == nil ||
		!strings.Contains(err.Error(), "kernel") {
		t.Errorf("a context of another kernel: %v", err)
	}
}

// What a card computed is in files after a restart, in each format, and answers are as they were.
func TestCUDAFiles(t *testing.T) {
	modeltest.Card(t)
	config := local.Config{Model: tiny(t), Device: "cuda:0", CacheDir: t.TempDir()}
	req := ask("", text(1, 100), 12)
	want := ""
	for i := range 2 {
		e := open(t, 40, config)
		got := generate(t, e, req)
		s := e.Stats()
		switch {
		case i == 0:
			want = got.Text
		case got.Text != want || s.LoadedBlocks == 0:
			t.Errorf("%q from files, want %q; %+v", got.Text, want, s)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The CPU does not read them: it would compute other bits.
	config.Device = "cpu"
	e := open(t, 40, config)
	if got := generate(t, e, req); got.Text != want || e.Stats().LoadedBlocks != 0 {
		t.Errorf("%q on the CPU, want %q; %+v", got.Text, want, e.Stats())
	}
}

// An engine that opens has room for its requests: with whatever budget, it is refused or it answers.
func TestCUDABudgets(t *testing.T) {
	modeltest.Card(t)
	model, opened, refused := tiny(t), 0, 0
	for budget := int64(4 << 20); budget < 14<<20; budget += 600_000 {
		e, err := local.Open(local.Config{Model: model, Device: "cuda:0", DeviceBytes: budget, CacheBytes: 60 * pageBytes, HostBytes: 1})
		if err != nil {
			if refused++; !errors.Is(err, gpu.ErrMemory) {
				t.Fatal(err)
			}
			continue
		}
		opened++
		for _, n := range []int{20, 400} {
			if _, err := e.Generate(context.Background(), ask("", text(1, n), 8), nil); err != nil {
				t.Errorf("budget of %d bytes, %d tokens: %v", budget, n, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if opened == 0 || refused == 0 {
		t.Errorf("%d engines opened, %d were refused", opened, refused)
	}
}

// What a card has no room for is kept in the program's memory, and copied back.
func TestCUDAHostMemory(t *testing.T) {
	cpu, card := both(t, 30, local.Config{})
	for round := range 2 {
		for i := range 4 {
			req := ask("", text(i, 150), 6)
			got, want := generate(t, card, req), generate(t, cpu, req)
			if got.Text != want.Text {
				t.Errorf("request %d: %q, want %q", i, got.Text, want.Text)
			}
			if round > 0 && got.Usage.CachedTokens < 128 {
				t.Errorf("request %d: %d tokens cached", i, got.Usage.CachedTokens)
			}
		}
	}
	if s := card.Stats(); s.DeviceBytes < 30*pageBytes || s.Evictions == 0 || s.LoadedBlocks == 0 || s.HostBlocks == 0 {
		t.Errorf("%+v", s)
	}
	if s := cpu.Stats(); s.DeviceBytes != 0 || s.HostBlocks != 0 {
		t.Errorf("%+v", s)
	}
}

// A card that fails ends the requests of a step with an error that names the kernel and the tensor. Later requests are answered, unless
// the card is lost. Nothing stays in use.
func TestCUDAFaults(t *testing.T) {
	modeltest.Card(t)
	if !emulator.Present() {
		t.Skip("not run: faults come from the emulated driver")
	}
	for _, fault := range []struct {
		fault, names string
		lost         bool
	}{
		{"launch:attend_64:1:701", "attend_64 of queries of layer 0", false},
		{"launch:*:20:1", "cuda:0", false},
		{"copy:2:1", "write", false},
		{"async:*:30:700", "last kernels", true},
	} {
		t.Run(fault.fault, func(t *testing.T) {
			e := open(t, 40, local.Config{Device: "cuda:0"})
			want := generate(t, e, ask("", text(1, 50), 8)).Text
			e.Clear()
			t.Setenv("RP_EMU_FAULT", fault.fault)
			_, err := e.Generate(context.Background(), ask("", text(1, 50), 8), nil)
			var failed *gpu.Error
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), fault.names) {
				t.Errorf("error %v, want one that names %s", err, fault.names)
			}
			t.Setenv("RP_EMU_FAULT", "")
			idle(t, e)
			again, err := e.Generate(context.Background(), ask("", text(1, 50), 8), nil)
			if fault.lost && !errors.Is(err, gpu.ErrLost) || !fault.lost && (err != nil || again.Text != want) {
				t.Errorf("after the fault: %q, %v; want %q", again.Text, err, want)
			}
			idle(t, e)
		})
	}
}

// A card that has no room, or cannot be used, is refused by its name; with auto the CPU computes and the engine says why.
func TestCUDANoRoom(t *testing.T) {
	modeltest.Card(t)
	want := generate(t, open(t, 40, local.Config{Device: "cpu"}), ask("", text(1, 50), 8)).Text
	for name, config := range map[string]local.Config{
		"budget": {DeviceBytes: 100 << 10},
		"fault":  {},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "fault" {
				if !emulator.Present() {
					t.Skip("not run: faults come from the emulated driver")
				}
				t.Setenv("RP_EMU_FAULT", "alloc:5:2")
			}
			config.Model = tiny(t)
			config.Device = "cuda:0"
			if _, err := local.Open(config); !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "cuda:0") {
				t.Errorf("error %v", err)
			}
			if name == "fault" {
				t.Setenv("RP_EMU_FAULT", "alloc:6:2")
			}
			config.Device = "auto"
			e := open(t, 40, config)
			if warnings := strings.Join(e.Warnings(), "\n"); e.Device() != "cpu" || !strings.Contains(warnings, "out of memory") {
				t.Errorf("device %s, warnings %q", e.Device(), warnings)
			}
			if got := generate(t, e, ask("", text(1, 50), 8)).Text; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
