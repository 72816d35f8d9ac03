package elastic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// behind makes an index with two pages on the real server and opens it again through a gate.
func behind(t testing.TB, o gateOptions, change func(*elastic.Options)) (*elastic.Index, *gate) {
	t.Helper()
	url := storetest.Elasticsearch(t)
	opts := elastic.Options{Addresses: []string{url}, Timeout: time.Minute}
	x := create(t, opts)
	if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "the otter"}, {ID: "b", Text: "the eagle"}}); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, url, o)
	opts.Addresses, opts.Index = []string{g.URL}, x.Name()
	if change != nil {
		change(&opts)
	}
	return open(t, opts), g
}

var otter = store.Query{Text: "otter", K: 2}

func TestSearchesAreSentAgain(t *testing.T) {
	for name, o := range map[string]gateOptions{
		"busy":        {busy: 2, status: http.StatusTooManyRequests},
		"unavailable": {busy: 2},
		"bad gateway": {busy: 2, status: http.StatusBadGateway, page: true},
		"killed":      {cut: 2},
	} {
		t.Run(name, func(t *testing.T) {
			x, g := behind(t, o, nil)
			hits, err := x.Search(t.Context(), otter)
			if err != nil || len(hits) != 1 || g.calls.Load() != 3 {
				t.Errorf("%d hits, %v after %d requests; want the otter after 3", len(hits), err, g.calls.Load())
			}
		})
		t.Run(name+" for long", func(t *testing.T) {
			o.busy, o.cut = 100*o.busy, 100*o.cut
			x, g := behind(t, o, nil)
			hits, err := x.Search(t.Context(), otter)
			if !errors.Is(err, store.ErrUnavailable) || hits != nil || g.calls.Load() != elastic.DefaultAttempts {
				t.Errorf("hits %v, %v after %d requests; want ErrUnavailable after %d", hits, err, g.calls.Load(), elastic.DefaultAttempts)
			}
		})
	}
}

// TestWritesAreSentAgainOnlyIfNotBegun: an answer that did not come may mean that the documents were stored.
func TestWritesAreSentAgainOnlyIfNotBegun(t *testing.T) {
	docs := []store.Document{{ID: "c", Text: "the mole"}}
	x, g := behind(t, gateOptions{busy: 1, status: http.StatusTooManyRequests, only: "_bulk"}, nil)
	if err := x.Upsert(t.Context(), docs); err != nil || g.calls.Load() != 2 {
		t.Errorf("busy: %v after %d requests, want success after 2", err, g.calls.Load())
	}
	x, g = behind(t, gateOptions{cut: 1, only: "_bulk"}, nil)
	if err := x.Upsert(t.Context(), docs); !errors.Is(err, store.ErrUnavailable) || g.calls.Load() != 1 {
		t.Errorf("killed: %v after %d requests, want ErrUnavailable after 1", err, g.calls.Load())
	}
}

func TestSlowServer(t *testing.T) {
	x, _ := behind(t, gateOptions{delay: time.Hour}, func(o *elastic.Options) { o.Timeout = 100 * time.Millisecond })
	_, err := x.Search(t.Context(), otter)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "Options.Timeout = 100ms") {
		t.Errorf("err = %v, want ErrUnavailable that names Options.Timeout", err)
	}
	x, _ = behind(t, gateOptions{delay: 100 * time.Millisecond}, nil)
	if hits, err := x.Search(t.Context(), otter); err != nil || len(hits) != 1 {
		t.Errorf("%d hits, %v of a server that is slow but answers", len(hits), err)
	}
}

// TestConnectionsAreShared: searches one after the other use one connection.
func TestConnectionsAreShared(t *testing.T) {
	url := storetest.Elasticsearch(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	g := newGate(t, url, gateOptions{})
	next := g.Config.Handler
	g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.RemoteAddr] = true
		mu.Unlock()
		next.ServeHTTP(w, r)
	})
	x := create(t, elastic.Options{Addresses: []string{g.URL}})
	seen = map[string]bool{}
	for range 20 {
		if _, err := x.Search(t.Context(), otter); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) > 1 {
		t.Errorf("%d connections, want 1", len(seen))
	}
}

// TestParallelSearchesLeakNothing: goleak, in TestMain, would find what the canceled ones leave.
func TestParallelSearchesLeakNothing(t *testing.T) {
	x, _ := behind(t, gateOptions{delay: 30 * time.Millisecond}, nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 0 {
				time.AfterFunc(time.Duration(i)*time.Millisecond/4, cancel)
			}
			hits, err := x.Search(ctx, otter)
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && len(hits) != 1 || i%2 == 1 && err != nil {
				t.Errorf("search %d: %d hits, %v", i, len(hits), err)
			}
		})
	}
	all.Wait()
}

