package runner_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines/local/internal/kvfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/kvstore"
	"github.com/ragpilot/ragpilot/engines/local/internal/runner"
)

// fakeFiles keeps pages in memory, and does what real files do seldom.
type fakeFiles struct {
	mu     sync.Mutex
	pages  map[kvfile.ID][]float32
	reads  int
	writes int
	read   func(n int) error // called under no lock, with the number of the read
	write  func(n int) error
}

func newFakeFiles() *fakeFiles { return &fakeFiles{pages: map[kvfile.ID][]float32{}} }

func (*fakeFiles) Writable() bool { return true }

func (f *fakeFiles) Has(id kvfile.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pages[id] != nil
}

func (f *fakeFiles) Read(id kvfile.ID, page []float32) error {
	f.mu.Lock()
	f.reads++
	n := f.reads
	f.mu.Unlock()
	if f.read != nil {
		if err := f.read(n); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[id] == nil {
		return fs.ErrNotExist
	}
	copy(page, f.pages[id])
	return nil
}

func (f *fakeFiles) Write(id kvfile.ID, page []float32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.write != nil {
		if err := f.write(f.writes); err != nil {
			return err
		}
	}
	f.pages[id] = slices.Clone(page)
	return nil
}

func (f *fakeFiles) Forget(salt [32]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.pages {
		if id.Salt == salt {
			delete(f.pages, id)
		}
	}
	return nil
}

func (*fakeFiles) Removed() [][32]byte { return nil }

func (f *fakeFiles) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pages)
}

// answer runs a prompt alone, and returns what was generated and how much of the prompt was not computed.
func answer(t testing.TB, r *runner.Runner, tokens []int32, salt string) ([]int32, int) {
	t.Helper()
	x := r.Submit(runner.Request{Prompt: tokens, Max: 8, Salt: salt, Sample: greedy})
	return all(t, x), x.Result().Cached
}

// What one process has computed, another one loads.
func TestRestart(t *testing.T) {
	files := newFakeFiles()
	config := runner.Config{Pages: 40, Running: 2, Step: 32, Files: files}
	first := newRunner(t, config)
	want, _ := answer(t, first, prompt(1, 400), "")
	first.Close()
	if n := files.count(); n != 25 {
		t.Fatalf("%d pages were saved of 407 tokens", n)
	}
	second := newRunner(t, config)
	got, cached := answer(t, second, prompt(1, 400), "")
	if !slices.Equal(got, want) || cached != 384 {
		t.Errorf("after the restart %v with %d tokens cached, want %v with 384", got, cached, want)
	}
	if s := second.Stats(); s.Prompt != 16 || s.Loaded != 24 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	if got, cached := answer(t, second, prompt(1, 410), ""); cached != 400 {
		t.Errorf("%d tokens are cached, answer %v", cached, got)
	}
	if files.reads != 24 {
		t.Errorf("%d pages were read", files.reads)
	}
}

// A request that waits for a file holds up no other, and does not wait for it for long.
func TestDiskThatDoesNotAnswer(t *testing.T) {
	files := newFakeFiles()
	config := runner.Config{Pages: 60, Running: 3, Step: 32, Files: files}
	first := newRunner(t, config)
	want, _ := answer(t, first, prompt(1, 400), "")
	first.Close()
	hang, hangs := make(chan struct{}), make(chan struct{})
	files.read = func(n int) error {
		if n == 3 {
			close(hangs)
			<-hang
		}
		return nil
	}
	r := newRunner(t, config)
	slow := r.Submit(runner.Request{Prompt: prompt(1, 400), Max: 8, Sample: greedy})
	gone := r.Submit(runner.Request{Prompt: prompt(1, 390), Max: 8, Sample: greedy})
	<-hangs
	gone.Cancel(errors.New("the client has gone"))
	answer(t, r, prompt(2, 200), "")
	if got := all(t, slow); !slices.Equal(got, want) || slow.Result().Cached < 2*kvstore.PageTokens {
		t.Errorf("computed in place of loaded: %v, want %v; %d cached", got, want, slow.Result().Cached)
	}
	close(hang)
	r.Clear()
	if _, cached := answer(t, r, prompt(1, 400), ""); cached != 0 {
		t.Errorf("%d tokens were loaded from a disk that was slow a moment ago", cached)
	}
	if s := r.Stats(); s.Used != 0 {
		t.Errorf("%+v", s)
	}
}

// stored returns files that have the pages of the prompts of 400 tokens with these seeds, and the settings of a runner with them.
func stored(t testing.TB, config runner.Config, seeds ...int) (*fakeFiles, runner.Config) {
	t.Helper()
	files := newFakeFiles()
	config.Files = files
	first := newRunner(t, config)
	for _, seed := range seeds {
		answer(t, first, prompt(seed, 400), "")
	}
	first.Close()
	return files, config
}

// The first prompt after a start is loaded, though it is not known yet how long computing takes.
func TestLoadsOfTheFirstPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, config := stored(t, runner.Config{Pages: 40, Running: 2, Step: 32}, 1)
		files.read = func(int) error { time.Sleep(15 * time.Millisecond); return nil }
		if _, cached := answer(t, newRunner(t, config), prompt(1, 400), ""); cached != 384 {
			t.Errorf("%d tokens were loaded, want 384", cached)
		}
	})
}

// A page that was loaded in time, given up and is being loaded again is not late by the first time's clock.
func TestLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, config := stored(t, runner.Config{Pages: 30, Running: 2, Step: 32}, 1)
		r := newRunner(t, config)
		answer(t, r, prompt(1, 400), "")
		time.Sleep(150 * time.Millisecond)
		answer(t, r, prompt(2, 400), "")
		reads := files.reads
		files.read = func(n int) error {
			if n == reads+1 {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}
		if _, cached := answer(t, r, prompt(1, 400), ""); cached != 384 {
			t.Errorf("%d tokens were loaded, want 384", cached)
		}
	})
}

