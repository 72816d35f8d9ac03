package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What was sent for a message is sent for it ever after, and documents that stand in the prompt are not sent again.
// The recorded server loses all of them from the third turn on.
func TestOldBytesNeverChange(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	results := []string{
		docs("a a", "b b", "c c"), docs("c c", "d d", "a a"), docs("d d", "b b"), docs("e e", "f f"), docs("f f", "e e", "a a", "g g"),
	}
	want := []string{results[0], docs("d d"), "", docs("e e", "f f"), docs("g g")}
	post(p, chatPath, "", chat("s", "another", docs("c c", "b b", "a a"))) // so that orders change
	before := []string{}
	for n := 1; n <= len(results); n++ {
		post(p, chatPath, "", chat("s", "q", results[:n]...))
		now := contents(t, e.last())
		if diff := cmp.Diff(before, now[:len(before)]); diff != "" {
			t.Fatalf("turn %d: earlier messages changed (-before +now):\n%s", n, diff)
		}
		before = now
	}
	for i, w := range want {
		got := before[3+2*i]
		switch {
		case i == 0:
			if !sameDocs(got, w) {
				t.Errorf("result 0: %s, want the documents of %s", got, w)
			}
		case w == "":
			if !strings.Contains(got, "[All 2 documents identical to a previous tool result (") {
				t.Errorf("result %d: %s, want a note", i, got)
			}
		case got != w:
			t.Errorf("result %d: %s, want %s", i, got, w)
		}
	}
}

func sameDocs(a, b string) bool {
	split := func(s string) map[string]int {
		out := map[string]int{}
		for line := range strings.SplitSeq(s, "\n") {
			out[line]++
		}
		return out
	}
	return cmp.Equal(split(a), split(b))
}

// A client may go back and take another way; what it did on the first way is not taken as shown on the second.
func TestBranches(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	first, left, right := docs("a", "b"), docs("b", "x"), docs("x", "a", "y")
	post(p, chatPath, "", chat("s", "q", first))
	post(p, chatPath, "", chat("s", "q", first, left))
	post(p, chatPath, "", chat("s", "q", first, right))
	if got := contents(t, e.last())[5]; got != docs("x", "y") {
		t.Errorf("on the second way: %s, want x and y, which it was not shown", got)
	}
	post(p, chatPath, "", chat("s", "q", first, left, right))
	if got := contents(t, e.last())[7]; got != docs("y") {
		t.Errorf("on the first way: %s, want y only", got)
	}
}

// The order for one tenant shows nothing of what another one sent.
func TestTenantsAreApart(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	for range 3 {
		post(p, chatPath, "one", chat("s", "q0", docs("a", "b", "c")))
		post(p, chatPath, "one", chat(docs("k", "l", "m")+" s", "q0"))
	}
	tool, system := chat("s", "q1", docs("c", "b", "a")), chat(docs("m", "l", "k")+" s", "q1")
	for body, want := range map[string]string{tool: docs("c", "b", "a"), system: docs("m", "l", "k") + " s"} {
		if post(p, chatPath, "two", body); e.last() != body {
			t.Errorf("the other tenant's request became %s, want %s", e.last(), want)
		}
		if post(p, chatPath, "one", body); e.last() == body {
			t.Errorf("%s is not reordered for the tenant itself: the test shows nothing", body)
		}
	}
}

