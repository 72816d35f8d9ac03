package qdrant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/memory"
	"github.com/ragpilot/ragpilot/memory/qdrant"
)

// cutter is a fake of a connection that breaks for good: of the calls after arm, so many come through. The call at which it
// breaks is not sent, or it is sent and its answer is lost.
type cutter struct {
	left     atomic.Int64
	lateOnly bool // the answer is lost
}

func (c *cutter) arm(calls int) { c.left.Store(int64(calls)) }

func (c *cutter) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	left := c.left.Add(-1)
	broken := status.Error(codes.Unavailable, "the connection is broken")
	switch {
	case left >= 0:
		return call(ctx, method, in, out, conn, opts...)
	case left == -1 && c.lateOnly:
		_ = call(ctx, method, in, out, conn, opts...) // whatever became of it, nobody hears
	}
	return broken
}

// steady returns a store whose IDs and times are the same in every run.
func steady(t *testing.T, backend memory.Backend) *memory.Local {
	t.Helper()
	var ids, ticks int
	store, err := memory.New(backend, memory.Config{
		Embedder: memory.Lexical,
		NewID:    func() string { ids++; return fmt.Sprintf("id-%04d", ids) },
		Now: func() time.Time {
			ticks++
			return time.Date(2026, 3, 1, 12, 0, 0, ticks*int(time.Millisecond), time.UTC)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func fill(t *testing.T, store *memory.Local) {
	t.Helper()
	if _, err := store.Add(t.Context(), ana, said("lives in zqoslo", "likes zqtea"), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), memory.Scope{User: "bo"}, said("bo has a zqdog"), memory.AddOptions{}); err != nil {
		t.Fatal(err)
	}
}

// operations change a store that fill has filled. gone are words that are nowhere afterwards, fresh those that were
// nowhere before.
var operations = []struct {
	name        string
	run         func(ctx context.Context, s *memory.Local) error
	gone, fresh []string
}{
	{
		name: "add",
		run: func(ctx context.Context, s *memory.Local) error {
			_, err := s.Add(ctx, ana, said("has a zqcat", "and a zqbird"), memory.AddOptions{})
			return err
		},
		fresh: []string{"zqcat", "zqbird"},
	},
	{
		name: "update",
		run: func(ctx context.Context, s *memory.Local) error {
			text := "lives in zqbergen"
			_, err := s.Update(ctx, "id-0001", memory.Update{Text: &text})
			return err
		},
		fresh: []string{"zqbergen"},
	},
	{
		name: "delete",
		run: func(ctx context.Context, s *memory.Local) error {
			return s.Delete(ctx, "id-0001", memory.DeleteOptions{})
		},
		gone: []string{"zqoslo"},
	},
	{
		name: "delete all",
		run: func(ctx context.Context, s *memory.Local) error {
			_, err := s.DeleteAll(ctx, ana, memory.DeleteOptions{})
			return err
		},
		gone: []string{"zqoslo", "zqtea"},
	},
	{
		name: "reset",
		run:  func(ctx context.Context, s *memory.Local) error { return s.Reset(ctx) },
		gone: []string{"zqoslo", "zqtea", "zqdog"},
	},
}

// A process that ends at any of its calls to the server, before or after the server has done it, leaves all of its change or
// nothing, as the error said; and after the next change of anybody nothing else is on the server.
func TestCutAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a store for each call of each operation")
	}
	addr := storetest.Qdrant(t)
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			before, after := pictures(t, addr, op.run)
			for _, late := range []bool{false, true} {
				for calls, through := 0, false; !through; calls++ {
					shared := name(t, addr)
					err := cutAt(t, addr, shared, calls, late, op.run)
					through = err == nil && calls > 5
					other := open(t, qdrant.Options{Addr: addr, Collection: shared})
					now := picture(t, other)
					if want := outcome(err, before, after); !slices.Contains(want, now) {
						t.Fatalf("cut after %d calls (answer lost: %v), %v: the store is\n%s\nwant\n%s", calls, late, err, now, strings.Join(want, "\nor\n"))
					}
					absent := op.gone
					if now == before {
						absent = op.fresh
					}
					clean(t, addr, shared, other, absent)
					if calls > 60 {
						t.Fatal("an operation of more than 60 calls")
					}
				}
			}
		})
	}
}

// outcome lists what the store may be after the error.
func outcome(err error, before, after string) []string {
	switch {
	case err == nil, errors.Is(err, qdrant.ErrNotErased):
		return []string{after}
	case errors.Is(err, qdrant.ErrUnknownOutcome):
		return []string{before, after}
	}
	return []string{before}
}

