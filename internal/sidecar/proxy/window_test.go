package proxy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

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