// What is not understood, and what is switched off, passes byte for byte.
func TestUntouched(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	post(p, chatPath, "", chat("s", "q0", docs("a", "b", "c")))
	reordered := chat("s", "q", docs("c", "b", "a"))
	for name, c := range map[string]struct {
		path, body string
		header     []string
	}{
		"no messages":         {chatPath, `{"model": "m"}`, nil},
		"messages are a text": {chatPath, `{ "messages" : "zzz" }`, nil},
		"a list":              {chatPath, `[1, 2]`, nil},
		"a text":              {chatPath, `"x"`, nil},
		"messages twice":      {chatPath, `{"messages":[],` + reordered[1:], nil},
		"switched off":        {chatPath, reordered, []string{"X-ContextPilot-Enabled", "No"}},
		"another scope":       {chatPath, reordered, []string{"X-ContextPilot-Scope", "system"}},
		"one text":            {chatPath, chat("s", docs("c", "b", "a")), nil}, // a user's own words
		"strange members": {
			chatPath, `{"messages":[{"role":"tool","tool_call_id":7,"content":{"a":[1]}},5,null,"x",{"role":"tool","content":[7,` +
				`{"type":"image"}]}], "x":1e999}`, nil,
		},
		"lone surrogate":       {chatPath, chat("s", "q2", `SURR`+docs("c", "b", "a")), nil},
		"white space":          {chatPath, " \n" + chat("s", "q") + "\n ", nil},
		"other endpoint":       {"/v1/embeddings", `{"input": ["c","b"]}`, nil},
		"not even JSON":        {"/v1/score", "RIFF\x00\xff", nil},
		"Anthropic, no system": {"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"q"}]}`, nil},
		"responses":            {"/v1/responses", `{"model":"m","input":"x","stream":false}`, nil},
	} {
		body := strings.ReplaceAll(c.body, "SURR", `\ud800 `)
		w := post(p, c.path, "", body, c.header...)
		if got := e.last(); got != body || w.Code != http.StatusOK {
			t.Errorf("%s: status %d, became %q, was %q", name, w.Code, got, body)
		}
		if h := w.Header().Get(proxy.ResultHeader); h != "" {
			t.Errorf("%s: header %s", name, h)
		}
	}
}

// What passes as it came keeps the names of fences, and gets no ID, also where there is an index. A request that is
// switched off or has no messages gets one, as was recorded, and nothing else changes.
func TestUntouchedWithIndex(t *testing.T) {
	e := newEngine(t)
	fenced := chat("s", `<<<EXTERNAL_UNTRUSTED_CONTENT id="ab12">>> t`, docs("a", "b"), docs("b", "a"))
	for name, c := range map[string]struct {
		body    string
		shadow  bool
		holdOut float64
	}{
		"shadow":            {body: fenced, shadow: true},
		"held out":          {body: fenced, holdOut: 1},
		"held out, shadow":  {body: fenced, shadow: true, holdOut: 1},
		"messages twice":    {body: `{"messages":[],` + fenced[1:]},
		"no list":           {body: `{"messages":"<<<EXTERNAL_UNTRUSTED_CONTENT id=\"ab12\">>>"}`},
		"the client's ID":   {body: `{"rid":"mine",` + fenced[1:], shadow: true},
		"its other ID":      {body: `{"request_id":"mine",` + fenced[1:], holdOut: 1},
		"a list, no object": {body: `["<<<EXTERNAL_UNTRUSTED_CONTENT id=\"ab12\">>>"]`},
	} {
		x := &index{}
		p := newProxy(t, e, func(o *proxy.Options) {
			o.Index, o.Live = x, func() (bool, float64) { return c.shadow, c.holdOut }
		})
		if post(p, chatPath, "", c.body); e.last() != c.body {
			t.Errorf("%s: became\n%s, was\n%s", name, e.last(), c.body)
		}
		var want []string
		if strings.Contains(c.body, "mine") {
			want = []string{"mine"}
		}
		if diff := cmp.Diff(want, x.tracked); diff != "" {
			t.Errorf("%s: IDs tracked (-want +got):\n%s", name, diff)
		}
	}
	p := newProxy(t, e, func(o *proxy.Options) { o.Index = &index{} })
	post(p, chatPath, "", fenced, "X-ContextPilot-Enabled", "false")
	if begin := strings.TrimSuffix(fenced, "}") + `,"rid":"req-`; !strings.HasPrefix(e.last(), begin) {
		t.Errorf("switched off: became\n%s, want the beginning\n%s", e.last(), begin)
	}
	post(p, chatPath, "", `{"model":"<<<EXTERNAL_UNTRUSTED_CONTENT id=\"ab12\">>>"}`)
	if begin := `{"model":"<<<EXTERNAL_UNTRUSTED_CONTENT id=\"ab12\">>>","rid":"req-`; !strings.HasPrefix(e.last(), begin) {
		t.Errorf("no messages: became\n%s, want the beginning\n%s", e.last(), begin)
	}
	post(p, chatPath, "", fenced)
	if !strings.Contains(e.last(), "ab12") || !strings.Contains(e.last(), "[All 2 documents identical") {
		t.Errorf("planned: %s", e.last())
	}
}

// Every byte of a request but the texts that were planned stays where it was.
func TestOnlyPlannedTextsChange(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	post(p, chatPath, "", chat("s", "q0", docs("a", "b", "c")))
	frame := "{ \"temperature\":1.0e0 ,\"messages\" : [\t{\"content\":\"\\u0041 \\/ " +
		"\",\"role\":\"user\"},{\"role\":\"tool\",\"tool_call_id\":\"t\",\"content\":%s , " +
		"\"x\":{\"content\":\"<document>\"}}],\"stop\":[ ]}"
	in, _ := json.Marshal(docs("c", "b", "a"))
	post(p, chatPath, "", fmt.Sprintf(frame, in))
	if got, want := e.last(), fmt.Sprintf(frame, strings.ReplaceAll(fmt.Sprintf("%q", docs("a", "b", "c")), `\u003c`, "<")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// An engine that names requests by a header reports evictions by the ID under which the proxy knows them: the client's own where it is
// free.
func TestRequestIDHeader(t *testing.T) {
	e := newEngine(t)
	var pilot *contextpilot.Pilot
	p := newProxy(t, e, func(o *proxy.Options) { pilot = o.Pilot })
	header := func() string { return e.lastHead().Get("X-Request-Id") }
	known := func(name string) bool {
		return slices.ContainsFunc(pilot.Scopes(), func(s contextpilot.Scope) bool {
			n, _ := pilot.Resident(s, name)
			return n > 0
		})
	}
	if post(p, chatPath, "", chat("s", "no documents"), "X-Request-Id", "mine"); header() != "mine" {
		t.Errorf("nothing planned: %q", header())
	}
	if post(p, chatPath, "", chat("s", "no documents")); header() != "" {
		t.Errorf("nothing planned: %q", header())
	}
	post(p, chatPath, "", chat(docs("a a a a a a a a", "b b b b b b b b")+" s", "q1"), "X-Request-Id", "mine")
	if header() != "mine" || !known("mine") {
		t.Errorf("the client's ID became %q", header())
	}
	post(p, chatPath, "", chat(docs("c c c c c c c c", "d d d d d d d d")+" s", "q2"), "X-Request-Id", "mine")
	if second := header(); !strings.HasPrefix(second, "req-") || !known(second) {
		t.Errorf("the same ID once more became %q", second)
	}
	post(p, chatPath, "", chat(docs("e e e e e e e e", "f f f f f f f f")+" s", "q3"))
	third := header()
	if !strings.HasPrefix(third, "req-") || !known(third) {
		t.Errorf("no ID became %q", third)
	}
	p.Evicted("", []string{third + "-0a1b2c3d"}) // as vLLM names a chat
	if known(third) {
		t.Error("what was evicted is still in the index")
	}
	post(p, "/v1/completions", "", `{"prompt":"p"}`, "X-Request-Id", "mine")
	if e.last() != `{"prompt":"p","rid":"mine","request_id":"mine"}` || header() != "mine" {
		t.Errorf("completion: %s, header %q", e.last(), header())
	}
	if post(p, "/v1/completions", "", `{"prompt":"p","request_id":"R"}`, "X-Request-Id", "mine"); header() != "R" {
		t.Errorf("completion with an ID of its own: header %q", header())
	}
	w := post(p, "/v1/completions", "", `{"prompt":"p","request_id":"запрос 🙂"}`)
	if got := w.Header().Get(proxy.ResultHeader); got != `{"request_id":"\u0437\u0430\u043f\u0440\u043e\u0441 \ud83d\ude42",`+
		`"tokens_reported":105}` {
		t.Errorf("an ID beyond ASCII is shown as %s", got)
	}
}

// A replacement character is no reason to leave a text alone.
func TestStrangeCharacters(t *testing.T) {
	first, body := chat("s", "q0", docs("a", "b", "c\uFFFD")), chat("s", "q1", docs("c\uFFFD", "b", "a"))
	e := newEngine(t)
	p := newProxy(t, e, nil)
	post(p, chatPath, "", first)
	if w := post(p, chatPath, "", body); w.Code != http.StatusOK || !slices.Contains(contents(t, e.last()), docs("a", "b", "c\uFFFD")) {
		t.Errorf("status %d, sent %s", w.Code, e.last())
	}
	if w := post(p, chatPath, "", strings.ReplaceAll(body, "\uFFFD", `\ufffd`)); w.Code != http.StatusOK ||
		!strings.Contains(e.last(), "<document>a") {
		t.Errorf("status %d, sent %s", w.Code, e.last())
	}
}

// The engine learns its request's ID, the client may choose it, and plans are taken back when it is not reached.
func TestRequestIDs(t *testing.T) {
	e := newEngine(t)
	x := &index{}
	p := newProxy(t, e, func(o *proxy.Options) { o.Index = x })
	post(p, chatPath, "", chat("s", "q"))
	var sent struct{ RID string }
	if err := json.Unmarshal([]byte(e.last()), &sent); err != nil || !strings.HasPrefix(sent.RID, "req-") {
		t.Errorf("sent %s", e.last())
	}
	id := sent.RID
	body := strings.Replace(chat("s", "q"), "{", `{"rid":"mine",`, 1)
	if post(p, chatPath, "", body); e.last() != body {
		t.Errorf("the client's ID: %s became %s", body, e.last())
	}
	w := post(p, "/v1/completions", "", `{"prompt":"p","apply_chat_template":true,"request_id":"R","rid":"S","system_prompt":"x"}`)
	if e.last() != `{"prompt":"p","rid":"R","request_id":"R"}` {
		t.Errorf("completion: %s", e.last())
	}
	if got := w.Header().Get(proxy.ResultHeader); got != `{"request_id":"R","tokens_reported":105}` {
		t.Errorf("completion: header %s", got)
	}
	if diff := cmp.Diff([]string{id, "mine", "R"}, x.tracked); diff != "" {
		t.Error(diff)
	}
	if x.ttft != 2 {
		t.Errorf("%d times to the first token recorded, want those of the two chats", x.ttft)
	}
}

// Clients of two tenants may choose the same ID: what one tenant's engine reports of it is about that tenant's prompt.
func TestTenantsChooseTheSameID(t *testing.T) {
	body := strings.Replace(chat(docs("a", "b", "c")+" s", "q"), "{", `{"rid":"x",`, 1)
	one := contextpilot.Scope{}
	for name, report := range map[string]func(p *proxy.Proxy){
		"evicted": func(p *proxy.Proxy) { p.Evicted("one", []string{"x"}) },
		"cut":     func(p *proxy.Proxy) { p.Cut("one", "x", 0) },
		"lost":    func(p *proxy.Proxy) { p.Lost(one, "x"); p.Evicted("two", []string{"x"}) },
	} {
		e := newEngine(t)
		var pilot *contextpilot.Pilot
		p := newProxy(t, e, func(o *proxy.Options) { o.Index, pilot = &index{}, o.Pilot })
		post(p, chatPath, "one", body)
		one = pilot.Scopes()[0]
		post(p, chatPath, "two", body)
		if n := pilot.Stats().LiveRequests; n != 2 {
			t.Fatalf("%d prompts in the index, want one of each tenant", n)
		}
		report(p)
		for _, scope := range pilot.Scopes() {
			_, live := pilot.Resident(scope, "x")
			if want := scope.Tenant == "two" && name != "lost"; live != want {
				t.Errorf("%s: the prompt of tenant %s is in the index: %v, want %v", name, scope.Tenant, live, want)
			}
		}
	}
}

// Nesting must not exhaust the stack.
func TestDeepNesting(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	for _, body := range []string{
		strings.Repeat("[", 16<<20), `{"messages":` + strings.Repeat(`{"a":`, 1<<20),
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
	} {
		if w := post(p, chatPath, "", body); w.Code != http.StatusBadRequest {
			t.Errorf("%.20s…: %d", body, w.Code)
		}
	}
}

func TestBadJSON(t *testing.T) {
	e := newEngine(t)
	p := newProxy(t, e, nil)
	for _, path := range []string{chatPath, "/v1/messages", "/v1/completions", "/v1/responses"} {
		if w := post(p, path, "", "{bad"); w.Code != http.StatusBadRequest || w.Body.String() != `{"detail":"Invalid JSON body"}`+"\n" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if len(e.bodies) > 0 {
		t.Error("it was forwarded")
	}
}

// What is remembered of a conversation must not keep its bodies in memory.
func TestBodiesAreNotKept(t *testing.T) {
	testkit.NotUnderRace(t)
	e := newEngine(t)
	x := &index{}
	p := newProxy(t, e, func(o *proxy.Options) { o.Transport, o.Index = atOnce{}, x })
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	padding := strings.Repeat("something long that nobody will ever say again. ", 5000) // 240 KB
	send := func(i int) {
		body := chat(
			docs("a", fmt.Sprint("b", i), "c")+padding, fmt.Sprint("question ", i), docs("x", fmt.Sprint("y", i)),
			strings.Repeat(fmt.Sprint("read ", i), 50),
		)
		body = strings.Replace(body, `"model":"m"`, fmt.Sprintf(`"model":"m","rid":"request-%d"`, i), 1)
		if w := post(p, chatPath, "", body); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		post(p, "/v1/completions", "", fmt.Sprintf(`{"request_id":"completion-%d","prompt":%q}`, i, padding))
	}
	send(0)
	before := heap()
	const n = 200
	for i := range n {
		send(i + 1)
	}
	// A forwarded system text that was reordered is kept, which is one copy; the bodies would be at least two more.
	if grown := int(heap()) - int(before); grown > n*len(padding)*3/2 {
		t.Errorf("%d conversations of %d bytes each keep %d bytes", n, len(padding), grown)
	}
}
