package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
)

// cloud is a proxy in front of a scripted provider, with a clock that only the test moves.
type cloud struct {
	t     *testing.T
	p     *proxy.Proxy
	pilot *contextpilot.Pilot
	rep   *reports
	mu    sync.Mutex
	now   time.Time
	usage string // of the next answers
	code  int
}

func newCloud(t *testing.T, prices map[string]cloudcache.Price) *cloud {
	c := &cloud{t: t, rep: newReports(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), code: http.StatusOK}
	clock := func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}
	e := newEngine(t)
	e.answer = func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.code)
		fmt.Fprintf(w, `{"content":[],"usage":{%s}}`, c.usage)
	}
	c.p = newProxy(t, e, func(o *proxy.Options) {
		provider, err := cloudcache.New(
			cloudcache.Options{Provider: "anthropic", Base: o.Upstream, Prices: prices, Currency: "XTS", Now: clock},
		)
		if err != nil {
			t.Fatal(err)
		}
		o.Provider, o.Now, o.Recorder = provider, clock, c.rep
		c.pilot = o.Pilot
	})
	return c
}

func (c *cloud) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ask sends a conversation whose system text holds documents, and returns the report.
func (c *cloud) ask(tenant, usage, documents string, turns ...string) proxy.Report {
	c.t.Helper()
	c.mu.Lock()
	c.usage = usage
	c.mu.Unlock()
	var messages []map[string]string
	for i, text := range turns {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	body, _ := json.Marshal(map[string]any{"model": "m", "system": documents, "messages": messages})
	post(c.p, "/v1/messages", tenant, string(body))
	return c.rep.wait(c.t)
}

const (
	wrote   = `"input_tokens":10,"cache_read_input_tokens":0,"cache_creation_input_tokens":2000,"output_tokens":5`
	read    = `"input_tokens":10,"cache_read_input_tokens":2000,"cache_creation_input_tokens":0,"output_tokens":5`
	nothing = `"input_tokens":10,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":5`
)

// What the provider has dropped after its time to live is predicted no longer; what is read in time stays.
func TestPredictionEndsWithTheProvidersTime(t *testing.T) {
	const ttl = 5 * time.Minute
	c := newCloud(t, nil)
	sets := 0
	long := func() string { // another set each time, which begins alike: the same one would not be planned again
		sets++
		return docs(strings.Repeat("one ", 300), strings.Repeat("two ", 300), fmt.Sprint("other ", sets))
	}
	live := func() int64 {
		c.p.Expire()
		return c.pilot.Stats().LiveRequests
	}
	if r := c.ask("", wrote, long(), "q1"); r.Predicted != 0 || r.Prompt != 2010 || r.Cached != 0 {
		t.Errorf("first: predicted %d, prompt %d, cached %d", r.Predicted, r.Prompt, r.Cached)
	}
	c.pass(ttl - 1)
	if r := c.ask("", read, long(), "q2"); r.Predicted < 300 {
		t.Errorf("just in time: predicted %d", r.Predicted)
	}
	c.pass(ttl - 1)
	if n := live(); n != 1 {
		t.Errorf("read in time: %d prompts live, want that of the second request", n)
	}
	c.pass(1)
	if n := live(); n != 0 {
		t.Errorf("it was not read for its time: %d prompts live", n)
	}
	kept := long()
	if r := c.ask("", wrote, kept, "q3"); r.Predicted != 0 {
		t.Errorf("after its time: predicted %d", r.Predicted)
	}

	// A conversation keeps its beginning alive, although its later turns are not planned anew.
	c.pass(ttl - time.Minute)
	c.ask("", read, kept, "q3", "a", "q4")
	c.pass(2 * time.Minute)
	if r := c.ask("", read, long(), "q5"); r.Predicted < 300 {
		t.Errorf("kept by a conversation: predicted %d", r.Predicted)
	}
	c.pass(ttl)
	if r := c.ask("", read, long(), "q6"); r.Predicted != 0 {
		t.Errorf("after its time again: predicted %d", r.Predicted)
	}
}

func TestNothingIsPredictedThatIsNotCached(t *testing.T) {
	c := newCloud(t, nil)
	long := func(last string) string { return docs(strings.Repeat("one ", 300), strings.Repeat("two ", 300), last) }
	c.ask("", nothing, long("a"), "q1")
	if r := c.ask("", nothing, long("b"), "q2"); r.Predicted != 0 {
		t.Errorf("the provider caches nothing so short: predicted %d", r.Predicted)
	}
	c.code = http.StatusBadRequest
	c.ask("", wrote, long("c"), "q1")
	c.code = http.StatusOK
	if r := c.ask("", wrote, long("d"), "q2"); r.Predicted != 0 {
		t.Errorf("the first request was refused: predicted %d", r.Predicted)
	}
}

// Each tenant sees its own account, with the money that its own answers' usage is worth.
func TestCloudStatsAreTheTenantsOwn(t *testing.T) {
	c := newCloud(t, map[string]cloudcache.Price{"m": {Input: 10, Output: 50}})
	c.ask("a", wrote, "s", "q")
	c.ask("a", read, "s", "q")
	c.ask("b", `"input_tokens":1,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":1`, "s", "q")
	for name, want := range map[string]string{
		"a": `"account":{"requests":2,"silent":0,"plain_tokens":20,"read_tokens":2000,"written_tokens":2000,"written_1h_tokens":0,` +
			`"output_tokens":10,"cost":0.0277,"cost_requests":2,"saved":0.013,"saved_requests":2,"currency":"XTS"}`,
		"b": `"account":{"requests":1,"silent":0,"plain_tokens":1,"read_tokens":0,"written_tokens":0,"written_1h_tokens":0,` +
			`"output_tokens":1,"cost":0.00006,"cost_requests":1,"saved":0,"saved_requests":1,"currency":"XTS"}`,
		"c": `"account":{"requests":0,`,
	} {
		w := get(c.p, "/cloud/stats", name)
		if got := w.Body.String(); !strings.Contains(got, want) {
			t.Errorf("tenant %s: %s, want %s", name, got, want)
		}
	}
}

// In shadow mode the report says what would have been done, and the client's saved characters are none.
func TestShadowReports(t *testing.T) {
	e, rep, x := newEngine(t), newReports(), &index{}
	p := newProxy(t, e, func(o *proxy.Options) {
		o.Recorder, o.Index, o.KeepTexts = rep, x, true
		o.Live = func() (bool, float64) { return true, 0.25 }
	})
	body := chat("s", "held in by its hash", docs("a a", "b b"), docs("b b", "c c"))
	post(p, chatPath, "", body)
	r := rep.wait(t)
	if !r.Shadow || r.HeldOut || !r.Planned || r.Share != 0.25 || r.LeftOut == 0 {
		t.Errorf("%+v", r)
	}
	if strings.Contains(string(r.After), "b b\\u003c/document\\u003e\\n\\u003cdocument\\u003ec c") || string(r.After) == string(r.Before) {
		t.Errorf("the body that would have been sent: %s", r.After)
	}
	var sent, came map[string]any
	_ = json.Unmarshal([]byte(e.last()), &sent)
	_ = json.Unmarshal([]byte(body), &came)
	if fmt.Sprint(sent["messages"]) != fmt.Sprint(came["messages"]) {
		t.Errorf("forwarded %v", sent["messages"])
	}
	if x.chars != 0 || x.ttft != 1 {
		t.Errorf("%d characters saved in %d answers", x.chars, x.ttft)
	}
}
