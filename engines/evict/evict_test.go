package evict_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/evict"
)

func TestNormalize(t *testing.T) {
	got := evict.Normalize([]string{
		"req-a1", "cmpl-req-a1-0-00ff", "", "batch-b", "HEALTH_CHECK_3", "cmpl-HEALTH_CHECK", "req-x-12-abc", "b", "x-0-ab",
		"req-a-b-0-ff", "cmpl-chatcmpl-2", "cmpl-",
	})
	want := []string{"req-a1", "b", "req-x", "x-0-ab", "req-a-b-0-ff", "chatcmpl-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ id, known, want string }{
		{"req-a", "req-a", "req-a"},
		{"chatcmpl-req-a-0a1b2c3d", "req-a", "req-a"},
		{"cmpl-req-a-0-0a1b2c3d", "req-a", "req-a"},
		{"chatcmpl-req-a", "req-a", "req-a"},
		{"batch-req-a", "req-a", "req-a"},
		{"cmpl-my-own-id-0-0a1b2c3d", "my-own-id my my-own", "my-own-id"}, // the longest
		{"my-own-id-0a1b2c3d", "my-own", "my-own"},
		{"req-deadbeef", "req-deadbeef req", "req-deadbeef"}, // itself before anything shorter
		{"cmpl-1", "cmpl-1 1", "cmpl-1"},                     // a user's ID may begin like an engine's
		{"cmpl-cmpl-1-0-0a1b2c3d", "cmpl-1", "cmpl-1"},
		{"req-ab", "req-a", ""}, // no dash between
		{"req-a", "req-a-1", ""},
		{"HEALTH_CHECK_1", "HEALTH_CHECK_1", ""},
		{"chatcmpl-HEALTH_CHECK_1-0a1b2c3d", "HEALTH_CHECK_1", ""},
		{"", "a", ""},
		{"cmpl-", "cmpl", ""},
		{"-a", "a", ""},
		{"a-" + strings.Repeat("x", evict.MaxID), "a", ""},
	} {
		known := strings.Fields(c.known)
		got, ok := evict.Match(c.id, func(id string) bool { return slices.Contains(known, id) })
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q among %v: %q, want %q", c.id, known, got, c.want)
		}
	}
}

// Whatever vLLM does to an ID, it is found again among others that it is not.
func TestMatchFindsBack(t *testing.T) {
	ids := rapid.StringMatching(`[a-z0-9_.:/-]{1,20}`).Filter(func(id string) bool { return len(evict.Normalize([]string{id})) == 1 })
	rapid.Check(t, func(t *rapid.T) {
		id := ids.Draw(t, "id")
		hex := rapid.StringMatching(`[0-9a-f]{8}`).Draw(t, "tail")
		name := rapid.SampledFrom([]string{
			"chatcmpl-" + id + "-" + hex, "cmpl-" + id + "-" + rapid.StringMatching(`[0-9]{1,3}`).Draw(t, "n") + "-" + hex, "chatcmpl-" + id, id,
		}).Draw(t, "name")
		got, ok := evict.Match(name, func(s string) bool { return s == id })
		if !ok || got != id {
			t.Errorf("%q is not found as %q: %q", name, id, got)
		}
	})
}

func TestRegistry(t *testing.T) {
	r := evict.NewRegistry(2)
	for i, id := range []string{"a", "b", "", strings.Repeat("x", 1000), "c"} {
		r.Add(id, contextpilot.Scope{Replica: fmt.Sprint(i)})
	}
	for id, want := range map[string]bool{"a": false, "b": true, "c": true, "": false} {
		if _, ok := r.Find(id); ok != want {
			t.Errorf("%q is known: %v", id, ok)
		}
	}
	r.Add("b", contextpilot.Scope{Replica: "new"})
	if scope, _ := r.Find("b"); scope.Replica != "new" {
		t.Errorf("%+v", scope)
	}
	r.Drop("b")
	r.Drop("b")
	if _, ok := r.Find("b"); ok {
		t.Error("b is still known")
	}
}

// pilot is a pilot with requests that were sent and served, and the handler for their evictions.
func pilot(t testing.TB, ids ...string) (*contextpilot.Pilot, *evict.Registry, *evict.Handler) {
	p, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	requests := evict.NewRegistry(0)
	for i, id := range ids {
		scope := contextpilot.Scope{Replica: fmt.Sprint(i % 2)}
		p.Plan(contextpilot.Request{ID: id, Scope: scope, Blocks: []contextpilot.Block{{ID: "x" + id, Tokens: 100}, {ID: "y" + id, Tokens: 100}}})
		p.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: scope, Request: id})
		requests.Add(id, scope)
	}
	return p, requests, evict.New(evict.Options{Requests: requests, Observe: p.Observe})
}

