package memorytest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/memory"
)

// patience bounds a check, so that a store that hangs fails the suite instead of stopping it.
const patience = 60 * time.Second

// clock stands still unless it is moved; every reading is a millisecond after the one before, so that nothing happens at
// the same time by accident.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// tester is a test whose checks are short.
type tester struct {
	*testing.T
	ctx context.Context
}

// must ends the test with an error.
func (t *tester) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal compares two values.
func (t *tester) equal(what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// fails checks that a call has the error.
func (t *tester) fails(what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// errorOf returns the error of a call that returns a value as well.
func errorOf(_ any, err error) error { return err }

// bench is what a check works with.
type bench struct {
	tester
	store memory.Store
	clock *clock
}

// check is one property of a store.
type check struct {
	name string
	run  func(b *bench)
}

// checks returns the suite.
func checks() []check {
	return []check{
		{"ScopeIsRequired", checkScopeRequired},
		{"ScopesAreSeparate", checkScopes},
		{"Verbatim", checkVerbatim},
		{"RepeatsAreStoredOnce", checkRepeats},
		{"Fields", checkFields},
		{"OddTexts", checkOddTexts},
		{"LargeText", checkLargeText},
		{"Empty", checkEmpty},
		{"NotFound", checkNotFound},
		{"Update", checkUpdate},
		{"UpdateRefused", checkUpdateRefused},
		{"Delete", checkDelete},
		{"DeleteKeepsHistory", checkDeleteKeepsHistory},
		{"DeleteAll", checkDeleteAll},
		{"Expiry", checkExpiry},
		{"GetMany", checkGetMany},
		{"ActionsAreApplied", checkActions},
		{"UnknownIDsAreDropped", checkUnknownIDs},
		{"AllOrNothing", checkAllOrNothing},
		{"SearchRanks", checkSearchRanks},
		{"SearchBounds", checkSearchBounds},
		{"SearchOrderOfEquals", checkSearchEquals},
		{"SearchIgnoresOthers", checkSearchIgnoresOthers},
		{"Filters", checkFilters},
		{"BadFilters", checkBadFilters},
		{"ResultsBelongToCaller", checkOwnership},
		{"ConcurrentAdds", checkConcurrentAdds},
		{"ConcurrentUse", checkConcurrentUse},
		{"Cancelled", checkCancelled},
		{"Reset", checkReset},
		{"Closed", checkClosed},
		{"Port", checkPort},
		{"PortTwice", checkPortTwice},
		{"BadImports", checkBadImports},
		{"MessageLog", checkMessageLog},
		{"Model", checkModel},
	}
}

// Run checks that the stores made by open keep the contract of [memory.Store], each check in a subtest with a store of its
// own that is empty. open makes a store with cfg's clock, extractor and embedder where they are set; a store that works
// elsewhere makes its server so. The suite closes the stores. What a store does not implement of [memory.Getter], [memory.Porter] and
// [memory.MessageLog] is not checked.
func Run(t *testing.T, open func(t *testing.T, cfg memory.Config) memory.Store) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			clock := newClock()
			store := open(t, memory.Config{Embedder: memory.Lexical, Now: clock.Now})
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.run(&bench{tester{t, ctx}, store, clock})
		})
	}
}

// user returns a scope.
func user(name string) memory.Scope { return memory.Scope{User: name} }

// said returns messages of a user.
func said(texts ...string) []memory.Message {
	messages := make([]memory.Message, len(texts))
	for i, text := range texts {
		messages[i] = memory.Message{Role: memory.User, Content: text}
	}
	return messages
}

// add stores texts verbatim and returns their IDs.
func (b *bench) add(scope memory.Scope, texts ...string) []string {
	b.Helper()
	return b.addWith(scope, memory.AddOptions{}, texts...)
}

func (b *bench) addWith(scope memory.Scope, opts memory.AddOptions, texts ...string) []string {
	b.Helper()
	changes, err := b.store.Add(b.ctx, scope, said(texts...), opts)
	if err != nil {
		b.Fatalf("Add(%.200q) = %v", texts, err)
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	return ids
}

// update gives a memory another text.
func (b *bench) update(id, text string) {
	b.Helper()
	b.must(errorOf(b.store.Update(b.ctx, id, memory.Update{Text: &text})))
}

// erased checks that the history of a memory has no texts, and returns its events.
func (b *bench) erased(id string) (events []memory.Event) {
	b.Helper()
	for _, r := range b.history(id) {
		events = append(events, r.Event)
		if r.Old != "" || r.New != "" {
			b.Errorf("the history still says %q, %q", r.Old, r.New)
		}
	}
	return events
}

// all lists a scope.
func (b *bench) all(scope memory.Scope) []memory.Memory {
	b.Helper()
	all, err := b.store.GetAll(b.ctx, scope, memory.ListOptions{})
	b.must(err)
	return all
}

func (b *bench) get(id string) memory.Memory {
	b.Helper()
	m, err := b.store.Get(b.ctx, id)
	b.must(err)
	return m
}

func (b *bench) history(id string) []memory.Revision {
	b.Helper()
	rows, err := b.store.History(b.ctx, id)
	b.must(err)
	return rows
}

// search finds anything, however far.
func (b *bench) search(scope memory.Scope, query string, opts memory.SearchOptions) []memory.Hit {
	b.Helper()
	opts.Threshold = -1
	hits, err := b.store.Search(b.ctx, scope, query, 100, opts)
	b.must(err)
	return hits
}

func texts(memories []memory.Memory) []string {
	out := make([]string, 0, len(memories))
	for i := range memories {
		out = append(out, memories[i].Text)
	}
	return out
}

func found(hits []memory.Hit) []string {
	out := make([]string, 0, len(hits))
	for i := range hits {
		out = append(out, hits[i].Memory.Text)
	}
	return out
}
