package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// request is ask for tests of package rapid.
func request(t rapid.TB, h http.Handler, path string, body any) (int, reply, []byte) {
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(raw)))
	var out reply
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w.Code, out, w.Body.Bytes()
}

// What is wrong with a request is reported in the words of the reference's validator.
func TestValidation(t *testing.T) {
	problem := func(kind, msg, input string, loc string) string {
		return `{"type":"` + kind + `","loc":` + loc + `,"msg":"` + msg + `","input":` + input
	}
	for _, c := range []struct{ name, path, body, want string }{
		{"no body", "/reorder", "", problem("missing", "Field required", "null", `["body"]`) + "}"},
		{"null", "/reorder", "null", problem("missing", "Field required", "null", `["body"]`) + "}"},
		{"a list", "/evict", "[1]", problem("model_attributes_type", "Input should be a valid dictionary or object to extract fields from",
			"[1]", `["body"]`) + "}"},
		{
			"contexts null", "/schedule", `{"contexts":null}`,
			problem("list_type", "Input should be a valid list", "null", `["body","contexts"]`) + "}",
		},
		{
			"alpha null", "/reorder", `{"contexts":[],"alpha":null}`,
			problem("float_type", "Input should be a valid number", "null", `["body","alpha"]`) + "}",
		},
		{
			"alpha negative", "/reorder", `{"contexts":[],"alpha":-1}`,
			problem("greater_than_equal", "Input should be greater than or equal to 0", "-1", `["body","alpha"]`) + `,"ctx":{"ge":0}}`,
		},
		{
			"alpha huge", "/reorder", `{"contexts":[],"alpha":1e300}`,
			problem("less_than_equal", "Input should be less than or equal to 1000000", "1e300", `["body","alpha"]`) + `,"ctx":{"le":1000000}}`,
		},
		{
			"alpha infinite", "/reorder", `{"contexts":[],"alpha":"inf"}`,
			problem("finite_number", "Input should be a finite number", `"inf"`, `["body","alpha"]`) + "}",
		},
		{
			"use_gpu", "/reorder", `{"contexts":[],"use_gpu":"maybe"}`,
			problem("bool_parsing", "Input should be a valid boolean, unable to interpret input", `"maybe"`, `["body","use_gpu"]`) + "}",
		},
		{
			"deduplicate", "/reorder", `{"contexts":[],"deduplicate":[]}`,
			problem("bool_type", "Input should be a valid boolean", "[]", `["body","deduplicate"]`) + "}",
		},
		{
			"tokens", "/reorder", `{"contexts":[],"initial_tokens_per_context":1.5}`,
			problem("int_from_float", "Input should be a valid integer, got a number with a fractional part", "1.5",
				`["body","initial_tokens_per_context"]`) + "}",
		},
		{
			"tokens as text", "/insert", `{"context":[],"search_path":[],"total_tokens":"x"}`,
			problem("int_parsing", "Input should be a valid integer, unable to parse string as an integer", `"x"`, `["body","total_tokens"]`) + "}",
		},
		{
			"linkage", "/reorder", `{"contexts":[],"linkage_method":7}`,
			problem("string_type", "Input should be a valid string", "7", `["body","linkage_method"]`) + "}",
		},
		{
			"parents", "/reorder", `{"contexts":[],"parent_request_ids":["a",null,3]}`,
			problem("string_type", "Input should be a valid string", "3", `["body","parent_request_ids",2]`) + "}",
		},
		{
			"hint", "/deduplicate", `{"contexts":[],"parent_request_ids":[],"hint_template":[]}`,
			problem("string_type", "Input should be a valid string", "[]", `["body","hint_template"]`) + "}",
		},
		{
			"request_ids", "/evict", `{"request_ids":["a",1]}`,
			problem("string_type", "Input should be a valid string", "1", `["body","request_ids",1]`) + "}",
		},
		{
			"search path", "/insert", `{"context":[1],"search_path":[0,"b"]}`,
			problem("int_parsing", "Input should be a valid integer, unable to parse string as an integer", `"b"`, `["body","search_path",1]`) +
				"}",
		},
		{"a float", "/search", `{"context":[1,2.5]}`, problem("int_from_float",
			"Input should be a valid integer, got a number with a fractional part", "2.5", `["body","context",1]`) + "}"},
		{
			"types over contexts", "/reorder", `{"contexts":[[],["a"],[null,true]]}`,
			problem("string_type", "Input should be a valid string", "null", `["body","contexts",2,0]`) + "}," +
				problem("string_type", "Input should be a valid string", "true", `["body","contexts",2,1]`) + "}",
		},
		{"two fields", "/insert", `{}`, problem("missing", "Field required", "{}", `["body","context"]`) + "}," +
			problem("missing", "Field required", "{}", `["body","search_path"]`) + "}"},
		{"no JSON", "/search", `{"context": [1, 2`, `{"type":"json_invalid","loc":["body",17],"msg":"JSON decode error","input":{},` +
			`"ctx":{"error":"Expecting ',' delimiter"}}`},
		{"count of characters", "/search", `{"ü": 1,}`, `{"type":"json_invalid","loc":["body",8],"msg":"JSON decode error","input":{},` +
			`"ctx":{"error":"Expecting property name enclosed in double quotes"}}`},
		{"more behind", "/evict", `{} x`, `{"type":"json_invalid","loc":["body",3],"msg":"JSON decode error","input":{},` +
			`"ctx":{"error":"Extra data"}}`},
	} {
		for _, stateless := range []bool{false, true} { // also before "not initialized"
			api := compat.New(compat.Options{Stateless: stateless})
			code, _, raw := ask(t.Context(), t, api, "", c.path, c.body)
			if want := `{"detail":[` + c.want + "]}"; code != http.StatusUnprocessableEntity || strings.TrimSpace(string(raw)) != want {
				t.Errorf("%s: %d\ngot  %s\nwant %s", c.name, code, raw, want)
			}
		}
	}
}