func TestMissingIndexIsNotMadeByWriting(t *testing.T) {
	x := open(t, elastic.Options{Addresses: []string{storetest.Elasticsearch(t)}, Index: "ragpilot-test-nowhere"})
	err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "b"}, {ID: "c", Text: "d"}})
	if !errors.Is(err, store.ErrNoIndex) || strings.Count(err.Error(), "Create makes it") != 1 {
		t.Errorf("Upsert: %v, want ErrNoIndex, and once what makes the index", err)
	}
	if err := x.Delete(t.Context(), "", "a"); !errors.Is(err, store.ErrNoIndex) {
		t.Errorf("Delete: %v, want ErrNoIndex", err)
	}
	if _, err := x.Search(t.Context(), otter); !errors.Is(err, store.ErrNoIndex) {
		t.Errorf("Search: %v, want ErrNoIndex", err)
	}
	if err := x.Drop(t.Context()); err != nil {
		t.Errorf("Drop: %v", err)
	}
}

// TestMappingConflict: the documents that do not fit are named, the others are stored.
func TestMappingConflict(t *testing.T) {
	url := storetest.Elasticsearch(t)
	opts := elastic.Options{Addresses: []string{url}, Layout: elastic.Layout{Metadata: elastic.TopLevel}}
	opts.Index = fmt.Sprintf("ragpilot-test-mapping-%d", time.Now().UnixNano())
	x := open(t, opts)
	if err := x.Create(t.Context(),
		elastic.Schema{Settings: oneShard, Properties: map[string]any{"year": map[string]any{"type": "integer"}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open(t, opts).Drop(context.Background()) })
	doc := func(id string, year any) store.Document {
		return store.Document{ID: id, Text: "the otter", Metadata: map[string]any{"year": year}}
	}
	err := x.Upsert(t.Context(), []store.Document{doc("good", 1990), doc("bad", "long ago"), doc("worse", "later")})
	var refused *elastic.BulkError
	if !errors.As(err, &refused) || !errors.Is(err, elastic.ErrMapping) || !errors.Is(err, store.ErrBadDocument) {
		t.Fatalf("err = %v, want a BulkError that is ErrMapping", err)
	}
	if len(refused.Items) != 2 || refused.Items[0].ID != "bad" || refused.Items[1].ID != "worse" || refused.Stored != 1 ||
		!strings.Contains(err.Error(), `"bad"`) || !strings.Contains(err.Error(), "year") {
		t.Errorf("err = %v, want it to name both documents and the field", err)
	}
	if err := x.Upsert(t.Context(), []store.Document{doc("good", 1991)}); err != nil {
		t.Error(err)
	}
	if hits, err := x.Search(t.Context(), store.Query{Text: "otter", K: 5}); err != nil || len(hits) != 1 {
		t.Errorf("hits %v, %v; want the good one", hits, err)
	}
}

func TestVectorsOfAnotherLength(t *testing.T) {
	url := storetest.Elasticsearch(t)
	x := create(t, elastic.Options{Addresses: []string{url}, Embedder: retrievertest.Embedder{Size: 64}})
	other := open(t, elastic.Options{Addresses: []string{url}, Index: x.Name(), Embedder: retrievertest.Embedder{Size: 32}, Mode: store.Dense})
	if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "the otter"}}); err != nil {
		t.Fatal(err)
	}
	_, err := other.Search(t.Context(), otter)
	if !errors.Is(err, store.ErrDimension) || !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("Search: %v, want ErrDimension and ErrBadQuery", err)
	}
	err = other.Upsert(t.Context(), []store.Document{{ID: "b", Text: "the eagle"}})
	if !errors.Is(err, store.ErrDimension) || !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("Upsert: %v, want ErrDimension and ErrBadDocument", err)
	}
}

// TestRebuild: searches find the old documents or the new ones, and always some.
func TestRebuild(t *testing.T) {
	x := create(t, elastic.Options{Addresses: []string{storetest.Elasticsearch(t)}})
	if err := x.Upsert(t.Context(), []store.Document{{ID: "old", Text: "the otter"}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var searching sync.WaitGroup
	var seen []string
	searching.Go(func() {
		for ctx.Err() == nil {
			hits, err := x.Search(t.Context(), otter)
			if err != nil || len(hits) != 1 {
				t.Errorf("during a rebuild: %v, %v", hits, err)
				return
			}
			if len(seen) == 0 || seen[len(seen)-1] != hits[0].ID {
				seen = append(seen, hits[0].ID)
			}
		}
	})
	failed := errors.New("the source is gone")
	err := x.Rebuild(t.Context(), elastic.Schema{Settings: oneShard}, func(context.Context, *elastic.Index) error { return failed })
	if !errors.Is(err, failed) {
		t.Errorf("Rebuild = %v, want the error of fill", err)
	}
	for range 2 {
		err = x.Rebuild(t.Context(), elastic.Schema{Settings: oneShard}, func(ctx context.Context, next *elastic.Index) error {
			return next.Upsert(ctx, []store.Document{{ID: "new", Text: "the otter"}})
		})
		if err != nil {
			t.Error(err)
		}
	}
	hits, err := x.Search(t.Context(), otter)
	if err != nil || len(hits) != 1 || hits[0].ID != "new" {
		t.Errorf("after a rebuild: %v, %v; want the new document", hits, err)
	}
	stop()
	searching.Wait()
	if !slices.Equal(seen, []string{"old", "new"}) && !slices.Equal(seen, []string{"old"}) {
		t.Errorf("searches saw %v in turn", seen)
	}
	if names := targets(t, x); len(names) != 1 || names[0] != x.Name()+"-000003" {
		t.Errorf("indexes %v are left, want the third alone", names)
	}
	if err := x.Create(t.Context(), elastic.Schema{}); err != nil {
		t.Errorf("Create of what is there: %v", err)
	}
}

// targets returns the indexes of the server whose names begin with the alias.
func targets(t testing.TB, x *elastic.Index) []string {
	t.Helper()
	var found map[string]json.RawMessage
	if err := json.Unmarshal(do(t, x, http.MethodGet, x.Name()+"-*", ""), &found); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(found))
}

// do sends a request of the test's own, and returns the answer.
func do(t testing.TB, x *elastic.Index, method, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "/"+path, strings.NewReader(body)) // also when the test has ended
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := x.Client().Perform(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: status %d, %v: %s", method, path, res.StatusCode, err, answer)
	}
	return answer
}

