package local

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Defaults of Compression.
const (
	DefaultBudget    = "25%"
	DefaultWindow    = 4096
	DefaultMaxNotes  = 512
	DefaultNotesKind = "qa"
)

// Document is a text of a corpus.
type Document struct{ Name, Text string }

// Compression is what [Compress] does. Model, Documents, Task and Out must be set; other zero values stand for the defaults.
type Compression struct {
	// Model is the path of a model, as in [Config]. The file is for this model and for engines with the same kernel.
	Model   string
	Threads int // 0: one for each processor
	// Device is what computes, with at most DeviceBytes of its memory: see [Config].
	Device      string
	DeviceBytes int64
	// Documents are the corpus, in this order.
	Documents []Document
	// Task says what the corpus is for. It stands in front of the documents.
	Task string
	// Budget is what is kept: a share of the tokens ("25%"), or a number of them, of the corpus or, ByDocument, of each document. It is
	// rounded to a multiple of 16 tokens, at least 16.
	Budget string
	// Notes say what matters in the corpus; empty: the model writes them itself, at most MaxNotes tokens of them.
	Notes    string
	MaxNotes int
	// NotesKind chooses the words that ask the model for notes: see [NotesKinds].
	NotesKind string
	// Scorer is how tokens are chosen: see [Scorers].
	Scorer string
	// Format is what numbers are in the file: "f32", "f16" or, the default, "int8".
	Format string
	// ByDocument computes each document by itself, behind the beginning of the chat. What an earlier file at Out has of documents that
	// did not change is taken from there. Otherwise all documents are computed together, in parts if they are longer than Window.
	ByDocument bool
	// Window is how many tokens are computed together, at most.
	Window int
	// Out is the file to be written. Like the files of [Config].CacheDir it holds the texts in another form; only the user may read it.
	Out string
	// Progress is called now and then with the share that is done, 0 to 1, from the caller's goroutine; nil: it is not.
	Progress func(done float64)
}

// Compressed is what [Compress] did.
type Compressed struct {
	CompressedContext
	Parts, Reused int           // parts, and how many of them an earlier file had
	Computed      int           // tokens, those of notes included
	Fallback      string        // why no card computed; empty: one did, or none was looked for
	Notes         []string      // what the model wrote, part by part; none if they were given, or not needed
	Took          time.Duration // all of it
	Prefill       time.Duration // that computing the whole corpus once takes, by the pace that was measured; 0: nothing was computed
}

// Questions is how many questions it takes until compressing has cost less time than computing the corpus for each of them. 0: it is
// not known.
func (c Compressed) Questions() int {
	if c.Prefill <= 0 {
		return 0
	}
	return int(math.Ceil(float64(c.Took) / float64(c.Prefill)))
}

// Scorers returns the names of the ways to choose tokens.
func Scorers() []string { return compress.Names() }

// NotesKinds returns the names of the kinds of tasks for which there are words that ask for notes.
func NotesKinds() []string { return slices.Sorted(maps.Keys(compress.Prompts)) }

func (c Compression) withDefaults() (Compression, error) {
	c.Device = cmp.Or(c.Device, DefaultDevice)
	if err := gpu.CheckName(c.Device); err != nil {
		return c, fmt.Errorf("Compression.Device: %w", err)
	}
	c.Threads = cmp.Or(c.Threads, runtime.GOMAXPROCS(0))
	c.Budget = cmp.Or(c.Budget, DefaultBudget)
	c.MaxNotes = cmp.Or(c.MaxNotes, DefaultMaxNotes)
	c.NotesKind = cmp.Or(c.NotesKind, DefaultNotesKind)
	c.Scorer = cmp.Or(c.Scorer, compress.Default)
	c.Format = cmp.Or(c.Format, "int8")
	c.Window = cmp.Or(c.Window, DefaultWindow)
	if _, err := kvfile.FormatByName(c.Format); err != nil {
		return c, fmt.Errorf("Compression.Format: %w", err)
	}
	if _, err := compress.ByName(c.Scorer); err != nil {
		return c, fmt.Errorf("Compression.Scorer: %w", err)
	}
	if _, ok := compress.Prompts[c.NotesKind]; !ok {
		return c, fmt.Errorf("Compression.NotesKind %q: want one of %q", c.NotesKind, NotesKinds())
	}
	for _, f := range []struct {
		name  string
		value string
	}{{"Compression.Model", c.Model}, {"Compression.Task", strings.TrimSpace(c.Task)}, {"Compression.Out", c.Out}} {
		if f.value == "" {
			return c, fmt.Errorf("%s is empty", f.name)
		}
	}
	for _, f := range []struct {
		name        string
		value, want int
	}{{"Compression.Threads", c.Threads, 1}, {"Compression.MaxNotes", c.MaxNotes, 1}, {"Compression.Window", c.Window, 4 * llama.PageTokens}} {
		if f.value < f.want {
			return c, fmt.Errorf("%s %d: want at least %d", f.name, f.value, f.want)
		}
	}
	if c.DeviceBytes < 0 {
		return c, fmt.Errorf("Compression.DeviceBytes %d: want 0 or more", c.DeviceBytes)
	}
	if len(c.Documents) == 0 {
		return c, errors.New("Compression.Documents: there is none")
	}
	_, err := c.slots(1 << 20)
	return c, err
}