// The validator takes more than JSON's own types for numbers and booleans.
func TestLenientTypes(t *testing.T) {
	api := compat.New(compat.Options{})
	body := `{"contexts":[[1,2]],"alpha":" 0.5 ","use_gpu":"Yes","deduplicate":0,"initial_tokens_per_context":"12","other":{"x":[null]}}`
	got := do(t, api, "/build", body)
	check(t, "tokens", 12.0, got.Stats["total_tokens"])
	check(t, "path", []int{1}, do(t, api, "/insert", `{"context":[7],"search_path":["9",true,1.0],"total_tokens":3.0}`).SearchPath)
	check(t, "tokens", 15.0, do(t, api, "/stats", nil).IndexStats["total_tokens"])
}

func TestLimits(t *testing.T) {
	api := compat.New(compat.Options{Limits: compat.Fixed(3, 4)})
	long := strings.Repeat("1,", 2048) + "1"
	for _, c := range []struct{ path, body, want string }{
		{"/reorder", `{"contexts":[[1],[2],[3],[4]]}`, "contexts: 4 items, at most 3 are allowed"},
		{"/deduplicate", `{"contexts":[[1,2,3],[4,5]],"parent_request_ids":[null]}`, "the lists of contexts: 5 items, at most 4 are allowed"},
		{"/schedule", `{"contexts":[[1],[` + long + `]]}`, "contexts[1]: 2049 items, at most 2048 are allowed"},
		{"/search", `{"context":["1","2","3","4","5"]}`, "context: 5 items, at most 4 are allowed"},
	} {
		code, got, _ := ask(t.Context(), t, api, "", c.path, c.body)
		if code != http.StatusRequestEntityTooLarge || string(got.Detail) != `"`+c.want+`"` {
			t.Errorf("%s: %d %s, want 413 %q", c.path, code, got.Detail, c.want)
		}
	}
	wide := compat.New(compat.Options{Limits: compat.Fixed(1_000_000, 1_000_000)})
	code, got, _ := ask(t.Context(), t, wide, "", "/schedule", `{"contexts":[`+strings.Repeat("[],", 1<<14)+`[]]}`)
	check(t, "a square of memory", `413 "contexts: 16385 items, at most 16384 are allowed"`, fmt.Sprint(code, " ", string(got.Detail)))
	w := httptest.NewRecorder()
	bounded := http.MaxBytesHandler(api, 10)
	bounded.ServeHTTP(
		w,
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/evict", strings.NewReader(`{"request_ids":["a","b"]}`)),
	)
	check(t, "status", http.StatusRequestEntityTooLarge, w.Code)
	check(t, "body", `{"detail":"the body is larger than 10 bytes"}`, strings.TrimSpace(w.Body.String()))
	code, got, _ = ask(t.Context(), t, api, "", "/reorder", "{\"contexts\":[[\"\xff\"]]}")
	check(t, "not UTF-8", `"There was an error parsing the body"`, string(got.Detail))
	check(t, "status", http.StatusBadRequest, code)
}