// loadedFrom returns how many tokens of a prompt are loaded from a disk that is read like this, where a token takes so long to compute. It runs in
// a bubble of synctest.
func loadedFrom(t *testing.T, pace time.Duration, read func(n int) error) int {
	t.Helper()
	files, config := stored(t, runner.Config{Pages: 60, Running: 3, Step: 32}, 1, 2)
	files.read = read
	r := newRunner(t, config)
	r.SetPace(pace)
	answer(t, r, prompt(1, 400), "")
	r.SetPace(pace)
	_, cached := answer(t, r, prompt(2, 400), "")
	return cached
}

// Loading goes on when one page took long.
func TestOneSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached := loadedFrom(t, time.Millisecond, func(n int) error {
			if n == 1 {
				time.Sleep(50 * time.Millisecond) // as long as three take to compute
			}
			return nil
		})
		if cached != 384 {
			t.Errorf("%d tokens were loaded, want 384", cached)
		}
	})
}

// Loading is given up for a while when computing is faster.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pace := range []time.Duration{0, time.Millisecond} { // 0: it is not known yet
			if cached := loadedFrom(t, pace, func(int) error { time.Sleep(50 * time.Millisecond); return nil }); cached != 0 {
				t.Errorf("%d tokens were loaded where one is computed in %s", cached, pace)
			}
		}
	})
}

// Pages that cannot be read are computed, those behind them are loaded all the same.
func TestDamagedPages(t *testing.T) {
	files := newFakeFiles()
	config := runner.Config{Pages: 40, Running: 2, Step: 32, Files: files}
	first := newRunner(t, config)
	want, _ := answer(t, first, prompt(1, 400), "")
	first.Close()
	files.read = func(n int) error {
		if n%5 == 2 {
			return kvfile.ErrDamaged
		}
		return nil
	}
	r := newRunner(t, config)
	got, cached := answer(t, r, prompt(1, 400), "")
	if !slices.Equal(got, want) || cached != 384-5*kvstore.PageTokens {
		t.Errorf("%v with %d tokens cached, want %v", got, cached, want)
	}
}

// Nothing is written for a while after an error.
func TestFullDisk(t *testing.T) {
	files := newFakeFiles()
	files.write = func(n int) error {
		if n > 3 {
			return errors.New("no space left on device")
		}
		return nil
	}
	r := newRunner(t, runner.Config{Pages: 40, Running: 2, Step: 32, Files: files})
	answer(t, r, prompt(1, 400), "")
	answer(t, r, prompt(2, 400), "")
	r.Close()
	if files.count() != 3 || files.writes != 4 {
		t.Errorf("%d pages in %d writes", files.count(), files.writes)
	}
}

// Pages with a salt stay in memory unless the settings say otherwise, and can be deleted.
func TestSaltedFiles(t *testing.T) {
	for _, salted := range []bool{false, true} {
		files := newFakeFiles()
		r := newRunner(t, runner.Config{Pages: 100, Running: 2, Step: 32, Files: files, SaltedFiles: salted})
		for _, salt := range []string{"", "one", "two"} {
			answer(t, r, prompt(1, 100), salt)
		}
		saved := 6
		if salted {
			saved = 18
		}
		waitFor(t, "pages are saved", func() bool { return files.count() == saved })
		if err := r.Forget("one"); err != nil {
			t.Fatal(err)
		}
		if _, cached := answer(t, r, prompt(1, 100), "one"); cached != 0 {
			t.Errorf("%d tokens are known after they were forgotten", cached)
		}
		if _, cached := answer(t, r, prompt(1, 100), ""); cached != 96 {
			t.Errorf("%d tokens without a salt are known", cached)
		}
		r.Close()
		for id := range files.pages {
			if !salted && id.Salt != kvstore.SaltOf("") {
				t.Error("a page with a salt was saved")
			}
		}
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: ", what)
		}
	}
}

// Whatever files do, every answer is that of a runner without them.
func TestAnswersBehindUnreliableFiles(t *testing.T) {
	reference := newRunner(t, runner.Config{Pages: 100, Running: 2, Step: 32})
	want := make([][]int32, 6)
	for i := range want {
		want[i], _ = answer(t, reference, prompt(i/2, 150+20*i), "")
	}
	files := newFakeFiles()
	pause := func(int) error { time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond); return nil }
	files.write = pause
	files.read = func(n int) error {
		if n%7 == 3 {
			return kvfile.ErrDamaged
		}
		return pause(n)
	}
	r := newRunner(t, runner.Config{Pages: 24, Running: 3, Step: 32, Files: files})
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := range 40 {
				n := (i*7 + c*3) % len(want)
				if got, _ := answer(t, r, prompt(n/2, 150+20*n), ""); !slices.Equal(got, want[n]) {
					t.Errorf("client %d, request %d: %v, want %v", c, i, got, want[n])
				}
				if i%16 == 15 {
					if err := r.Forget(""); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	clients.Wait()
	answer(t, r, prompt(0, 150), "")
	waitFor(t, "pages are saved", func() bool { return files.count() >= 9 })
	r.Clear() // of the prompt that follows something is loaded, also if saving came too late for all others
	answer(t, r, prompt(0, 150), "")
	if s := r.Stats(); s.Loaded == 0 || s.Used != 0 {
		t.Errorf("%+v", s)
	}
}
