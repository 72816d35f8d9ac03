package sidecar_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// prefixEngine stands in for replicas behind a balancer: a fake whose caches hold the bodies that it has answered, byte for byte. A token
// is four bytes, and it generates nothing.
type prefixEngine struct {
	*httptest.Server

	mu      sync.Mutex
	replica string                         // that answers; "": a header names none
	caches  map[string][]string            // by replica
	answer  func(http.ResponseWriter) bool // in place of the answer; nil: none
}

func newPrefixEngine(t testing.TB) *prefixEngine {
	e := &prefixEngine{caches: map[string][]string{}}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *prefixEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if e.answer != nil && e.answer(w) {
		return
	}
	body, cached := string(raw), 0
	for _, earlier := range e.caches[e.replica] {
		n := 0
		for n < min(len(body), len(earlier)) && body[n] == earlier[n] {
			n++
		}
		cached = max(cached, n)
	}
	e.caches[e.replica] = append(e.caches[e.replica], body)
	if e.replica != "" {
		w.Header().Set("X-Served-By", e.replica)
	}
	fmt.Fprintf(w, `{"id":"x","choices":[{"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":%d,"completion_tokens":1,`+
		`"prompt_tokens_details":{"cached_tokens":%d}}}`, len(body)/4, cached/4)
}

func (e *prefixEngine) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// misses are what the dashboard shows once so many prompts were compared.
func misses(t testing.TB, l live, compared int) dashboard.Misses {
	t.Helper()
	var d dashboard.Data
	testkit.Eventually(t, fmt.Sprint(compared, " prompts are compared"), func() bool {
		r := request(t, http.MethodGet, l.admin.URL+"/ui/data.json", "")
		d = dashboard.Data{}
		if err := json.Unmarshal([]byte(r.text), &d); err != nil || d.Misses == nil {
			t.Fatalf("%v: %s", err, r.text)
		}
		return d.Misses.Compared >= compared
	})
	return *d.Misses
}

// manual is a long text that is the same in all prompts.
var manual = strings.Repeat("Answer from the manual alone, and name the page that you have it from. ", 40)