// slots is how many of so many tokens are kept.
func (c Compression) slots(tokens int) (int, error) {
	number, share := strings.CutSuffix(c.Budget, "%")
	want, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(want > 0) || share && want > 100 || !share && want != math.Trunc(want) || want > 1<<30:
		return 0, fmt.Errorf("Compression.Budget %q: want a number of tokens, or a share as 25%%, at most 100%%", c.Budget)
	case share:
		want *= float64(tokens) / 100
	}
	pages := max(1, int(math.Round(want/llama.PageTokens)))
	return min(pages, tokens/llama.PageTokens) * llama.PageTokens, nil
}

// Compress chooses what a task needs of a corpus's keys and values and writes it to a file, for [Config].Contexts (CacheNotes: G. Corallo
// et al.). It computes the corpus and the notes once, with no engine, and takes memory for the keys and values of a Window.
func Compress(ctx context.Context, c Compression) (Compressed, error) {
	began := time.Now()
	c, err := c.withDefaults()
	if err != nil {
		return Compressed{}, fmt.Errorf("compress: %w", err)
	}
	file, err := weights.Open(c.Model)
	if err != nil {
		return Compressed{}, fmt.Errorf("compress: %w", err)
	}
	var result Compressed
	fallback, err := onDevice(c.Device, c.DeviceBytes, func(device gpu.Device) (err error) {
		x := &compressor{Compression: c, file: file, device: device}
		if result, err = x.run(ctx); err == nil {
			err = device.Close()
		}
		return err
	})
	if err = errors.Join(err, file.Close()); err != nil {
		return Compressed{}, fmt.Errorf("compress: %w", err)
	}
	result.Fallback = fallback
	result.Took = time.Since(began)
	return result, nil
}

// compressor is one call of Compress.
type compressor struct {
	Compression
	file   *weights.Model
	device gpu.Device
	model  *compress.Model
	scorer compress.Scorer
	header contextfile.Header
	texts  compress.Texts // but for notes that the model writes
	old    map[string][][]byte
	had    contextfile.Header // of the file that has them

	opening []int32
	result  Compressed
	pace    pace
}

func (x *compressor) run(ctx context.Context) (Compressed, error) {
	model, err := llama.New(x.file, x.device)
	if err != nil {
		return Compressed{}, fmt.Errorf("model %s: %w", x.Model, err)
	}
	if x.model, err = compress.New(model, x.Threads); err != nil {
		return Compressed{}, err
	}
	defer x.model.Close()
	x.model.Progress = x.progress
	if x.scorer, err = compress.ByName(x.Scorer); err != nil {
		return Compressed{}, err
	}
	x.prepare()
	parts, err := x.cut()
	if err != nil {
		return Compressed{}, err
	}
	for _, p := range parts {
		x.header.Slots += p.slots
	}
	if most := x.file.Context - 2*llama.PageTokens; x.header.Slots > most {
		return Compressed{}, fmt.Errorf("Compression.Budget %s: %d tokens would be kept, a chat with this model has room for %d",
			x.Budget, x.header.Slots, most)
	}
	if err := x.look(); err != nil {
		return Compressed{}, err
	}
	x.plan(parts)
	var pages [][]byte
	var head *compress.Part
	defer func() {
		if head != nil {
			head.Close()
		}
	}()
	for _, p := range parts {
		encoded := x.old[p.key]
		if encoded == nil || p.whole {
			kept, err := x.part(ctx, &head, p)
			if err != nil {
				return Compressed{}, err
			}
			if encoded, err = x.header.Encode(kept); err != nil {
				return Compressed{}, err
			}
			x.end(p)
		} else {
			x.result.Reused++
			if x.header.Profile {
				x.header.Profile, x.header.NotesDrift = x.had.Profile, x.had.NotesDrift
			}
		}
		pages = append(pages, encoded...)
		x.header.Parts = append(x.header.Parts, contextfile.Part{Key: p.key, Sources: p.sources, Tokens: len(p.tokens), Slots: p.slots})
	}
	if err := contextfile.Write(x.Out, x.header, pages); err != nil {
		return Compressed{}, fmt.Errorf("Compression.Out: %w", err)
	}
	info, err := InspectContext(x.Out)
	x.result.CompressedContext, x.result.Parts = info, len(parts)
	x.result.Prefill = x.once()
	return x.result, err
}