func post(t testing.TB, h http.Handler, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/evict", strings.NewReader(body)))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

// TestHandler: what a plugin posts becomes what a pilot knows.
func TestHandler(t *testing.T) {
	p, requests, h := pilot(t, "a", "b-c", "d", "e")
	code, body := post(t, h, `{"request_ids":["chatcmpl-a-0a1b2c3d","a","HEALTH_CHECK_7","stranger"],
		"prefixes":[{"request_id":"chatcmpl-b-c-0a1b2c3d","resident_tokens":130,"more":1},{"request_id":"d","resident_tokens":0},{"request_id":"a","resident_tokens":64}],
		"sent_at":"now"}`)
	if code != http.StatusOK {
		t.Fatal(code, body)
	}
	var got evict.Result
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := evict.Result{
		Status: "success", Normalized: []string{"a-0a1b2c3d", "a", "stranger"}, Removed: 3,
		Evicted: []string{"a", "d"}, Shrunk: []string{"b-c"}, NotFound: []string{"stranger"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	st := p.Stats()
	// Of b-c one block of 100 tokens is whole within 130.
	if st.LiveRequests != 2 || st.IndexTokens >= 400 || st.IndexTokens < 300 {
		t.Errorf("%d requests with %d tokens are left", st.LiveRequests, st.IndexTokens)
	}
	if _, ok := requests.Find("a"); ok {
		t.Error("a request that is gone is still registered")
	}
	if _, ok := requests.Find("b-c"); !ok {
		t.Error("a request that shrank is not registered any more")
	}
}

// TestEvents: events are reported in one call, gone requests first, each in the scope of its request.
func TestEvents(t *testing.T) {
	one, two := contextpilot.Scope{Tenant: "1"}, contextpilot.Scope{Tenant: "2"}
	requests := evict.NewRegistry(0)
	requests.Add("a", one)
	requests.Add("b", two)
	var calls [][]contextpilot.Event
	h := evict.New(evict.Options{Requests: requests, Observe: func(events ...contextpilot.Event) int {
		calls = append(calls, slices.Clone(events))
		return len(events)
	}})
	h.Apply(evict.Report{Shrunk: []evict.Prefix{{ID: "b", Tokens: 64}}, Gone: []string{"a"}})
	h.Apply(evict.Report{Gone: []string{"a"}}) // gone before: no event
	want := [][]contextpilot.Event{{
		{Kind: contextpilot.Gone, Scope: one, Request: "a"},
		{Kind: contextpilot.Shrunk, Scope: two, Request: "b", Tokens: 64},
	}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
}

func TestBadBodies(t *testing.T) {
	_, _, h := pilot(t, "a")
	detail := func(kind, loc, msg, input string) string {
		return fmt.Sprintf(`{"detail":[{"type":%q,"loc":%s,"msg":%q,"input":%s}]}`, kind, loc, msg, input)
	}
	const notObject = "Input should be a valid dictionary or object to extract fields from"
	for _, c := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"nothing", "", 422, detail("missing", `["body"]`, "Field required", "null")},
		{"null", "null", 422, detail("missing", `["body"]`, "Field required", "null")},
		{"cut off", `{"request_ids":`, 422, detail("json_invalid", `["body",15]`, "JSON decode error", "null")},
		{"more behind", `{} x`, 422, detail("json_invalid", `["body",4]`, "JSON decode error", "null")},
		{"no object", `[1]`, 422, detail("model_attributes_type", `["body"]`, notObject, "[1]")},
		{"neither member", `{"x":1}`, 422, detail("missing", `["body","request_ids"]`, "Field required", `{"x":1}`)},
		{"no list", `{"request_ids":"a"}`, 422, detail("list_type", `["body","request_ids"]`, "Input should be a valid list", `"a"`)},
		{"a null list", `{"request_ids":null}`, 422, detail("list_type", `["body","request_ids"]`, "Input should be a valid list", `null`)},
		{"no text", `{"request_ids":["a",1]}`, 422, detail("string_type", `["body","request_ids",1]`, "Input should be a valid string", "1")},
		{"no prefix", `{"prefixes":[7]}`, 422, detail("model_attributes_type", `["body","prefixes",0]`, notObject, "7")},
		{
			"no ID", `{"prefixes":[{"resident_tokens":1}]}`, 422,
			detail("missing", `["body","prefixes",0,"request_id"]`, "Field required", `{"resident_tokens":1}`),
		},
		{
			"no tokens", `{"prefixes":[{"request_id":"a"}]}`, 422,
			detail("missing", `["body","prefixes",0,"resident_tokens"]`, "Field required", `{"request_id":"a"}`),
		},
		{
			"part of a token", `{"prefixes":[{"request_id":"a","resident_tokens":1.5}]}`, 422,
			detail("int_type", `["body","prefixes",0,"resident_tokens"]`, "Input should be a valid integer", "1.5"),
		},
		{
			"less than no tokens", `{"prefixes":[{"request_id":"a","resident_tokens":-1}]}`, 422,
			detail("greater_than_equal", `["body","prefixes",0,"resident_tokens"]`, "Input should be greater than or equal to 0", "-1"),
		},
		{
			"too many tokens", `{"prefixes":[{"request_id":"a","resident_tokens":99999999999999999999}]}`, 422,
			detail("int_parsing_size", `["body","prefixes",0,"resident_tokens"]`, "Unable to parse input as an integer, exceeded maximum size",
				"99999999999999999999"),
		},
		{"no text at all", "{\"request_ids\":[\"\xff\"]}", 400, `{"detail":"There was an error parsing the body"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := post(t, h, c.body)
			if code != c.code || body != c.want {
				t.Errorf("%d %s\nwant %d %s", code, body, c.code, c.want)
			}
		})
	}
	if _, body := post(t, h, `{"request_ids":[`+strings.Repeat("1,", 5000)+`1]}`); strings.Count(body, "string_type") != 100 {
		t.Errorf("%d problems are reported", strings.Count(body, "string_type"))
	}
	// A bad part changes nothing, also not by its good parts.
	if code, _ := post(t, h, `{"request_ids":["a",1]}`); code != 422 {
		t.Error(code)
	}
	if _, body := post(t, h, `{"request_ids":["a"]}`); !strings.Contains(body, `"evicted_request_ids":["a"]`) {
		t.Error("a refused report evicted: " + body)
	}
	small := evict.New(evict.Options{MaxBody: 10})
	if code, body := post(t, small, `{"request_ids":["a"]}`); code != 413 || body != `{"detail":"the body is larger than 10 bytes"}` {
		t.Errorf("%d %s", code, body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/evict", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/evict", io.MultiReader(strings.NewReader("{"), broken{})))
	if w.Code != 400 {
		t.Errorf("a body that breaks off: %d", w.Code)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection lost") }

// TestNobody: a handler without anybody behind it answers.
func TestNobody(t *testing.T) {
	if code, body := post(t, evict.New(evict.Options{}), `{"request_ids":["a"]}`); code != 200 ||
		!strings.Contains(body, `"not_found":["a"]`) {
		t.Errorf("%d %s", code, body)
	}
}

// TestTogether: reports and new requests at the same time, for the race detector.
func TestTogether(t *testing.T) {
	p, requests, h := pilot(t)
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("w%d-%d", worker, i)
				p.Plan(contextpilot.Request{ID: id, Blocks: []contextpilot.Block{{ID: "x" + id, Tokens: 10}}})
				p.Observe(contextpilot.Event{Kind: contextpilot.Served, Request: id})
				requests.Add(id, contextpilot.Scope{})
				h.Apply(evict.Report{Gone: []string{"chatcmpl-" + id + "-0a1b2c3d"}})
			}
		})
	}
	wait.Wait()
	if n := p.Stats().LiveRequests; n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

func TestProblems(t *testing.T) {
	_, err := evict.Parse([]byte(`{"request_ids":[1,2]}`))
	if want := `bad report: Input should be a valid string at ["body","request_ids",0] and 1 more`; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// FuzzHandler: no body breaks it; what is answered is JSON, and refused bodies change nothing.
func FuzzHandler(f *testing.F) {
	for _, seed := range []string{
		`{"request_ids":["chatcmpl-a-0a1b2c3d","b"],"prefixes":[{"request_id":"c","resident_tokens":192}]}`,
		`{"request_ids":["a-1","a","",null]}`, `{"prefixes":[{"request_id":"a","resident_tokens":1e9}]}`, `[[[[`, `{"prefixes":[{}]}`, "\xff",
		`{"request_ids":["\ud800"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		requests := evict.NewRegistry(0)
		for _, id := range []string{"a", "b", "c-d"} {
			requests.Add(id, contextpilot.Scope{Tenant: id})
		}
		reported := 0
		h := evict.New(evict.Options{Requests: requests, Observe: func(events ...contextpilot.Event) int {
			for _, e := range events {
				reported++
				if e.Scope.Tenant != e.Request || e.Tokens < 0 || e.Kind == contextpilot.Shrunk && e.Tokens == 0 {
					t.Errorf("event %+v", e)
				}
			}
			return len(events)
		}})
		code, answer := post(t, h, string(body))
		if !json.Valid([]byte(answer)) {
			t.Errorf("answer %q", answer)
		}
		switch {
		case code != 200 && code != 400 && code != 422:
			t.Errorf("status %d", code)
		case code != 200 && reported > 0:
			t.Errorf("status %d and %d events", code, reported)
		case reported > 3:
			t.Errorf("%d events of 3 requests", reported)
		}
	})
}

// BenchmarkHandler is a report of 100 requests with a plugin's names, 10 of them known.
func BenchmarkHandler(b *testing.B) {
	requests := evict.NewRegistry(0)
	var ids []string
	for i := range 100 {
		id := fmt.Sprintf("req-%012x", i)
		if i%10 == 0 {
			requests.Add(id, contextpilot.Scope{})
		}
		ids = append(ids, `"chatcmpl-`+id+`-0a1b2c3d"`)
	}
	h := evict.New(evict.Options{Requests: kept{requests}})
	body := `{"request_ids":[` + strings.Join(ids, ",") + `]}`
	b.ReportAllocs()
	for b.Loop() {
		r, err := evict.Parse([]byte(body))
		if err != nil {
			b.Fatal(err)
		}
		if got := h.Apply(r); len(got.Evicted) != 10 {
			b.Fatal(len(got.Evicted))
		}
	}
}

// kept forgets nothing.
type kept struct{ *evict.Registry }

func (kept) Drop(string) {}
