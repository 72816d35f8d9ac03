package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// slowOrders is a store that signals when it is asked, and waits for the client to go.
type slowOrders struct {
	orders.Store
	asked    chan struct{}
	gets     atomic.Int64
	puts     atomic.Int64
	answered atomic.Bool // no more waiting
}

func (s *slowOrders) Get(ctx context.Context, tenant string, k orders.Key) ([]int, bool) {
	s.gets.Add(1)
	if !s.answered.Load() {
		select {
		case s.asked <- struct{}{}:
			<-ctx.Done()
		case <-ctx.Done():
		}
	}
	return s.Store.Get(ctx, tenant, k)
}

func (s *slowOrders) Put(ctx context.Context, tenant string, k orders.Key, order []int) []int {
	s.puts.Add(1)
	return s.Store.Put(ctx, tenant, k, order)
}

// manySystemTexts is a body with n texts that are planned one by one, five of them in a message.
func manySystemTexts(n int) string {
	var messages, parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`{"type":"text","text":%q}`, docs(fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i))))
		if len(parts) == 5 {
			messages = append(messages, `{"role":"system","content":[`+strings.Join(parts, ",")+`]}`)
			parts = nil
		}
	}
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `,{"role":"user","content":"q"}]}`
}

// A client that leaves while its request is planned: nothing more is planned, forwarded, or taken for sent.
func TestPlanningStopsWhenTheClientLeaves(t *testing.T) {
	e, rep := newEngine(t), newReports()
	store := &slowOrders{Store: orders.NewMemory(0, 1), asked: make(chan struct{})}
	var pilot *contextpilot.Pilot
	p := newProxy(t, e, func(o *proxy.Options) { o.Orders, o.Recorder, pilot = store, rep, o.Pilot })
	front := httptest.NewServer(p)
	defer front.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-store.asked
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+chatPath, strings.NewReader(manySystemTexts(50)))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := front.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("answered %d", resp.StatusCode)
	}
	if r := rep.wait(t); !r.Failed || r.Planning < 0 || r.Total < 0 {
		t.Errorf("report %+v", r)
	}
	if n := store.gets.Load(); n != 1 {
		t.Errorf("%d texts were planned", n)
	}
	if got := e.last(); got != "" {
		t.Errorf("forwarded: %s", got)
	}
	if s := pilot.Stats(); s.LiveRequests != 0 {
		t.Errorf("%d prompts are taken for sent", s.LiveRequests)
	}
	store.answered.Store(true)
	if w := post(p, chatPath, "", manySystemTexts(50)); w.Code != http.StatusOK {
		t.Errorf("asked again: %d %s", w.Code, w.Body)
	}
}

// The order of tool results is not settled for everybody by a request that was broken off.
func TestNoOrderOfAClientThatLeft(t *testing.T) {
	e := newEngine(t)
	store := &slowOrders{Store: orders.NewMemory(0, 1), asked: make(chan struct{}, 1)}
	p := newProxy(t, e, func(o *proxy.Options) { o.Orders = store })
	if w := postContext(cancelled(t), p, chatPath, chat("s", "q", docs("a", "b", "c"))); w.Code != 499 {
		t.Errorf("status %d", w.Code)
	}
	if store.puts.Load() > 0 {
		t.Error("an order was remembered")
	}
}

// Requests that arrive together are planned together: what they share, and none of them could know of, comes first. Without
// a window the first of them has its own order.
func TestWindow(t *testing.T) {
	long := func(name string) string { return name + strings.Repeat(" says something of some length", 40) }
	body := func(i int) string {
		return chat(docs(long(fmt.Sprint("own", i)), long("b"), long(fmt.Sprint("other", i)), long("c")), fmt.Sprint("question ", i))
	}
	shared := func(window time.Duration) (n int) {
		e := newEngine(t)
		p := newProxy(t, e, func(o *proxy.Options) { o.Window = window })
		var all sync.WaitGroup
		const requests = 64 // as many as a window takes: it closes at once
		for i := range requests {
			all.Go(func() { post(p, chatPath, "", body(i)) })
		}
		all.Wait()
		for _, b := range e.bodies {
			first := contents(t, b)[0]
			if at := strings.Index(first, "own"); at > strings.Index(first, long("b")) && at > strings.Index(first, long("c")) {
				n++
			}
		}
		return n
	}
	if n := shared(time.Minute); n != 64 {
		t.Errorf("%d of 64 prompts begin with what all of them share", n)
	}
	if n := shared(0); n == 64 {
		t.Error("without a window it is the same: the test shows nothing")
	}
}

// A client that leaves while its request waits for others is not planned.
func TestWindowOfAClientThatLeft(t *testing.T) {
	e := newEngine(t)
	var pilot *contextpilot.Pilot
	p := newProxy(t, e, func(o *proxy.Options) { o.Window, pilot = 10*time.Millisecond, o.Pilot })
	if w := postContext(cancelled(t), p, chatPath, chat(docs("a", "b"), "q")); w.Code != 499 || e.last() != "" {
		t.Errorf("status %d, forwarded %q", w.Code, e.last())
	}
	if s := pilot.Stats(); s.Plans != 0 || s.LiveRequests != 0 {
		t.Errorf("%d plans, %d of them taken for sent", s.Plans, s.LiveRequests)
	}
}
