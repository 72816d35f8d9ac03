package proxy_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// heapMiB is what is reachable.
func heapMiB() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // of what was waiting to be finalised
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// Forgetting a conversation frees what is kept of it, also when it went on without its name.
func TestForgetFreesMemory(t *testing.T) {
	testkit.NotUnderRace(t)
	const mib = 16
	padding := strings.Repeat("something long that nobody will ever say again. ", mib<<20/48)
	for name, again := range map[string]string{"under its name": "a", "without a name": ""} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p := newProxy(t, e, func(o *proxy.Options) { o.Transport = atOnce{} })
			send := func(session, question string, results ...string) {
				t.Helper()
				// The first question stands behind documents whose order is changed: the text is kept as it was sent.
				body := chat("s", question+padding, append([]string{docs("b", "c", "a") + padding}, results...)...)
				if w := post(p, chatPath, "", body, proxy.SessionHeader, session); w.Code != http.StatusOK {
					t.Fatal(w.Code, w.Body)
				}
			}
			post(p, chatPath, "", chat("s", "q", docs("a", "b", "c")))
			post(p, chatPath, "", chat("s", "q2", docs("a", "b", "c")))
			before := heapMiB()
			send("a", "first")
			send(again, "first", docs("k", "l"))
			if grown := heapMiB() - before; grown < mib/2 {
				t.Fatalf("%d MiB are kept: the test shows nothing", grown)
			}
			if !p.Forget("", "a") {
				t.Error("nothing was known of it")
			}
			if grown := heapMiB() - before; grown > mib/4 {
				t.Errorf("%d MiB are still kept", grown)
			}
			if p.Forget("", "a") {
				t.Error("forgotten twice")
			}
		})
	}
}

// A beginning that another session has sent too is its own as well, and its bytes stay what they were.
func TestForgetSparesOthers(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	turn := func(session string, n int) []string {
		results := []string{docs("a", "b", "c"), docs("c", session), docs("a", session+"2")}
		post(p, chatPath, "", chat("s", "q", results[:n]...), proxy.SessionHeader, session)
		return contents(t, e.last())
	}
	turn("one", 2)
	want := turn("two", 2)
	if !p.Forget("", "one") {
		t.Error("nothing was known of it")
	}
	got := turn("two", 3)
	if fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) {
		t.Errorf("earlier messages became %q, were %q", got[:len(want)], want)
	}
	if last := got[len(got)-1]; last != docs("two2") {
		t.Errorf("the last result became %s", last)
	}
}

// With a tenant the index of its prompts is forgotten, and no other's.
func TestForgetDropsTheIndex(t *testing.T) {
	e := newEngine(t)
	var pilot *contextpilot.Pilot
	p := newProxy(t, e, func(o *proxy.Options) { pilot = o.Pilot })
	for _, tenant := range []string{"a", "b"} {
		post(p, chatPath, tenant, chat(docs("x", "y", "z"), "q"))
	}
	if !p.Forget("a", "") {
		t.Error("nothing was known of it")
	}
	if got := pilot.Scopes(); len(got) != 1 || got[0].Tenant != "b" {
		t.Errorf("there is an index of %+v, want b's alone", got)
	}
	if p.Forget("a", "") {
		t.Error("forgotten twice")
	}
}
