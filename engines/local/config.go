package local

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Defaults of Config.
const (
	DefaultCacheBytes = 512 << 20
	DefaultMaxTokens  = 256
	DefaultRunning    = 16
	DefaultStep       = 128
	DefaultDiskBytes  = 4 << 30
	DefaultHostBytes  = 4 << 30
	DefaultRecompute  = 0.2
	DefaultDevice     = "auto"
)

// BlockTokens is how many tokens a block of the engine's cache has. Only whole blocks are reused.
const BlockTokens = kvstore.PageTokens

// Config holds the settings of an Engine; zero values stand for the defaults.
type Config struct {
	// Model is the path of a GGUF file.
	Model string
	// Served is the name that requests may ask for; empty: the model's own.
	Served string
	// Device is what computes: "cpu"; "cuda:0" and so on, a card, in programs built with the tag cuda; or "auto", the default: the first
	// card, or the processor where there is none that can be used. Keys and values of different devices are not the same bits, and files of
	// one are not read by the other.
	Device string
	// DeviceBytes bounds the memory of a card that is used, for weights and CacheBytes; 0: nine tenths of what is free.
	DeviceBytes int64
	// Threads is how many threads compute; 0: one for each processor.
	Threads int
	// CacheBytes bounds the memory for keys and values, which is allocated as it is needed. What it holds must be enough for one
	// request with its answer.
	CacheBytes int64
	// MaxTokens bounds an answer if its request does not.
	MaxTokens int
	// Running is how many requests are computed at a time; others wait.
	Running int
	// Step is how many tokens of prompts are computed in one step, between which answers go on and cancelled requests end.
	Step int
	// NoThinking has models of Qwen 3 answer without thinking: their answers begin behind an empty block of thoughts, as with
	// enable_thinking false elsewhere. Other models do not change.
	NoThinking bool
	// CacheDir is a folder for keys and values beyond memory, which a later process with the same model finds again; empty: there is
	// none. It is made if it is not there. The files hold the users' texts in another form: anyone who can read them can find out
	// which text was sent. Only the user may read them (mode 0600). Several engines may have one folder; one of them writes.
	CacheDir string
	// DiskBytes bounds the files in CacheDir, those of all models together. What was used longest ago is deleted first.
	DiskBytes int64
	// HostBytes bounds the program's memory for keys and values that have no room in a card's: what is given up there is copied back in place
	// of being computed again. 0: DefaultHostBytes with a card, and none without; less than a block takes: none.
	HostBytes int64
	// DiskFormat is what numbers are in files: "f32", the default, with which answers are those without files, bit for bit; "f16",
	// half as large, and "int8", about a quarter, change answers a little.
	DiskFormat string
	// DiskSalted keeps in files what requests with a cache salt computed, too. Without it that stays in memory.
	DiskSalted bool
	// Reuse is what requests have in common: "prefix", the default; "blocks"; or "hybrid". With the last two the blocks that a request names
	// are computed once, and used at any place in other prompts, in the retriever's order. Answers change: see docs/block-reuse.md for
	// how much. The same text then has other tokens where blocks begin and end.
	Reuse string
	// Recompute is the part of reused blocks' tokens that each request computes again, above 0 and up to 1; 0: DefaultRecompute.
	Recompute float64
	// Selector chooses them: one of [Selectors], "prophet" by default.
	Selector string
	// Contexts are files of [Compress] by the names that requests use (see [Engine.Generate]). They are loaded when the engine is opened
	// and take memory of CacheBytes until it is closed. A file of another model or kernel is refused.
	Contexts map[string]string
	// OnCache is called with what the cache stored and gave up, in order, one call at a time, between two steps of the
	// computation: all requests wait for it. It must not call Close, Clear, or what runs a request, which would wait
	// for it. Block hashes are numbers; blocks have 16 tokens.
	OnCache func(events []kvevents.Event)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Threads", int64(c.Threads)},
		{"CacheBytes", c.CacheBytes},
		{"MaxTokens", int64(c.MaxTokens)},
		{"Running", int64(c.Running)},
		{"Step", int64(c.Step)},
		{"DiskBytes", c.DiskBytes},
		{"DeviceBytes", c.DeviceBytes},
		{"HostBytes", c.HostBytes},
	} {
		if f.value < 0 {
			return c, fmt.Errorf("local engine: %s %d: want 0 or more", f.name, f.value)
		}
	}
	c.Reuse, c.Selector = cmp.Or(c.Reuse, ReusePrefix), cmp.Or(c.Selector, runner.SelectorNames[0])
	c.Recompute = cmp.Or(c.Recompute, DefaultRecompute)
	if err := checkReuse(c.Reuse, c.Selector, c.Recompute); err != nil {
		return c, fmt.Errorf("local engine: %w", err)
	}
	c.Device = cmp.Or(c.Device, DefaultDevice)
	if err := gpu.CheckName(c.Device); err != nil {
		return c, fmt.Errorf("local engine: Device: %w", err)
	}
	c.Threads = cmp.Or(c.Threads, runtime.GOMAXPROCS(0))
	c.CacheBytes = cmp.Or(c.CacheBytes, DefaultCacheBytes)
	c.MaxTokens = cmp.Or(c.MaxTokens, DefaultMaxTokens)
	c.Running = cmp.Or(c.Running, DefaultRunning)
	c.Step = cmp.Or(c.Step, DefaultStep)
	c.DiskBytes = cmp.Or(c.DiskBytes, DefaultDiskBytes)
	c.DiskFormat = cmp.Or(c.DiskFormat, "f32")
	if _, err := kvfile.FormatByName(c.DiskFormat); err != nil {
		return c, fmt.Errorf("local engine: DiskFormat: %w", err)
	}
	if _, ok := c.Contexts[""]; ok {
		return c, errors.New(`local engine: Contexts: a name is empty`)
	}
	c.Contexts = maps.Clone(c.Contexts)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
