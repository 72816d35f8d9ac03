package membench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/lab/figures"
	"github.com/ragpilot/ragpilot/memory"
)

// LoadOptions say how many memories [Load] measures.
type LoadOptions struct {
	Memories int // of one user, at least 1
	Writers  int // that add while it is searched a second time; 0: none
	// Pause is how long a writer waits between two adds; 0: they add as fast as they can, and the store grows with that.
	Pause    time.Duration
	Searches int // 0: [DefaultSearches]
	Adds     int // one after the other; 0: [DefaultAdds]
	Seed     uint64
	// Size returns the bytes that the store has on disk; nil: it has none.
	Size func() (int64, error)
	// Progress is called with each step before it runs, and nil is allowed.
	Progress func(step string)
}

// Defaults of [LoadOptions].
const (
	DefaultSearches = 1000
	DefaultAdds     = 200
)

// Loaded is what a store with many memories of one user needs. Bytes of memory are 0 where the system does not report them.
type Loaded struct {
	Store    string `json:"store"`
	Embedder string `json:"embedder"`
	Memories int    `json:"memories"`
	// Filling is how long that took; its vectors are made up, see [Load].
	Filling time.Duration `json:"filling_ns"`
	// First is the first search, which may read what later ones find in memory.
	First  time.Duration `json:"first_search_ns"`
	Search Times         `json:"search"`
	Add    Times         `json:"add"`
	// SearchBusy and AddBusy are the times while Writers add, each with the Pause between two adds.
	Writers    int           `json:"writers,omitempty"`
	Pause      time.Duration `json:"pause_ns,omitempty"`
	SearchBusy Times         `json:"search_while_writing,omitzero"`
	AddBusy    Times         `json:"add_while_searching,omitzero"`
	// Before is the resident memory of the process before the store was opened, embedder included, After that after the
	// searches, and Peak the most since the store was filled.
	Before int64 `json:"resident_before_bytes,omitempty"`
	After  int64 `json:"resident_bytes,omitempty"`
	Peak   int64 `json:"resident_peak_bytes,omitempty"`
	// Disk is what the store has on disk after it was filled.
	Disk int64 `json:"disk_bytes,omitempty"`
}

// loadScope is the one user of a load.
var loadScope = memory.Scope{User: "load"}

