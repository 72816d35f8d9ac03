package minilm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Questions go before documents that came first, each kind in its order.
func TestQuestionsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCores(1)
		held, err := c.take(t.Context(), false)
		if err != nil || held != 1 {
			t.Fatal(held, err)
		}
		var mu sync.Mutex
		var order []string
		for _, name := range []string{"document 1", "document 2", "question 1", "question 2"} {
			go func() {
				n, err := c.take(t.Context(), name[0] == 'q')
				if err != nil || n != 1 {
					t.Error(name, n, err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				c.give(n)
			}()
			synctest.Wait() // it is in its queue
		}
		c.give(held)
		synctest.Wait()
		if want := []string{"question 1", "question 2", "document 1", "document 2"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
	})
}

// A document that computes stops for a question, which gets its cores, and goes on behind it.
func TestDocumentsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCores(2)
		held, _ := c.take(t.Context(), false)
		if n, err := c.giveWay(t.Context(), held); n != 2 || err != nil {
			t.Fatalf("alone: %d cores, %v", n, err)
		}
		question := make(chan int)
		go func() {
			n, _ := c.take(t.Context(), true)
			question <- n
		}()
		synctest.Wait()
		document := make(chan int)
		go func() {
			n, _ := c.giveWay(t.Context(), held)
			document <- n
		}()
		if n := <-question; n != 2 {
			t.Errorf("the question has %d cores, want 2", n)
		}
		synctest.Wait()
		select {
		case <-document:
			t.Error("the document goes on beside the question")
		default:
		}
		c.give(2)
		if n := <-document; n != 2 {
			t.Errorf("the document goes on with %d cores, want 2", n)
		}
	})
}

// However many questions come, a document is not kept waiting for ever.
func TestDocumentsAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCores(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		held, _ := c.take(ctx, true)
		before := 0 // questions in front of the document
		done := make(chan int)
		go func() {
			n, _ := c.take(ctx, false)
			done <- before
			c.give(n)
		}()
		synctest.Wait()
		for range 3 * aheadOfDocuments {
			go func() {
				if n, err := c.take(ctx, true); err == nil {
					before++ // only the holder of the core writes
					c.give(n)
				}
			}()
		}
		synctest.Wait()
		c.give(held)
		if n := <-done; n != aheadOfDocuments {
			t.Errorf("%d questions went first, want %d", n, aheadOfDocuments)
		}
	})
}

// A call that ends while it waits takes no core with it.
func TestCoresOfCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCores(2)
		held, _ := c.take(t.Context(), false)
		reason := errors.New("reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		for _, question := range []bool{true, false} {
			go func() {
				if n, err := c.take(ctx, question); n != 0 || !errors.Is(err, reason) {
					t.Errorf("%d cores, %v", n, err)
				}
			}()
		}
		synctest.Wait()
		cancel(reason)
		synctest.Wait()
		c.give(held)
		if n, err := c.take(t.Context(), false); n != 2 || err != nil {
			t.Errorf("%d cores, %v; want 2", n, err)
		}
	})
}