// Limits that change hold for the next request.
func TestLimitsChange(t *testing.T) {
	contexts, blocks := 3, 4
	api := compat.New(compat.Options{MaxRequests: 5, Limits: func() (int, int) { return contexts, blocks }})
	status := func(path, body string) int {
		code, _, _ := ask(t.Context(), t, api, "", path, body)
		return code
	}
	check(t, "as it was", 200, status("/reorder", `{"contexts":[[1],[2],[3]]}`))
	contexts = 2
	check(t, "fewer contexts", 413, status("/reorder", `{"contexts":[[1],[2],[3]]}`))
	blocks = 1
	check(t, "fewer documents", 413, status("/deduplicate", `{"contexts":[[1,2]],"parent_request_ids":[null]}`))
	check(t, "fewer documents", 413, status("/search", `{"context":[1,2]}`))
	contexts, blocks = 100, 100
	check(t, "more", 200, status("/schedule", `{"contexts":[[1],[2],[3],[4],[5]]}`))
	check(t, "than there is room for", 413, status("/schedule", `{"contexts":[[1],[2],[3],[4],[5],[6]]}`))
}

// A request with many faults is not answered by a longer one.
func TestProblemsAreBounded(t *testing.T) {
	api := compat.New(compat.Options{})
	_, got, _ := ask(t.Context(), t, api, "", "/evict", `{"request_ids":[`+strings.Repeat("1,", 5000)+`1]}`)
	check(t, "problems", 100, strings.Count(string(got.Detail), "string_type"))
	_, _, raw := ask(t.Context(), t, api, "", "/search", `{"context":"`+strings.Repeat("x", 1<<20)+`"}`)
	if len(raw) > 1000 || !bytes.Contains(raw, []byte(`"input":null`)) {
		t.Errorf("%d bytes: %.200s", len(raw), raw)
	}
	code, _, _ := ask(t.Context(), t, api, "", "/search", strings.Repeat("[", 1<<20))
	check(t, "levels", http.StatusUnprocessableEntity, code)
}

func TestRoutes(t *testing.T) {
	api := compat.New(compat.Options{})
	for _, c := range []struct {
		method, path, allow, location string
		status                        int
	}{
		{"GET", "/", "", "", 200},
		{"HEAD", "/", "", "", 200},
		{"PUT", "/stats", "GET, HEAD", "", 405},
		{"GET", "/evict", "POST", "", 405},
		{"GET", "/v1/models", "", "", 404},
		{"GET", "//", "", "", 404},
		{"POST", "/reorder/", "", "/reorder", 307},
		{"GET", "/metrics/ttft/?last=2", "", "/metrics/ttft?last=2", 307},
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil))
		if w.Code != c.status || w.Header().Get("Allow") != c.allow || w.Header().Get("Location") != c.location {
			t.Errorf("%s %s: %d %v", c.method, c.path, w.Code, w.Header())
		}
	}
	for _, p := range compat.Paths() {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodOptions, p, nil))
		check(t, p, http.StatusMethodNotAllowed, w.Code)
	}
}

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := compat.NewRequestID()
		if !regexp.MustCompile(`^req-[0-9a-f]{12}$`).MatchString(id) || seen[id] {
			t.Fatalf("ID %q", id)
		}
		seen[id] = true
	}
}

