package local

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/outbox"
	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

var (
	// ErrClosed is wrapped by errors of requests that an Engine's Close ended, or that came after it.
	ErrClosed = runner.ErrClosed
	// ErrCacheTooSmall: Config.CacheBytes is not enough for a request.
	ErrCacheTooSmall = errors.New("the cache is too small")
)

// Engine runs a model. All methods are safe for concurrent use.
type Engine struct {
	config   Config
	file     *weights.Model
	device   gpu.Device
	fallback string // why no card is used; empty: one is, or none was looked for
	model    *llama.Model
	runner   *runner.Runner
	folder   *kvfile.Folder   // nil: there is none
	memory   *kvfile.Memory   // below a card's; nil: there is none
	resident *residency.Index // what requests have in the cache
	outbox   outbox.Outbox
	capacity int // tokens of one sequence, behind no context
	contexts map[string]*attached
	lastID   atomic.Uint64
	close    func() error
}

var _ engines.Engine = (*Engine)(nil)

// Open reads a model and makes an engine of it, which must be closed. Errors name the file and what is wrong with it.
func Open(config Config) (*Engine, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	file, err := weights.Open(config.Model)
	if err != nil {
		return nil, fmt.Errorf("local engine: %w", err)
	}
	e, err := openDevice(config, file)
	if err != nil {
		return nil, fmt.Errorf("local engine: model %s: %w", config.Model, errors.Join(err, file.Close()))
	}
	return e, nil
}

// openDevice opens an engine on the device of the settings. Where any device will do, and the card cannot have the model, that is the
// processor.
func openDevice(config Config, file *weights.Model) (*Engine, error) {
	var e *Engine
	fallback, err := onDevice(config.Device, config.DeviceBytes, func(device gpu.Device) (err error) {
		e, err = open(config, file, device)
		return err
	})
	if err != nil {
		return nil, err
	}
	e.fallback = fallback
	return e, nil
}

// onDevice calls f with a device, which it closes if f returns an error. With "auto" that is the first card, or the processor if there is
// none or f fails on it for the card's reasons: fallback says why, in programs that could use a card.
func onDevice(name string, budget int64, f func(gpu.Device) error) (fallback string, err error) {
	device, fallback, err := gpu.Open(name, gpu.Options{Budget: budget})
	if err != nil {
		return "", err
	}
	err = f(device)
	if _, ok := errors.AsType[*gpu.Error](err); ok && name == DefaultDevice {
		fallback = errors.Join(err, device.Close()).Error()
		device = gpu.CPU{}
		err = f(device)
	}
	if !gpu.Built() {
		fallback = ""
	}
	if err != nil && fallback != "" {
		err = fmt.Errorf("%w; no card computes: %s", err, fallback)
	}
	if err != nil {
		return "", errors.Join(err, device.Close())
	}
	return fallback, nil
}

