package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/stabilise"
)

// stable is a proxy whose stabiliser has all rules.
func stable(t *testing.T, now *settings) *asked {
	t.Helper()
	s, err := stabilise.New(stabilise.Config{
		Rules: stabilise.Rules{Tools: true, Schemas: true, Volatile: true, Memories: true}, Place: stabilise.PlaceUser,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, func(o *proxy.Options) {
		o.Stabiliser = s
		o.Live = func() (bool, float64) { return now.shadow, now.holdOut }
	})
}

// withTools returns a body with tools of these names.
func withTools(body string, names ...string) string {
	var tools []string
	for _, n := range names {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":%q}}`, n))
	}
	return strings.TrimSuffix(body, "}") + `,"tools":[` + strings.Join(tools, ",") + `]}`
}

// clocked is a turn of a conversation whose system text has documents and the time.
func clocked(second, n int) string {
	results := []string{docs("k k", "l l"), docs("l l", "m m"), docs("m m", "k k", "n n")}
	body := chat(fmt.Sprintf("Current time: 04:14:%02d\n%s", second, passagesOf("c", "b", "a")), "q", results[:n]...)
	return withTools(body, [][]string{{"b", "a"}, {"a", "0", "b"}, {"0", "b", "a"}, {"b", "0", "a"}}[n]...)
}

func toolNames(body string) (out []string) {
	for _, v := range gjson.Get(body, "tools.#.function.name").Array() {
		out = append(out, v.Str)
	}
	return out
}

// A body is stabilised and then planned, and its beginning stays as it was; a retry is sent in the same bytes.
func TestStabilised(t *testing.T) {
	a := stable(t, &settings{})
	a.send(passagesOf("a", "b", "c"), "before")
	var before []string
	session := ""
	for n := range 4 {
		post(a.Proxy, chatPath, "", clocked(n, n))
		first := a.engine.last()
		r := a.reports.wait(t)
		if post(a.Proxy, chatPath, "", clocked(n, n)); a.engine.last() != first {
			t.Errorf("turn %d: a retry was sent as %s, want %s", n, a.engine.last(), first)
		}
		a.reports.wait(t)
		got := contents(t, first)
		if n == 0 && (strings.Contains(got[0], "04:14") || !strings.HasSuffix(got[0], passagesOf("a", "b", "c"))) {
			t.Errorf("the system text was not stabilised, or not planned behind that: %q", got[0])
		}
		if len(before) > 0 && !slices.Equal(before, got[:len(before)]) {
			t.Errorf("turn %d: earlier messages changed:\n%q\n%q", n, before, got[:len(before)])
		}
		if want := fmt.Sprintf("[from the system text: Current time: 04:14:%02d]", n); !strings.HasSuffix(got[len(got)-1], want) {
			t.Errorf("turn %d ends with %q", n, got[len(got)-1])
		}
		if want := [][]string{{"a", "b"}, {"a", "b", "0"}, {"a", "b", "0"}, {"a", "b", "0"}}[n]; !slices.Equal(toolNames(first), want) {
			t.Errorf("turn %d: tools %v, want %v", n, toolNames(first), want)
		}
		if r.Stabilised.Volatile != 1 || r.Stabilised.Again != int64(n) || !r.Planned {
			t.Errorf("turn %d: reported %+v", n, r.Stabilised)
		}
		if session != "" && r.Session != session {
			t.Errorf("turn %d is of session %q, want %q", n, r.Session, session)
		}
		before, session = got, r.Session
	}
	if !a.Forget("", "") {
		t.Error("nothing was forgotten")
	}
	post(a.Proxy, chatPath, "", clocked(3, 3))
	if got := contents(t, a.engine.last()); strings.Contains(got[1], "04:14") {
		t.Errorf("remembered after it was forgotten: %q", got[1])
	}
}

// A conversation that is held out is forwarded as it came, and has one name while the time changes.
func TestStabilisedHeldOut(t *testing.T) {
	now := settings{holdOut: 1}
	a := stable(t, &now)
	session := ""
	for n := range 4 {
		if n == 2 {
			now.holdOut = 0 // it goes on as it began
		}
		post(a.Proxy, chatPath, "", clocked(n, n))
		if got := a.engine.last(); got != clocked(n, n) {
			t.Errorf("turn %d: forwarded %s", n, got)
		}
		r := a.reports.wait(t)
		if r.Stabilised != (stabilise.Stats{}) || r.HeldOut != (n < 2) || r.Carried != (n >= 2) {
			t.Errorf("turn %d: reported %+v", n, r)
		}
		if session != "" && r.Session != session {
			t.Errorf("turn %d is of session %q, want %q", n, r.Session, session)
		}
		session = r.Session
	}
}

// A conversation that was rewritten goes on so when it would be held out now.
func TestStabilisedGoesOn(t *testing.T) {
	now := settings{}
	a := stable(t, &now)
	for n := range 3 {
		post(a.Proxy, chatPath, "", clocked(n, n))
		if got := contents(t, a.engine.last()); strings.Contains(got[0], "04:14") {
			t.Errorf("turn %d: %q", n, got[0])
		}
		if r := a.reports.wait(t); r.Carried != (n > 0) {
			t.Errorf("turn %d: carried %v", n, r.Carried)
		}
		now.holdOut = 1
	}
}

// What is switched off by the client, or has places in its texts, passes as it came.
func TestStabiliserPasses(t *testing.T) {
	a := stable(t, &settings{})
	body := clocked(0, 1)
	if post(a.Proxy, chatPath, "", body, "X-ContextPilot-Enabled", "false"); a.engine.last() != body {
		t.Errorf("switched off: %s", a.engine.last())
	}
	body = strings.TrimSuffix(body, "}") + `,"blocks":[{"message":0,"from":0,"to":1}]}`
	if post(a.Proxy, chatPath, "", body); a.engine.last() != body {
		t.Errorf("with places: %s", a.engine.last())
	}
	body = strings.TrimSuffix(clocked(0, 1), "}") + `,"model":"again"}`
	if post(a.Proxy, chatPath, "", body); a.engine.last() != body {
		t.Errorf("with a member twice: %s", a.engine.last())
	}
}

// In shadow mode a body is forwarded as it came, and what would have been done is reported. A gateway gets the stabilised body.
func TestStabiliserInShadowAndBehindGateway(t *testing.T) {
	now := settings{shadow: true}
	a := stable(t, &now)
	if post(a.Proxy, chatPath, "", clocked(1, 1)); a.engine.last() != clocked(1, 1) {
		t.Errorf("in shadow mode: %s", a.engine.last())
	}
	if r := a.reports.wait(t); !r.Shadow || r.Stabilised.Volatile != 1 {
		t.Errorf("in shadow mode: reported %+v", r.Stabilised)
	}
	now.shadow = false
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, http.NoBody)
	sent := a.Rewrite(r, []byte(chat("Today is Friday", "other")))
	if want := []string{"other\n\n[from the system text: Today is Friday]"}; !slices.Equal(contents(t, string(sent.Body)), want) {
		t.Errorf("behind a gateway: %s", sent.Body)
	}
	sent.Answer(200)
	sent.Ended(nil, nil, nil)
}