// plainChat is a body with a system text and a question.
func plainChat(system, question string) string {
	s, _ := json.Marshal(system)
	q, _ := json.Marshal(question)
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%s},{"role":"user","content":%s}]}`, s, q)
}

// clock is a body whose system text begins with a time.
func clock(minute int) string {
	return plainChat(fmt.Sprintf("It is 2026-05-04 10:%02d. %s", minute, manual), "Who wrote it?")
}

func newMisses(t *testing.T, e *prefixEngine, change func(*settings.Config)) live {
	t.Helper()
	return newTenants(t, sidecar.Options{}, func(c *settings.Config) {
		c.InferAPIURL = e.URL
		if change != nil {
			change(c)
		}
	})
}

// A time in front of the system text is found, with its place, and what it costs.
func TestMissIsShown(t *testing.T) {
	l := newMisses(t, newPrefixEngine(t), func(c *settings.Config) {
		c.Prices, c.Currency = []settings.Price{{Model: "m", Input: 2, CacheRead: 1}}, "EUR"
	})
	for minute := range 3 {
		do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(minute), "X-ContextPilot-Session", "talk")
	}
	d := misses(t, l, 3)
	if len(d.Last) != 2 || len(d.Causes) != 1 {
		t.Fatalf("%+v", d)
	}
	m := d.Last[0]
	if m.Cause != "clock" || m.Source != "ragpilot" || m.Path != "messages[0].content" || m.Tenant != "red" || m.Session != "talk" ||
		m.Model != "m" || m.ID == "" || m.Against == "" || m.Against == m.ID || m.Against != d.Last[1].ID {
		t.Errorf("%+v", m)
	}
	if m.Lost == nil || *m.Lost < 400 || m.Token > 20 || m.Was != "" || m.Is != "" {
		t.Errorf("%+v", m)
	}
	if m.Money == nil || *m.Money != float64(*m.Lost)/1e6 || d.Currency != "EUR" {
		t.Errorf("money %v of %d tokens in %s", m.Money, *m.Lost, d.Currency)
	}
	if c := d.Causes[0]; c.Misses != 2 || c.Lost != *m.Lost+*d.Last[1].Lost || c.Money == nil {
		t.Errorf("%+v", c)
	}
}

// What only goes on is no miss, and an answer that was an error is nothing to compare with.
func TestNoMiss(t *testing.T) {
	e := newPrefixEngine(t)
	l := newMisses(t, e, nil)
	send := func(body string) { request(t, http.MethodPost, l.front.URL+chatPath, body) }
	other := strings.Repeat("You are the guide of a museum. Say where each picture hangs. ", 20)
	send(plainChat(other, "Who painted it?"))
	send(plainChat(other, "And when was that?"))
	e.set(func() {
		e.answer = func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
	})
	send(clock(1))
	e.set(func() { e.answer = nil })
	send(plainChat("Say yes.", "Well?"))
	send(clock(2))
	if d := misses(t, l, 4); len(d.Last) != 0 || d.Compared != 4 || d.Dropped != 0 {
		t.Errorf("%+v", d)
	}
}

// An engine that has less than earlier prompts promise is looked at: what it evicted, by either report, and where the earlier one went.
func TestMissOfTheEngine(t *testing.T) {
	t.Run("evicted, by events", func(t *testing.T) {
		e := newKVEngine(t)
		e.publish(t)
		f := follow(t, e, nil, vllmAt(e))
		f.ready(t)
		f.ask(t, "", chatPath, chatOf("apple", ""))
		await(t, "its tokens are known", func() bool { return f.caches().Prompts.Learned == 1 })
		f.ask(t, "", chatPath, chatOf("apple", "")) // the fake names no cached tokens: the engine has not said why
		await(t, "both are compared", func() bool { return f.shown(t).Misses.Compared == 2 })
		e.evict(t, "apple", 0)
		await(t, "it has left the index", func() bool { return f.index(t)[""][0] == 0 })
		f.ask(t, "", chatPath, chatOf("apple", ""))
		await(t, "the third is, too", func() bool { return f.shown(t).Misses.Compared == 3 })
		d := f.shown(t).Misses
		if len(d.Last) != 2 || d.Last[0].Cause != "evicted" || d.Last[1].Cause != "other" || d.Last[0].Path != "" {
			t.Errorf("%+v", d.Last)
		}
	})
	t.Run("below a block", func(t *testing.T) {
		e := newKVEngine(t)
		e.four = true
		e.publish(t)
		f := follow(t, e, nil, vllmAt(e))
		f.ready(t)
		question := func(topic string) string {
			return plainChat("You are the guide of a museum.", strings.Repeat("Tell me about "+topic+". ", 20))
		}
		f.ask(t, "", chatPath, question("red"))
		await(t, "the length of a block is known", func() bool { return f.caches().Sources[0].Events > 0 })
		f.ask(t, "", chatPath, question("blue"))
		await(t, "both are compared", func() bool { return f.shown(t).Misses.Compared == 2 })
		if d := f.shown(t).Misses; len(d.Last) != 1 || d.Last[0].Cause != "below-block" || *d.Last[0].Lost >= kvBlock {
			t.Errorf("%+v", d)
		}
	})
	t.Run("evicted, by POST", func(t *testing.T) {
		e := newPrefixEngine(t)
		l := newMisses(t, e, nil)
		do(t, http.MethodPost, l.front.URL+"/reorder", "red", `{"contexts":[[1,2],[2,3]]}`) // an index, so that requests have IDs
		body := strings.Replace(plainChat(manual, "Who wrote it?"), "{", `{"rid":"one",`, 1)
		do(t, http.MethodPost, l.front.URL+chatPath, "red", body)
		misses(t, l, 1)
		e.set(func() { clear(e.caches) })
		do(t, http.MethodPost, l.front.URL+"/evict", "red", `{"request_ids":["chatcmpl-one"]}`)
		do(t, http.MethodPost, l.front.URL+chatPath, "red", strings.Replace(body, "one", "two", 1))
		if d := misses(t, l, 2); len(d.Last) != 1 || d.Last[0].Cause != "evicted" || d.Last[0].Against != "one" || d.Last[0].ID != "two" {
			t.Errorf("%+v", d.Last)
		}
	})
	for name, want := range map[string]string{"replica": "X-Served-By", "other": ""} {
		t.Run(name, func(t *testing.T) {
			e := newPrefixEngine(t)
			l := newMisses(t, e, func(c *settings.Config) { c.ReplicaHeader = want })
			for n, replica := range []string{"a", "a", "b", "b"} {
				e.set(func() { e.replica = replica })
				do(t, http.MethodPost, l.front.URL+chatPath, "", plainChat(manual, "Who wrote it?"))
				misses(t, l, n+1)
			}
			if d := misses(t, l, 4); len(d.Last) != 1 || d.Last[0].Cause != name {
				t.Errorf("%+v", d.Last)
			}
		})
	}
}

// Tenants are not compared with each other, and what is known of one can be erased.
func TestMissesOfTenants(t *testing.T) {
	l := newMisses(t, newPrefixEngine(t), nil)
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(1))
	do(t, http.MethodPost, l.front.URL+chatPath, "blue", clock(2))
	if d := misses(t, l, 2); len(d.Last) != 0 {
		t.Fatalf("%+v", d.Last)
	}
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(3))
	do(t, http.MethodPost, l.front.URL+chatPath, "blue", clock(4))
	if d := misses(t, l, 4); len(d.Last) != 2 {
		t.Fatalf("%+v", d.Last)
	}
	do(t, http.MethodPost, l.admin.URL+"/forget?"+url.Values{"tenant": {"red"}}.Encode(), "", "")
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(5))
	if d := misses(t, l, 5); len(d.Last) != 1 || d.Last[0].Tenant != "blue" {
		t.Errorf("%+v", d.Last)
	}
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(6))
	if d := misses(t, l, 6); len(d.Last) != 2 || d.Last[0].Tenant != "red" {
		t.Errorf("%+v", d.Last)
	}
}

// The header is there if it is asked for, on answers of all kinds, and that of an engine does not pass then.
func TestMissHeader(t *testing.T) {
	for _, on := range []bool{false, true} {
		e := newPrefixEngine(t)
		l := newMisses(t, e, func(c *settings.Config) { c.MissHeader = on })
		var got []string
		for minute := range 2 {
			got = append(got, request(t, http.MethodPost, l.front.URL+chatPath, clock(minute)).header.Get("X-Ragpilot-Miss"))
		}
		d := misses(t, l, 2)
		if len(d.Last) != 1 {
			t.Fatalf("%+v", d.Last)
		}
		switch {
		case !on && (got[0] != "" || got[1] != ""), on && got[0] != "":
			t.Errorf("%v: %q", on, got)
		case on && !strings.HasPrefix(got[1], "cause=clock; path=messages[0].content; token="):
			t.Errorf("%q", got)
		}
	}
}

// The setting switches all of it off.
func TestNoDiagnosis(t *testing.T) {
	l := newMisses(t, newPrefixEngine(t), func(c *settings.Config) { c.DiagnosisBytes = 0 })
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(1))
	do(t, http.MethodPost, l.front.URL+chatPath, "red", clock(2))
	if text := request(t, http.MethodGet, l.admin.URL+"/ui/data.json", "").text; !strings.Contains(text, `"misses":null`) {
		t.Error(text)
	}
	do(t, http.MethodPost, l.admin.URL+"/forget?tenant=red", "", "")
}