func open(config Config, file *weights.Model, device gpu.Device) (*Engine, error) {
	model, err := llama.New(file, device)
	if err != nil {
		return nil, err
	}
	if config.Served == "" {
		config.Served = file.Name
	}
	file.Template.NoThinking = config.NoThinking
	e := &Engine{config: config, file: file, device: device, model: model}
	e.resident = residency.New(residency.Config{Replica: e.config.Served, BlockSize: kvstore.PageTokens, OnUpdate: e.lost})
	e.resident.Complete(true)
	pages := int(config.CacheBytes / int64(4*model.PageFloats()))
	e.capacity = min(pages*kvstore.PageTokens, file.Context)
	if e.capacity < 2*kvstore.PageTokens {
		return nil, fmt.Errorf("%w: in %d bytes there is room for %d tokens, want at least %d",
			ErrCacheTooSmall, config.CacheBytes, e.capacity, 2*kvstore.PageTokens)
	}
	settings := runner.Config{
		Model: model, Threads: config.Threads, Pages: pages, Running: config.Running, Step: config.Step, OnEvents: e.changed,
		SaltedFiles: config.DiskSalted,
	}
	if config.CacheDir != "" {
		if e.folder, err = openFolder(config, file, device.Kernel()); err != nil {
			return nil, fmt.Errorf("CacheDir: %w", err)
		}
		settings.Files = e.folder
	}
	if e.memory = openMemory(config, device, model.PageFloats(), e.folder); e.memory != nil {
		settings.Files, settings.SaltedFiles = e.memory, true // it knows what the folder may have
		if e.folder == nil {
			settings.Medium = kvstore.Host
		}
	}
	if e.runner, err = runner.New(settings); err != nil {
		return nil, errors.Join(err, e.closeTiers())
	}
	e.close = sync.OnceValue(func() error {
		e.runner.Close()
		return errors.Join(e.closeTiers(), e.device.Close(), e.file.Close())
	})
	if err = e.attach(file, model, pages); err == nil {
		err = e.runner.Reserve()
	}
	if err != nil {
		e.runner.Close()
		return nil, errors.Join(err, e.closeTiers())
	}
	return e, nil
}

// closeTiers ends the tiers below the cache.
func (e *Engine) closeTiers() error {
	if e.memory != nil {
		e.memory.Close()
	}
	if e.folder != nil {
		return e.folder.Close()
	}
	return nil
}

// Close ends all requests with [ErrClosed], waits for the current step and for subscribers, and gives the model's memory
// back. It may be called again. It must not be called by a subscriber, nor from [Config].OnCache: it would wait for its
// caller.
func (e *Engine) Close() error { return e.close() }

// Name says which model answers, and how it is computed.
func (e *Engine) Name() string {
	if gpu.OwnMemory(e.device) {
		return fmt.Sprintf("local %s (%s)", e.config.Served, e.device.Name())
	}
	return fmt.Sprintf("local %s (%s, %d threads)", e.config.Served, e.device.Kernel(), e.config.Threads)
}

// Device is what computes: "cpu", or "cuda:0" and so on.
func (e *Engine) Device() string { return e.device.Name() }

// Model is the name that requests may ask for.
func (e *Engine) Model() string { return e.config.Served }

// Context is how many tokens a prompt and its answer may have, behind no compressed context: see [Engine.Room].
func (e *Engine) Context() int { return e.capacity }

// Warnings lists what had to be assumed about the model, for example a chat template that is not known, and why no card is used.
func (e *Engine) Warnings() []string {
	warnings := slices.Clone(e.file.Warnings)
	if e.fallback != "" {
		warnings = append(warnings, "the processor computes: "+e.fallback)
	}
	return warnings
}

// Subscribe implements [engines.Engine]. The sink is called between two steps of the computation, or before a request
// returns: as long as it takes, all requests wait. It may call the engine, but for Close, Clear, and methods that run a
// request, which would wait for it.
func (e *Engine) Subscribe(sink func(events ...contextpilot.Event)) (cancel func()) {
	return e.outbox.Subscribe(sink)
}

// Clear empties the cache in memory, but for what requests that run use; files stay. Subscribers have had the event when it
// returns; it must not be called by them, nor from [Config].OnCache.
func (e *Engine) Clear() {
	e.runner.Clear()
	if e.memory != nil {
		e.runner.Saved()
		e.memory.Clear()
	}
}

// Prefix returns how many of a prompt's first tokens are in the cache, of requests with the same salt.
func (e *Engine) Prefix(tokens []int32, salt string) int { return e.runner.Prefix(tokens, salt) }