// foreign makes an index as another program does, which is removed with the test.
func foreign(t testing.TB, x *elastic.Index, properties string) {
	t.Helper()
	do(t, x, http.MethodPut, x.Name(), `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":`+properties+`}}`)
	t.Cleanup(func() { do(t, x, http.MethodDelete, x.Name(), "") })
}

// TestForeignIndex searches and filters an index that another program made.
func TestForeignIndex(t *testing.T) {
	url := storetest.Elasticsearch(t)
	opts := elastic.Options{
		Addresses: []string{url}, Index: fmt.Sprintf("ragpilot-test-foreign-%d", time.Now().UnixNano()),
		Layout:   elastic.Layout{ID: "slug", Text: "content.body", Metadata: elastic.TopLevel, Mapped: true},
		Passages: elastic.Passages{Count: 2, Characters: 40},
	}
	x := open(t, opts)
	ctx := t.Context()
	foreign(t, x, `{"slug":{"type":"keyword"},"lang":{"type":"keyword"},"year":{"type":"integer"},"content":{"properties":{"body":{"type":"text"}}}}`)
	long := strings.Repeat("Filler stands here. ", 20)
	for i, body := range []string{
		`{"slug":"en/otter","lang":"en","year":2020,"content":{"body":"` + long + `The otter swims. ` + long + `"}}`,
		`{"slug":"de/otter","lang":"de","year":1990,"content":{"body":"Der otter schwimmt."}}`,
		`{"lang":"en","year":1990,"content":{"body":"An otter without a name."}}`,
	} {
		do(t, x, http.MethodPut, fmt.Sprintf("%s/_doc/%d?refresh=true", x.Name(), i), body)
	}
	for name, tc := range map[string]struct {
		filter store.Filter
		want   []string
	}{
		"none":   {store.Filter{}, []string{"2", "de/otter", "en/otter"}},
		"string": {store.Eq("lang", "en"), []string{"2", "en/otter"}},
		"range":  {store.Between("year", 2000, 2030), []string{"en/otter"}},
		"not":    {store.Not(store.Eq("lang", "en")), []string{"de/otter"}},
	} {
		hits, err := x.Search(ctx, store.Query{Text: "otter", K: 5, Filter: tc.filter})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, h.ID)
			if h.Version != store.Version(h.Text) || h.Metadata["lang"] == nil {
				t.Errorf("hit %+v, want a version and the language", h)
			}
			if passages, _ := h.Metadata[elastic.KeyPassages].([]any); len(passages) != 1 || !strings.Contains(passages[0].(string), "otter") ||
				len(passages[0].(string)) > 120 {
				t.Errorf("passages %q", h.Metadata[elastic.KeyPassages])
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	number := store.Eq("year", "not a number")
	if _, err := x.Search(ctx, store.Query{Text: "otter", K: 5, Filter: number}); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("a word for a number: %v, want ErrBadQuery", err)
	}
	filtered := opts
	filtered.Filter = map[string]any{"prefix": map[string]any{"slug": "de/"}}
	if hits, err := open(t, filtered).Search(ctx, otter); err != nil || len(hits) != 1 || hits[0].ID != "de/otter" {
		t.Errorf("a filter in the server's terms: %v, %v", hits, err)
	}
	untexted := opts
	untexted.Layout.Text = "nothing"
	if _, err := open(t, untexted).Search(ctx, otter); err != nil {
		t.Errorf("no document has the field that is searched: %v", err)
	}
}

// TestPassagesOfLargeText: the server looks at a part of it, and does not refuse.
func TestPassagesOfLargeText(t *testing.T) {
	x := create(t, elastic.Options{Addresses: []string{storetest.Elasticsearch(t)}, Passages: elastic.Passages{Count: 1}})
	text := "The otter swims. " + strings.Repeat("Filler stands here. ", 100_000)
	if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: text}}); err != nil {
		t.Fatal(err)
	}
	hits, err := x.Search(t.Context(), otter)
	if err != nil || len(hits) != 1 || hits[0].Text != text || hits[0].Metadata[elastic.KeyPassages] == nil {
		t.Errorf("%d hits, %v; want the text and a passage", len(hits), err)
	}
}
