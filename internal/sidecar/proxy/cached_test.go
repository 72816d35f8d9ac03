package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

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
