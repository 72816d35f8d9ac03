package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// An engine that was restarted with the sidecar holds nothing, of whatever tenant: the answers to one of them show it for all.
func TestDistrustIsOfTheWholeIndex(t *testing.T) {
	for cached, want := range map[int]int64{0: 0, 5000: 2} {
		restored := contextpilot.Scope{Model: "m", Tenant: "silent", Replica: "r"}
		a := ask(t, func(o *proxy.Options) {
			o.Restored = true
			for i := range 2 {
				r := contextpilot.Request{
					ID: fmt.Sprint("before", i), Scope: restored, Blocks: []contextpilot.Block{{ID: "x", Tokens: 500}},
				}
				o.Pilot.Plan(r)
				o.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: restored, Request: r.ID})
			}
		})
		a.engine.says(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(
				w, `{"choices":[],"usage":{"prompt_tokens":6000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":%d}}}`,
				cached,
			)
		})
		for i := range 30 {
			a.send(passagesOf("a", "b", fmt.Sprint(i)), "q")
		}
		if n := a.prompts(restored); int64(n) != want {
			t.Errorf("%d tokens cached: %d prompts of the silent tenant are in the index, want %d", cached, n, want)
		}
	}
}

// An answer that reports nothing cached corrects the index; one that reports no count does not.
func TestCachedCorrectsTheIndex(t *testing.T) {
	long := func(name string) string { return name + strings.Repeat(" is very good", 60) }
	for usage, want := range map[string]int64{
		`{"completion_tokens":5}`: 0,
		`{"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":0}}`: 1,
	} {
		e := newEngine(t)
		e.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"ok"}}],"usage":%s}`, usage)
		}
		var pilot *contextpilot.Pilot
		p := newProxy(t, e, func(o *proxy.Options) { pilot = o.Pilot })
		for _, last := range []string{"c", "d"} {
			text := docs(long("a"), long("b"), long(last))
			body := fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":"q"}]}`, text)
			if w := post(p, chatPath, "", body); w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		if s := pilot.Stats(); s.Plans != 2 || s.Contradicted != want || s.Shortened != want {
			t.Errorf("%s: %d plans, %d contradictions shortened %d requests, want "+
				"2, %d, %d", usage, s.Plans, s.Contradicted, s.Shortened, want, want)
		}
	}
}