// IDs from traffic are listed and evicted like those of /reorder, but no context goes with them.
func TestTrack(t *testing.T) {
	api := compat.New(compat.Options{})
	api.Track("", "before")
	check(t, "index", false, api.HasIndex(""))
	mine := do(t, api, "/reorder", object{"contexts": lists{{1, 2}}}).RequestIDs[0]
	for _, id := range []string{"early", "chatcmpl-seen", mine, "", "HEALTH_CHECK_1", strings.Repeat("x", 1000)} {
		api.Track("", id)
	}
	check(t, "requests", []string{"early", "seen", mine}, do(t, api, "/requests", nil).RequestIDs)
	gone := do(t, api, "/evict", object{"request_ids": []string{"cmpl-seen", mine, "before"}})
	check(t, "removed", 1, gone.Removed)
	check(t, "evicted", []string{"seen", mine}, gone.Evicted)
	check(t, "not found", []string{"before"}, gone.NotFound)
	check(t, "remaining", 1, gone.RequestsRemaining)
	do(t, api, "/reset", object{})
	check(t, "a reset index is an index", true, api.HasIndex(""))
	api.Track("", "after")
	do(t, api, "/reorder", object{"contexts": lists{{1}}})
	check(t, "requests", 2, len(do(t, api, "/requests", nil).RequestIDs))
}

// TestMaxTokensAreShown: the size of a cache is shown, and how full it is, and bounds nothing.
func TestMaxTokensAreShown(t *testing.T) {
	for size, want := range map[int]string{
		0:    `"max_tokens":null,"current_tokens":300,"utilization_pct":0,`,
		1000: `"max_tokens":1000,"current_tokens":300,"utilization_pct":30,`,
		100:  `"max_tokens":100,"current_tokens":300,"utilization_pct":300,`,
	} {
		api := compat.New(compat.Options{MaxTokens: size})
		do(t, api, "/reorder", object{"contexts": lists{{1, 2}}, "initial_tokens_per_context": 300})
		if _, _, raw := ask(t.Context(), t, api, "", "/health", nil); !strings.Contains(string(raw), want) {
			t.Errorf("of %d tokens: %s", size, raw)
		}
	}
}

// What engines put behind an ID is cut off by means of the IDs that are known, also behind an ID with dashes in it.
func TestEvictEnginesNames(t *testing.T) {
	var reported []string
	api := compat.New(compat.Options{OnEvict: func(_ string, ids []string) { reported = append(reported, ids...) }})
	do(t, api, "/reorder", object{"contexts": lists{{1, 2}}})
	for _, id := range []string{"a-b", "a-b-c", "chat"} {
		api.Track("", id)
	}
	gone := do(
		t,
		api,
		"/evict",
		object{"request_ids": []string{"cmpl-a-b-0-0123abcd", "chatcmpl-a-b-1234abcd", "chatcmpl-chat-1234abcd", "chatter-1", "a"}},
	)
	check(t, "evicted", []string{"a-b", "chat"}, gone.Evicted)
	check(t, "not found", []string{"chatter-1", "a"}, gone.NotFound)
	check(t, "the longer name stays", 2, gone.RequestsRemaining)
	check(t, "passed on", []string{"a-b", "chat", "chatter-1", "a"}, reported)
}

