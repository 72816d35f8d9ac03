//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/sqlite"
)

// reembedFile names the environment variable that makes this program one that reembeds the file that it names, and reembedSign
// the one with the sign of the fake embedder.
const (
	reembedFile = "MEMORY_SQLITE_TEST_REEMBED"
	reembedSign = "MEMORY_SQLITE_TEST_SIGN"
)

// fakeEmbedder is a fake: the hashed one with another name, and vectors that point the other way if sign is "-". Before each
// batch it calls wait.
type fakeEmbedder struct {
	embed.Hashed
	sign string
	wait func()
}

func newFake(sign string, wait func()) fakeEmbedder {
	return fakeEmbedder{embed.NewHashed(384), sign, wait}
}

func (f fakeEmbedder) Name() string { return "fake" + f.sign }

func (f fakeEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	f.wait()
	vectors, err := f.Hashed.EmbedDocuments(ctx, texts)
	for _, v := range vectors {
		f.turn(v)
	}
	return vectors, err
}

func (f fakeEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := f.Hashed.EmbedQuery(ctx, text)
	f.turn(v)
	return v, err
}

func (f fakeEmbedder) turn(v []float32) {
	if f.sign == "-" {
		for i := range v {
			v[i] = -v[i]
		}
	}
}

// reembedChild brings a file to a fake embedder and ends. It prints a line before each batch, and goes on when it reads one.
func reembedChild(path string) error {
	ctx := context.Background()
	in := bufio.NewScanner(os.Stdin)
	wait := func() {
		fmt.Println("batch")
		in.Scan()
	}
	backend, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	store, err := memory.New(backend, memory.Config{Embedder: newFake(os.Getenv(reembedSign), wait)})
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	return errors.Join(store.Reembed(ctx), store.Close())
}

// A process that is killed while it reembeds leaves no vector of another embedder than the one recorded, and no memory
// is lost; a later one goes on. Who reads meanwhile finds each memory, or is refused as of another embedder.
func TestReembedKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	testkit.NotUnderRace(t) // the processes have one goroutine each
	path := filepath.Join(t.TempDir(), "memories.db")
	backend, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	embedders := map[string]embed.Embedder{
		"hashed-v1-384": embed.NewHashed(384), "fake+": newFake("+", func() {}),
		"fake-": newFake("-", func() {}),
	}
	stores := map[string]*memory.Local{}
	for name, e := range embedders {
		if stores[name], err = memory.New(backend, memory.Config{Embedder: e, Extractor: memory.Everything{}}); err != nil {
			t.Fatal(err)
		}
	}
	const memories = 700 // eleven batches
	var texts []string
	for i := range memories {
		texts = append(texts, fmt.Sprintf("Ana keeps number%d in the attic.", i))
	}
	mustAdd(t, stores["hashed-v1-384"], memory.Scope{User: "ana"}, texts...)

	random := rand.New(rand.NewPCG(5, 6))
	partial, target := 0, "-" // kills that left some memories without vectors
	for round := range 20 {
		ended := reembedAndKill(t, path, target, random, func() {
			read(t, stores, texts[random.IntN(memories)], memories)
		})
		recorded, made := checkVectors(t, backend, embedders, texts)
		if made > 0 && made < memories {
			partial++
		}
		if ended && (recorded != "fake"+target || made != memories) {
			t.Errorf("round %d: %d vectors of %q after the end, want %d of fake%s", round, made, recorded, memories, target)
		}
		if recorded == "fake"+target && made == memories { // another way round, so that there is always something to do
			target = map[string]string{"-": "+", "+": "-"}[target]
		}
	}
	if partial < 3 {
		t.Errorf("%d of 20 kills were in the midst of it", partial)
	}
	if err := stores["fake"+target].Reembed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if recorded, made := checkVectors(t, backend, embedders, texts); recorded != "fake"+target || made != memories {
		t.Errorf("at the end: %d vectors of %q", made, recorded)
	}
	integrity(t, path)
}

// reembedAndKill has a process reembed, calls each before every batch, and kills the process a random while after a random
// batch has begun. ended: it was done before.
func reembedAndKill(t *testing.T, path, sign string, random *rand.Rand, each func()) (ended bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), reembedFile+"="+path, reembedSign+"="+sign)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	goOn, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	batch, wait := 1+random.IntN(6), time.Duration(random.IntN(4000))*time.Microsecond
	for in := bufio.NewScanner(out); in.Scan(); batch-- {
		if in.Text() != "batch" {
			t.Errorf("the child says %q", in.Text())
		}
		each()
		_, _ = goOn.Write([]byte("\n")) // it may have been killed
		if batch == 1 {
			time.Sleep(wait)
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	return cmd.Wait() == nil
}

// read searches for a text with each embedder: one that is the recorded one's finds it, without a vector or with that of the
// embedder; any other is refused.
func read(t *testing.T, stores map[string]*memory.Local, text string, most int) {
	t.Helper()
	for name, store := range stores {
		hits, err := store.Search(t.Context(), memory.Scope{User: "ana"}, text, most, memory.SearchOptions{})
		if errors.Is(err, memory.ErrEmbedder) {
			continue
		}
		at := slices.IndexFunc(hits, func(h memory.Hit) bool { return h.Memory.Text == text })
		switch {
		case err != nil || at < 0:
			t.Errorf("%s: %q is not found, %v", name, text, err)
		case hits[at].Semantic != 0 && hits[at].Semantic < 0.99:
			t.Errorf("%s: %q is compared with the vector of another embedder: %v", name, text, hits[at].Semantic)
		}
	}
}

// checkVectors compares each vector with the one that the recorded embedder makes of the text, and the texts with those that there must be.
func checkVectors(t *testing.T, backend *sqlite.Backend, embedders map[string]embed.Embedder, want []string) (recorded string, made int) {
	t.Helper()
	var records []memory.Record
	state, err := backend.Follow(t.Context(), memory.Scope{User: "ana"}, 0, memory.Changes{Reset: func() {}, Put: func(r *memory.Record) {
		records = append(records, memory.Record{Memory: r.Memory, Vector: slices.Clone(r.Vector)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := embedders[state.Space.Embedder]
	if e == nil || state.Space.Dimensions != 384 {
		t.Fatalf("space %+v", state.Space)
	}
	var texts []string
	for _, r := range records {
		texts = append(texts, r.Memory.Text)
		if len(r.Vector) == 0 {
			continue
		}
		made++
		v, err := e.EmbedQuery(t.Context(), r.Memory.Text)
		if err != nil || !slices.Equal(v, r.Vector) {
			t.Errorf("%q: its vector is not of %s, %v", r.Memory.Text, state.Space.Embedder, err)
		}
	}
	slices.Sort(texts)
	if !slices.Equal(texts, slices.Sorted(slices.Values(want))) {
		t.Errorf("%d memories, want the %d that were stored", len(texts), len(want))
	}
	return state.Space.Embedder, made
}