// pictures are those of an operation that is not disturbed.
func pictures(t *testing.T, addr string, run func(context.Context, *memory.Local) error) (before, after string) {
	t.Helper()
	backend := open(t, qdrant.Options{Addr: addr, Collection: name(t, addr)})
	store := steady(t, backend)
	fill(t, store)
	before = picture(t, backend)
	if err := run(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	after = picture(t, backend)
	if before == after {
		t.Fatal("the operation changes nothing: the test cannot see anything")
	}
	return before, after
}

// cutAt runs the operation in a process that ends after so many calls.
func cutAt(t *testing.T, addr, shared string, calls int, late bool, run func(context.Context, *memory.Local) error) error {
	t.Helper()
	c := &cutter{lateOnly: late}
	c.arm(math.MaxInt)
	client := dial(t, addr, grpc.WithUnaryInterceptor(c.intercept))
	store := steady(t, open(t, qdrant.Options{Client: client, Collection: shared, Attempts: 1}))
	fill(t, store)
	c.arm(calls)
	return run(t.Context(), store)
}

// picture is what a store says of itself.
func picture(t *testing.T, backend memory.Backend) string {
	t.Helper()
	store := steady(t, backend)
	var out bytes.Buffer
	if err := store.Export(t.Context(), memory.Scope{}, &out); err != nil {
		t.Fatal(err)
	}
	hits, err := store.Search(t.Context(), ana, "zqoslo zqcat zqbergen", 10, memory.SearchOptions{Threshold: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		fmt.Fprintf(&out, "%s %.6f\n", h.Memory.Text, h.Score)
	}
	return out.String()
}

// clean makes one more change and looks at all points there are: none is of a change that was not made, and none has these words.
func clean(t *testing.T, addr, shared string, other memory.Backend, absent []string) {
	t.Helper()
	log := memory.Log{Scope: memory.Scope{User: "cy"}, Kind: "k"}
	if err := other.Change(t.Context(), func(tx memory.Tx) error { return tx.SetMessages(t.Context(), log, said("later")) }); err != nil {
		t.Fatal(err)
	}
	for _, p := range everything(t, addr, shared) {
		if p.Payload["commit_of"].GetStringValue() != "" {
			t.Errorf("a point of a commit is left: %v", p.Payload)
		}
		for _, word := range absent {
			if strings.Contains(fmt.Sprint(p.Payload), word) {
				t.Errorf("%q still stands in %v", word, p.Payload)
			}
		}
	}
}

// everything returns all points of a store, whether they count or not.
func everything(t *testing.T, addr, shared string) []*api.RetrievedPoint {
	t.Helper()
	client := dial(t, addr)
	names, err := client.ListCollections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit := uint32(10000)
	var all []*api.RetrievedPoint
	for _, name := range names {
		if !strings.HasPrefix(name, shared) {
			continue
		}
		points, err := client.Scroll(t.Context(), &api.ScrollPoints{
			CollectionName: name, Limit: &limit, WithPayload: api.NewWithPayloadEnable(true), WithVectors: api.NewWithVectorsEnable(true),
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, points...)
	}
	return all
}

// What was deleted stands in no payload, and its vector in no point, as soon as the call returns; an update leaves its old
// text in the history alone.
func TestDeletedIsGone(t *testing.T) {
	addr := storetest.Qdrant(t)
	shared := name(t, addr)
	store := steady(t, open(t, qdrant.Options{Addr: addr, Collection: shared}))
	fill(t, store)
	text := "lives in zqbergen"
	if _, err := store.Update(t.Context(), "id-0001", memory.Update{Text: &text}); err != nil {
		t.Fatal(err)
	}
	if where := standing(t, addr, shared, "zqoslo"); !slices.Equal(where, []string{"new", "old"}) {
		t.Errorf("the old text of an update stands at %q, want the history alone", where)
	}
	vectors := func() (n int) {
		for _, p := range everything(t, addr, shared) {
			if p.Vectors.GetVector() != nil {
				n++
			}
		}
		return n
	}
	if n := vectors(); n != 3 {
		t.Fatalf("%d vectors, want 3: the test cannot see anything", n)
	}
	if err := store.Delete(t.Context(), "id-0001", memory.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"zqoslo", "zqbergen"} {
		if where := standing(t, addr, shared, word); len(where) > 0 {
			t.Errorf("%s still stands at %q", word, where)
		}
	}
	if n := vectors(); n != 2 {
		t.Errorf("%d vectors, want 2", n)
	}
}

// standing returns the keys of payloads whose values contain a word, each once.
func standing(t *testing.T, addr, shared, word string) []string {
	t.Helper()
	keys := map[string]bool{}
	for _, p := range everything(t, addr, shared) {
		for key, value := range p.Payload {
			if strings.Contains(fmt.Sprint(value), word) {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
