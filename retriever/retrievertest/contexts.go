package retrievertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// checkCanceled: a context that has ended ends every call, with its cause.
func checkCanceled(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(within(t))
	cancel(cause)
	hits, err := x.Search(ctx, store.Query{Text: "otter", K: 1})
	if !errors.Is(err, cause) || hits != nil {
		t.Errorf("Search: hits %v, error %v, want the cause alone", hits, err)
	}
	if err := x.Upsert(ctx, animals()); !errors.Is(err, cause) {
		t.Errorf("Upsert: %v, want the cause", err)
	}
	if err := x.Delete(ctx, "", "otter"); !errors.Is(err, cause) {
		t.Errorf("Delete: %v, want the cause", err)
	}
	if hits := ask(t, x, "otter", 1); len(hits) != 1 || hits[0].ID != "otter" {
		t.Errorf("after a canceled Delete: %q", ids(hits))
	}
}

// checkParallel: 100 searches at a time, half of them canceled at some moment, get their own answers, and no
// goroutine stays.
func checkParallel(t *testing.T, s Subject) {
	s.noLeaks(t)
	docs := animals()
	x := s.filled(t, docs...)
	want := map[string][]string{}
	for _, d := range docs {
		want[d.ID] = ids(ask(t, x, d.ID+" animal", 5))
	}
	ctx := within(t)
	var wait sync.WaitGroup
	for i := range 100 {
		word := docs[i%len(docs)].ID
		wait.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if i%2 == 0 {
				timer := time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, cancel)
				defer timer.Stop()
			}
			hits, err := x.Search(ctx, store.Query{Text: word + " animal", K: 5})
			switch {
			case err == nil && !slices.Equal(ids(hits), want[word]):
				t.Errorf("%q found %q, alone it found %q", word, ids(hits), want[word])
			case err != nil && (i%2 == 1 || !errors.Is(err, context.Canceled)):
				t.Errorf("%q: %v", word, err)
			}
		})
	}
	wait.Wait()
	if got := ids(ask(t, x, "otter animal", 5)); !slices.Equal(got, want["otter"]) {
		t.Errorf("afterwards: %q, want %q", got, want["otter"])
	}
	if err := x.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func checkClosed(t *testing.T, s Subject) {
	x := s.filled(t, animals()...)
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
	ctx := within(t)
	_, err := x.Search(ctx, store.Query{Text: "otter", K: 1})
	for name, err := range map[string]error{
		"Search": err, "Upsert": x.Upsert(ctx, animals()), "Delete": x.Delete(ctx, "", "otter"),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}