// Stats are counters since the engine was opened, and what it does now. Blocks are of [BlockTokens].
type Stats struct {
	Running, Waiting int   // requests
	Blocks           int   // that the cache can hold
	UsedBlocks       int   // of requests that run
	CachedBlocks     int   // of none, and could be found again
	Evictions        int64 // blocks given up for others
	QueriedTokens    int64 // of prompts, with those of preempted requests once more
	HitTokens        int64 // of these, those found in the cache, or computed by another request meanwhile
	PromptTokens     int64 // computed, with those of preempted requests once more
	GeneratedTokens  int64
	Preemptions      int64
	Steps            int64
	ResidentRequests int   // that have something in the cache
	LoadedBlocks     int64 // from the program's memory below a card's, or from files
	LostBlocks       int64 // given up before they were there
	HostBlocks       int   // in the program's memory below a card's
	DeviceBytes      int64 // allocated on a card
	Disk             DiskStats
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.runner.Stats()
	stats := Stats{
		Running: s.Running, Waiting: s.Waiting, Blocks: s.Capacity, UsedBlocks: s.Used, CachedBlocks: s.Cached,
		Evictions: s.Evictions, QueriedTokens: s.Queried, HitTokens: s.Hits, PromptTokens: s.Prompt, GeneratedTokens: s.Generated,
		Preemptions: s.Preemptions, Steps: s.Steps, ResidentRequests: e.resident.Stats().Requests,
		LoadedBlocks: s.Loaded, LostBlocks: s.Lost,
	}
	stats.DeviceBytes = e.device.Memory().Used
	if e.memory != nil {
		stats.HostBlocks = e.memory.Pages()
	}
	if e.folder != nil {
		d := e.folder.Stats()
		stats.Disk = DiskStats{e.folder.Writable(), d.Pages, d.Bytes, d.Written, d.Read, d.Evicted, d.Damaged, d.Errors}
	}
	return stats
}

// changed takes what the cache stored and gave up.
func (e *Engine) changed(events []kvevents.Event) {
	e.resident.Apply(&kvevents.Batch{Rank: kvevents.NoRank, Events: events})
	if e.config.OnCache != nil {
		e.config.OnCache(events)
	}
	e.outbox.Deliver()
}

// lost takes what requests have lost.
func (e *Engine) lost(updates []residency.Update) {
	e.outbox.Put(residency.Events(contextpilot.Scope{}, updates))
}

// name returns a request's ID, or a new one.
func (e *Engine) name(id string) string {
	if id == "" {
		return "local-" + strconv.FormatUint(e.lastID.Add(1), 10)
	}
	return id
}

// begin registers a request with residency. What it returns must be called when the request has ended, with the event of its answer if it
// has one.
func (e *Engine) begin(id string, request runner.Request) (end func(served *contextpilot.Event)) {
	prompt := request.Prompt
	if request.Reuse != nil {
		prompt = prompt[:request.Reuse.Head] // what is behind it is found by no other request
	}
	if len(prompt) < kvstore.PageTokens {
		e.resident.Drop(id) // it will have nothing in the cache, whatever an earlier one of this ID has
	} else {
		tokens := make([]int, len(prompt))
		for i, t := range prompt {
			tokens[i] = int(t)
		}
		e.resident.Register(id, tokens, residency.Key{Salt: request.Prefix.Salt(request.Salt)})
	}
	return func(served *contextpilot.Event) {
		if served != nil {
			events := []contextpilot.Event{*served} // before what the request has lost
			if request.Reuse != nil {
				events = append(events, contextpilot.Event{Kind: contextpilot.Shrunk, Request: id, Tokens: len(prompt), Prompt: len(request.Prompt)})
			}
			e.outbox.Put(events)
			e.resident.Served(id)
		} else {
			e.resident.Aborted(id)
			if tokens, _ := e.resident.Resident(id); tokens == 0 { // it has not begun, or has nothing in the cache: there is nothing to report
				e.resident.Drop(id)
			}
		}
		e.outbox.Deliver()
	}
}

// failed names the engine and the request in an error.
func (e *Engine) failed(id string, err error) error {
	return fmt.Errorf("engine %s: request %s: %w", e.config.Served, id, err)
}