// prepare makes what does not depend on documents.
func (x *compressor) prepare() {
	x.opening = compress.Opening(x.file, "Read the documents below. The task: "+strings.TrimSpace(x.Task)+"\n\n")
	user := func(text string) []int32 {
		return compress.Behind(x.file, []engines.Message{{Role: "user", Content: text}})
	}
	x.texts = compress.Texts{Prompt: user(compress.Prompts[x.NotesKind]), Repeat: user(compress.Repeat)}
	identity := x.file.Identity()
	x.header = contextfile.Header{
		Version: contextfile.Version, Model: x.file.Name, Identity: hex.EncodeToString(identity[:]), Kernel: x.device.Kernel(),
		Layers: x.file.Layers, KV: x.file.KVHeads, Dim: x.file.HeadDim,
		Format: x.Format, Mode: contextfile.Joint, Scorer: x.Scorer, Task: strings.TrimSpace(x.Task), Notes: "none",
	}
	if x.ByDocument {
		x.header.Mode = contextfile.ByDocument
	}
	if !compress.NeedsNotes(x.scorer) {
		return
	}
	x.header.Notes = "model"
	if x.Notes != "" {
		x.header.Notes, x.header.NotesHash = "given", hash([]byte(x.Notes))
		x.texts.Notes = x.file.Tokenizer.Encode(x.Notes, false)
	}
}

// look reads what an earlier file has. One that is not there, or that does not fit, has nothing; what is no context is not overwritten.
func (x *compressor) look() error {
	f, err := contextfile.Open(x.Out)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(x.Out)); err != nil {
			return fmt.Errorf("Compression.Out: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("Compression.Out: %w: it is not overwritten", err)
	}
	x.old, x.had = map[string][][]byte{}, f.Header
	for i, p := range f.Parts {
		x.old[p.Key] = f.Pages(i)
	}
	return nil
}

// part computes a part, behind the head that it needs.
func (x *compressor) part(ctx context.Context, head **compress.Part, p *corpusPart) (*compress.Kept, error) {
	if p.whole {
		var err error
		if *head, err = x.model.Head(ctx, p.tokens); err != nil {
			return nil, err
		}
		return (*head).Whole()
	}
	began := time.Now()
	part, err := x.model.Part(ctx, *head, p.tokens, x.texts)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	x.measure(p, time.Since(began))
	if x.header.Notes == "model" {
		if part.Notes, err = part.Continue(ctx, part.Prompt, x.writer()); err != nil {
			return nil, err
		}
		if len(part.Notes) == 0 {
			return nil, fmt.Errorf("%s: the model wrote no notes; give some", p.sources[0].Name)
		}
		x.result.Notes = append(x.result.Notes, x.file.Tokenizer.Decode(part.Notes, false))
	}
	scores, err := x.scorer.Score(ctx, part)
	if err != nil {
		return nil, err
	}
	kept, err := part.Keep(scores, p.slots)
	if err == nil && x.header.Profile {
		x.header.Profile, err = part.Look(ctx, kept)
		x.header.NotesDrift = kept.Own
	}
	return kept, err
}

// writer chooses the tokens of notes: always the first, as the paper has it, until they end, are long enough, or go round in circles.
func (x *compressor) writer() func(logits []float32) int32 {
	var written []int32
	return func(logits []float32) int32 {
		best := greedy(logits)
		if len(written) == x.MaxNotes || slices.Contains(x.file.Stop, best) || circles(written) {
			return -1
		}
		written = append(written, best)
		return best
	}
}

// circles reports whether tokens end with the same 4 or more, up to 64, three times.
func circles(tokens []int32) bool {
	for n := 4; n <= 64 && 3*n <= len(tokens); n++ {
		end := tokens[len(tokens)-3*n:]
		if slices.Equal(end[:n], end[n:2*n]) && slices.Equal(end[:n], end[2*n:]) {
			return true
		}
	}
	return false
}