// Prefixes report what is left of requests. A request without any tokens is gone, and is not reported as shrunk as well.
func TestEvictPrefixes(t *testing.T) {
	var gone []string
	left := map[string]int{}
	api := compat.New(compat.Options{
		OnEvict:  func(_ string, ids []string) { gone = append(gone, ids...) },
		OnShrunk: func(tenant, id string, tokens int) { left[tenant+"/"+id] = tokens },
	})
	body := `{"prefixes":[{"request_id":"chatcmpl-a-1234abcd","resident_tokens":192},{"request_id":"b","resident_tokens":0},` +
		`{"request_id":"b","resident_tokens":5}]}`
	code, _, _ := ask(t.Context(), t, api, "t", "/evict", body)
	check(t, "without an index", http.StatusServiceUnavailable, code)
	check(t, "is passed on nevertheless", map[string]int{"t/a-1234abcd": 192}, left)
	check(t, "gone", []string{"b"}, gone)

	do(t, api, "/reorder", object{"contexts": lists{{1, 2}}})
	api.Track("", "a")
	api.Track("", "b")
	clear(left)
	out := do(t, api, "/evict", body)
	check(t, "shrunk", []string{"a"}, out.Shrunk)
	check(t, "evicted", []string{"b"}, out.Evicted)
	check(t, "by the name that is known", map[string]int{"/a": 192}, left)
	check(t, "the rest of the index", 2, out.RequestsRemaining)

	_, _, raw := ask(t.Context(), t, api, "", "/evict", `{"request_ids":[],"prefixes":[]}`)
	if bytes.Contains(raw, []byte("shrunk")) {
		t.Errorf("the reference's answer has another member: %s", raw)
	}
	for body, want := range map[string]string{
		`{}`:                `["body","request_ids"]`,
		`{"prefixes":1}`:    `["body","prefixes"]`,
		`{"prefixes":[1]}`:  `["body","prefixes",0]`,
		`{"prefixes":[{}]}`: `["body","prefixes",0,"request_id"]`,
		`{"prefixes":[{"request_id":"a","resident_tokens":-1}]}`:  `["body","prefixes",0,"resident_tokens"]`,
		`{"prefixes":[{"request_id":"a","resident_tokens":"x"}]}`: `["body","prefixes",0,"resident_tokens"]`,
		`{"prefixes":[{"request_id":7,"resident_tokens":1}]}`:     `["body","prefixes",0,"request_id"]`,
	} {
		code, _, raw := ask(t.Context(), t, api, "", "/evict", body)
		if code != http.StatusUnprocessableEntity || !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%s: %d %s, want a problem at %s", body, code, raw, want)
		}
	}
}

// What is evicted elsewhere leaves the index, and is not reported again.
func TestEvicted(t *testing.T) {
	api := compat.New(compat.Options{OnEvict: func(string, []string) { t.Error("OnEvict was called") }})
	api.Evicted("", "a") // there is no index
	do(t, api, "/reorder", object{"contexts": lists{{1, 2}}})
	api.Track("", "a")
	api.Evicted("other", "a")
	check(t, "another tenant's", 2, len(do(t, api, "/requests", nil).RequestIDs))
	api.Evicted("", "a", "unknown")
	check(t, "requests", 1, len(do(t, api, "/requests", nil).RequestIDs))
}

// After a reset the index is there, empty, and takes insertions.
func TestInsertAfterReset(t *testing.T) {
	api := compat.New(compat.Options{})
	do(t, api, "/reorder", object{"contexts": lists{{1, 2}}})
	do(t, api, "/reset", object{"conversation_only": true})
	check(t, "nothing is found", -1, do(t, api, "/search", object{"context": []int{1}}).NodeID)
	in := do(t, api, "/insert", object{"context": []string{"a", "b", "a"}, "search_path": []int{4, -1}, "total_tokens": 10})
	check(t, "path", []int{0}, in.SearchPath)
	found := do(t, api, "/search", object{"context": []string{"b", "a", "c"}})
	check(t, "found", []any{in.NodeID, 2, 2, true}, []any{found.NodeID, found.Overlap, found.PrefixLength, found.HasPrefix})
	got := do(t, api, "/reorder", object{"contexts": [][]string{{"b", "a", "c"}}})
	check(t, "mode", "incremental", got.Mode)
	check(t, "order", [][]string{{`"a"`, `"b"`, `"c"`}}, texts(got.Reordered))
	check(t, "evicted", 1, do(t, api, "/evict", object{"request_ids": []string{in.RequestID}}).Removed)
}

func TestTimestamp(t *testing.T) {
	api := compat.New(compat.Options{Now: func() time.Time { return time.UnixMilli(1700000000250) }})
	_, _, raw := ask(t.Context(), t, api, "", "/", nil)
	if !bytes.Contains(raw, []byte(`"timestamp":1700000000.25`)) {
		t.Errorf("%s", raw)
	}
}
