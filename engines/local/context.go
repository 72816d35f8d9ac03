package local

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
)

// CompressedContext is a corpus that [Compress] has compressed, as its file says.
type CompressedContext struct {
	Name       string // in [Config].Contexts; empty: it was not opened by an engine
	File       string
	Model      string
	Kernel     string
	Task       string
	Scorer     string
	Notes      string // who wrote them: "model", "given", or "none"
	Format     string
	ByDocument bool
	Documents  int
	Tokens     int // of the corpus, with the beginning of a chat in front
	Slots      int // tokens that each head keeps: a multiple of 16
	Bytes      int64
}

// attached is a context of an engine.
type attached struct {
	info   CompressedContext
	rest   []int32 // tokens that each request begins with
	prefix *kvstore.Prefix
	shares [][]float32 // of notes, as [contextfile.File.Shares] has them; nil: not known
	own    float64     // drift of notes from themselves
}

// watch has a request look at what its answer attends to in the context, if it is known what the notes did.
func (c *attached) watch(model *llama.Model, request *runner.Request) {
	if c != nil && c.shares != nil {
		request.Watch = model.NewProbes(c.slots())
	}
}

const (
	// leastWatched is how many tokens an answer has at least that is judged. Those of the texts by which mostDrift was chosen have 8 to 16.
	leastWatched = 8
	// mostDrift is the drift above which a question is taken to be of another task: docs/compression.md has how it was chosen.
	mostDrift = 0.23
)

// fit says how an answer fits the context, by what its first tokens attended to; nil: it is not known.
func (c *attached) fit(request *runner.Request, watched int) *engines.ContextFit {
	if request.Watch == nil || watched < leastWatched {
		return nil
	}
	drift := compress.Drift(request.Watch, c.shares) - c.own
	return &engines.ContextFit{Drift: drift, OtherTask: drift > mostDrift}
}

// InspectContext reads a file of [Compress], with every checksum.
func InspectContext(path string) (CompressedContext, error) {
	f, err := contextfile.Open(path)
	if err != nil {
		return CompressedContext{}, err
	}
	return describe("", path, f), nil
}

func describe(name, path string, f *contextfile.File) CompressedContext {
	documents := map[string]bool{}
	for _, p := range f.Parts {
		for _, s := range p.Sources {
			documents[s.Name] = true
		}
	}
	return CompressedContext{
		Name: name, File: path, Model: f.Model, Kernel: f.Kernel, Task: f.Task, Scorer: f.Scorer, Notes: f.Notes, Format: f.Format,
		ByDocument: f.Mode == contextfile.ByDocument, Documents: len(documents), Tokens: f.Tokens, Slots: f.Slots, Bytes: f.Bytes,
	}
}

// attach loads the contexts of the settings and pins their pages. All of them are read before any is pinned.
func (e *Engine) attach(file *weights.Model, model *llama.Model, pages int) error {
	e.contexts = map[string]*attached{}
	if len(e.config.Contexts) == 0 {
		return nil
	}
	identity := file.Identity()
	for _, name := range slices.Sorted(maps.Keys(e.config.Contexts)) {
		path := e.config.Contexts[name]
		f, err := contextfile.Open(path)
		if err == nil {
			err = f.Fits(identity, e.device.Kernel(), model)
		}
		if err != nil {
			return fmt.Errorf("context %q: %s: %w", name, path, err)
		}
		pages -= f.Slots / kvstore.PageTokens
		if f.Slots+2*kvstore.PageTokens > file.Context || pages < 2 {
			return fmt.Errorf("%w: context %q has %d slots; for it, a prompt and an answer there is no room in %d bytes and %d tokens",
				ErrCacheTooSmall, name, f.Slots, e.config.CacheBytes, file.Context)
		}
		for _, t := range f.Rest {
			if t < 0 || int(t) >= file.Vocab {
				return fmt.Errorf("context %q: %s: %w", name, path, contextfile.ErrDamaged)
			}
		}
		memory, err := f.Load(model)
		if err != nil {
			return fmt.Errorf("context %q: %s: %w", name, path, err)
		}
		prefix := e.runner.Pin(f.Hash, memory)
		if prefix == nil {
			model.FreePages(memory)
			return fmt.Errorf("%w: context %q", ErrCacheTooSmall, name)
		}
		e.contexts[name] = &attached{info: describe(name, path, f), rest: f.Rest, prefix: prefix, shares: f.Shares(), own: f.NotesDrift}
	}
	e.capacity = min(pages*kvstore.PageTokens, file.Context)
	return nil
}

// Contexts returns the compressed contexts that requests may name, in order of their names.
func (e *Engine) Contexts() []CompressedContext {
	all := make([]CompressedContext, 0, len(e.contexts))
	for _, name := range slices.Sorted(maps.Keys(e.contexts)) {
		all = append(all, e.contexts[name].info)
	}
	return all
}

// context returns the context that a request names. An empty name is none: nil.
func (e *Engine) context(name string) (*attached, error) {
	if name == "" {
		return nil, nil
	}
	c, ok := e.contexts[name]
	if !ok {
		return nil, refused("context %q: not loaded; there are %q", name, slices.Sorted(maps.Keys(e.contexts)))
	}
	return c, nil
}

// slots is how many tokens' places the context takes.
func (c *attached) slots() int {
	if c == nil {
		return 0
	}
	return c.prefix.Tokens()
}

// room is how many tokens a prompt, with the context's slots, and an answer may have.
func (e *Engine) room(c *attached) int { return min(e.capacity+c.slots(), e.file.Context) }

// Room is how many tokens a prompt of its own and an answer may have behind a context; "": behind none, which is [Engine.Context].
func (e *Engine) Room(context string) (int, error) {
	c, err := e.context(context)
	if err != nil {
		return 0, err
	}
	return e.room(c) - c.slots() - c.behind(), nil
}

// behind is how many tokens of the corpus each request begins with.
func (c *attached) behind() int {
	if c == nil {
		return 0
	}
	return len(c.rest)
}

// TokenizeBehind returns the tokens of a chat as Generate sends them to the model behind a context, which is the chat's first system
// prompt; "": behind none, which is TokenizeChat.
func (e *Engine) TokenizeBehind(context string, messages []engines.Message) ([]int32, error) {
	c, err := e.context(context)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return e.TokenizeChat(messages), nil
	}
	return compress.Behind(e.file, messages), nil
}
