package minilm

import (
	"context"
	"slices"
	"sync"
)

// aheadOfDocuments is how many questions in a row go before a document that waits, so that documents do not wait for ever.
const aheadOfDocuments = 8

// cores shares a number of cores between calls. Questions go before documents.
type cores struct {
	mu                   sync.Mutex
	free                 int          // guarded by mu, as all below
	questions, documents []chan<- int // who waits, the first one first; each is sent how many cores it has
	row                  int          // questions that went before a document since one went
}

func newCores(n int) *cores { return &cores{free: n} }

// take waits for a core, and returns how many the caller has: more than one while no other call waits for them. The caller gives them back
// with give.
func (c *cores) take(ctx context.Context, question bool) (n int, err error) {
	mine := make(chan int, 1)
	queue := &c.documents
	if question {
		queue = &c.questions
	}
	c.mu.Lock()
	*queue = append(*queue, mine)
	c.share()
	c.mu.Unlock()
	select {
	case n = <-mine:
		return n, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*queue = slices.DeleteFunc(*queue, func(w chan<- int) bool { return w == mine })
	select {
	case n = <-mine: // it was sent meanwhile
		c.free += n
		c.share()
	default:
	}
	return 0, context.Cause(ctx)
}

// give gives cores back.
func (c *cores) give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free += n
	c.share()
}

// giveWay has a document that computes on n cores wait for the questions that wait for one. It returns how many it has then. After an
// error it has none.
func (c *cores) giveWay(ctx context.Context, n int) (int, error) {
	c.mu.Lock()
	waiting := len(c.questions) > 0
	c.mu.Unlock()
	if !waiting {
		return n, nil
	}
	c.give(n)
	return c.take(ctx, false)
}

// share sends the free cores to those that wait. c.mu is held.
func (c *cores) share() {
	for c.free > 0 && len(c.questions)+len(c.documents) > 0 {
		queue := &c.documents
		switch {
		case len(c.documents) == 0:
			queue = &c.questions
		case len(c.questions) > 0 && c.row < aheadOfDocuments:
			queue = &c.questions
			c.row++
		default:
			c.row = 0
		}
		n := max(c.free/len(*queue), 1)
		c.free -= n
		(*queue)[0] <- n // there is room for it
		*queue = slices.Delete(*queue, 0, 1)
	}
}