// Load fills a store with memories of one user and measures it. The memories are generated facts with a date in front. They
// are imported with their history, and with vectors that are random directions of the embedder's length, since making real ones would
// take hours: what is searched for and added afterwards has the embedder's own. What is found means nothing, what it costs does.
func Load(ctx context.Context, target Target, opts LoadOptions) (_ Loaded, err error) {
	if opts.Memories < 1 {
		return Loaded{}, fmt.Errorf("memories %d: want at least 1", opts.Memories)
	}
	if opts.Searches < 1 {
		opts.Searches = DefaultSearches
	}
	if opts.Adds < 1 {
		opts.Adds = DefaultAdds
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	l := &load{LoadOptions: opts, target: target, text: newLoadText(opts.Seed)}
	l.out = Loaded{Store: target.Store, Embedder: target.Name, Memories: opts.Memories, Writers: opts.Writers, Pause: opts.Pause}
	// it has its memory from here on
	if _, err := target.Embedder.EmbedQuery(ctx, "What is the plan?"); err != nil && !errors.Is(err, embed.ErrNotReady) {
		return Loaded{}, err
	}
	l.out.Before, _ = resident()
	backend, err := target.Open(ctx)
	if err != nil {
		return Loaded{}, err
	}
	if err := l.fill(ctx, backend); err != nil {
		return Loaded{}, errors.Join(fmt.Errorf("fill: %w", err), backend.Close())
	}
	store, err := memory.New(backend, memory.Config{Embedder: target.Embedder})
	if err != nil {
		return Loaded{}, errors.Join(err, backend.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	resetPeak()
	if err := l.measure(ctx, store); err != nil {
		return Loaded{}, err
	}
	return l.out, nil
}

// load is a [Load] on its way.
type load struct {
	LoadOptions
	target Target
	text   *loadText
	out    Loaded
}

// fill imports the memories.
func (l *load) fill(ctx context.Context, backend memory.Backend) error {
	l.Progress(fmt.Sprintf("filling the store with %d memories", l.Memories))
	embedder := l.target.Embedder
	probe, err := embedder.EmbedQuery(ctx, "length")
	switch {
	case err == nil:
		embedder = filler{name: embed.NameOf(embedder), dimensions: len(probe)}
	case !errors.Is(err, embed.ErrNotReady): // there are no vectors then
		return err
	}
	store, err := memory.New(backend, memory.Config{Embedder: embedder})
	if err != nil {
		return err
	}
	began := time.Now()
	read, write := io.Pipe()
	go func() { write.CloseWithError(l.write(write)) }()
	done, err := store.Import(ctx, read)
	_ = read.CloseWithError(err) // ends the goroutine if the import failed
	if err != nil {
		return err
	}
	if done.Memories != l.Memories {
		return fmt.Errorf("%d memories are stored, want %d", done.Memories, l.Memories)
	}
	l.out.Filling = time.Since(began)
	if l.Size != nil {
		l.out.Disk, err = l.Size()
	}
	return err
}

// write writes memories with their history as [memory.Porter] reads them.
func (l *load) write(w io.Writer) error {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for i := range l.Memories {
		at = at.Add(time.Minute)
		m := memory.Memory{
			ID: fmt.Sprintf("m%09d", i), Text: l.text.next(), Scope: loadScope, Role: string(memory.User), CreatedAt: at,
			UpdatedAt: at,
		}
		r := memory.Revision{
			ID: fmt.Sprintf("r%09d", i), MemoryID: m.ID, Event: memory.Added, Scope: loadScope, New: m.Text, Role: m.Role,
			At: at,
		}
		lines.Reset()
		err := errors.Join(
			enc.Encode(struct {
				Memory memory.Memory `json:"memory"`
			}{m}),
			enc.Encode(struct {
				Revision memory.Revision `json:"revision"`
			}{r}))
		if err != nil {
			return err
		}
		if _, err := w.Write(lines.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// measure searches, adds, and does both at once.
func (l *load) measure(ctx context.Context, store memory.Store) error {
	questions := l.text.questions()
	l.Progress("searching")
	began := time.Now()
	if _, err := search(ctx, store, questions[0]); err != nil {
		return err
	}
	l.out.First = time.Since(began)
	const warm = 20
	if _, err := l.searches(ctx, store, questions, warm); err != nil {
		return err
	}
	var err error
	if l.out.Search, err = l.searches(ctx, store, questions, l.Searches); err != nil {
		return err
	}
	l.out.After, l.out.Peak = resident()
	l.Progress("adding")
	var times []time.Duration
	for range l.Adds {
		took, err := l.add(ctx, store)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	l.out.Add = timesOf(times)
	if l.Writers > 0 {
		err = l.busy(ctx, store, questions)
	}
	return err
}

// busy searches while writers add.
func (l *load) busy(ctx context.Context, store memory.Store, questions []string) error {
	l.Progress(fmt.Sprintf("searching while %d writers add", l.Writers))
	over := make(chan struct{})
	var wg sync.WaitGroup
	took, failed := make([][]time.Duration, l.Writers), make([]error, l.Writers)
	for i := range l.Writers {
		wg.Go(func() {
			for more := true; more && failed[i] == nil; { // once at least: on one processor the searches can be faster
				var d time.Duration
				d, failed[i] = l.add(ctx, store)
				took[i] = append(took[i], d)
				select {
				case <-over:
					more = false
				case <-time.After(l.Pause):
				}
			}
		})
	}
	var err error
	l.out.SearchBusy, err = l.searches(ctx, store, questions, l.Searches)
	close(over)
	wg.Wait()
	if err := errors.Join(err, errors.Join(failed...)); err != nil {
		return err
	}
	var all []time.Duration
	for _, times := range took {
		all = append(all, times...)
	}
	l.out.AddBusy = timesOf(all)
	if _, peak := resident(); peak > 0 {
		l.out.Peak = peak
	}
	return nil
}

func (l *load) add(ctx context.Context, store memory.Store) (time.Duration, error) {
	text := l.text.next()
	began := time.Now()
	_, err := store.Add(ctx, loadScope, []memory.Message{{Role: memory.User, Content: text}}, memory.AddOptions{})
	return time.Since(began), err
}

// searches asks n questions, one after the other.
func (l *load) searches(ctx context.Context, store memory.Store, questions []string, n int) (Times, error) {
	times := make([]time.Duration, n)
	found := 0
	for i := range n {
		began := time.Now()
		hits, err := search(ctx, store, questions[i%len(questions)])
		if err != nil {
			return Times{}, err
		}
		times[i] = time.Since(began)
		found += hits
	}
	if found == 0 {
		return Times{}, fmt.Errorf("%d searches found nothing among %d memories", n, l.Memories)
	}
	return timesOf(times), nil
}

// search returns how many memories were found.
func search(ctx context.Context, store memory.Store, question string) (int, error) {
	hits, err := store.Search(ctx, loadScope, question, 0, memory.SearchOptions{})
	return len(hits), err
}

// filler makes random directions, the same for the same text. It has the name of the embedder whose place it takes.
type filler struct {
	name       string
	dimensions int
}

var _ embed.Named = filler{}

// Name is that of the embedder.
func (f filler) Name() string { return f.name }

// EmbedDocuments returns a direction for each text.
func (f filler) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		r := rand.New(rand.NewPCG(xxh3.HashString(text), 0))
		v := make([]float32, f.dimensions)
		for j := range v {
			v[j] = float32(r.NormFloat64())
		}
		vectors[i] = unit(v)
	}
	return vectors, nil
}

// EmbedQuery returns the direction of one text.
func (f filler) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := f.EmbedDocuments(ctx, []string{text})
	return vectors[0], err
}

// Write prints a table.
func (l *Loaded) Write(out io.Writer) error {
	fmt.Fprintf(out,
		"%d memories of one user; store %s, embedder %s; their vectors are random directions, those of questions and added facts the "+
			"embedder's\n\n",
		l.Memories, l.Store, l.Embedder)
	w := figures.LeftTable(out)
	fmt.Fprintln(w, "CALL\tTIMES\tP50\tP99")
	for _, row := range []struct {
		name  string
		times Times
	}{
		{"search", l.Search},
		{"add", l.Add},
		{fmt.Sprintf("search, %d writers", l.Writers), l.SearchBusy},
		{fmt.Sprintf("add, %d writers, %v between two adds", l.Writers, l.Pause), l.AddBusy},
	} {
		if row.times.Count > 0 {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", row.name, row.times.Count, short(row.times.P50), short(row.times.P99))
		}
	}
	fmt.Fprintf(w, "first search\t1\t%s\t\n", short(l.First))
	fmt.Fprintf(w, "filling\t1\t%s\t\n", l.Filling.Round(10*time.Millisecond))
	if l.After > 0 {
		fmt.Fprintf(w, "\nresident memory before\t%s\n", mebibytes(l.Before))
		fmt.Fprintf(w, "resident memory after the searches\t%s\t%d bytes a memory\n", mebibytes(l.After),
			max(l.After-l.Before, 0)/int64(l.Memories))
		fmt.Fprintf(w, "resident memory, peak since filled\t%s\n", mebibytes(l.Peak))
	}
	if l.Disk > 0 {
		fmt.Fprintf(w, "on disk\t%s\t%d bytes a memory, history included\n", mebibytes(l.Disk), l.Disk/int64(l.Memories))
	}
	return w.Flush()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// loadText makes facts that differ. It is safe for concurrent use.
type loadText struct {
	mu   sync.Mutex
	g    generator       // guarded by mu
	seen map[string]bool // guarded by mu
}

func newLoadText(seed uint64) *loadText {
	return &loadText{g: generator{rand: rand.New(rand.NewPCG(seed, math.MaxUint64))}, seen: map[string]bool{}}
}

// next returns a fact with a date, unlike all before.
func (l *loadText) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		f := l.g.fact(&texts().Patterns[l.g.rand.IntN(len(texts().Patterns))])
		text := fmt.Sprintf("%d %s %d: %s", 1+l.g.rand.IntN(28), l.g.one("months"), 1990+l.g.rand.IntN(36), f.text)
		if !l.seen[text] {
			l.seen[text] = true
			return text
		}
	}
}

// questions returns the questions of all patterns in a random order.
func (l *loadText) questions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]string, 0, 2*len(texts().Patterns))
	for i := range texts().Patterns {
		all = append(all, l.g.fact(&texts().Patterns[i]).ask...)
	}
	l.g.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// unit brings a vector to length 1.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(max(sum, math.SmallestNonzeroFloat64)))
	for i := range v {
		v[i] *= scale
	}
	return v
}

// resident returns the resident memory of the process and the most there was, in bytes, after what is not used was given back; 0
// where there is no /proc as Linux has it.
func resident() (now, peak int64) {
	debug.FreeOSMemory()
	now, peak, _ = figures.Memory(os.Getpid())
	return now, peak
}

// resetPeak has the peak begin anew where Linux allows that.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak then includes the filling, and nothing else is wrong
}
