package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// passage is a document long enough to be worth a prediction.
func passage(name string) string { return name + strings.Repeat(" says something of some length", 40) }

func passagesOf(names ...string) string {
	long := make([]string, len(names))
	for i, n := range names {
		long[i] = passage(n)
	}
	return docs(long...)
}

// prompts returns how many prompts a scope of the index holds.
func (a *asked) prompts(scope contextpilot.Scope) (n int) {
	a.pilot.View(scope, func(v contextpilot.View) { n, _ = v.Size() })
	return n
}

// asked is a proxy with all that a test looks at.
type asked struct {
	*proxy.Proxy
	t       *testing.T
	engine  *engine
	pilot   *contextpilot.Pilot
	reports *reports
	probes  int
}

func ask(t *testing.T, change func(*proxy.Options)) *asked {
	t.Helper()
	a := &asked{t: t, engine: newEngine(t), reports: newReports()}
	a.engine.says(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":900,"completion_tokens":5}}`)
	})
	a.Proxy = newProxy(t, a.engine, func(o *proxy.Options) {
		o.Recorder = a.reports
		if change != nil {
			change(o)
		}
		a.pilot = o.Pilot
	})
	return a
}

// send sends a system text with a question, and returns the report.
func (a *asked) send(system, question string) proxy.Report {
	a.t.Helper()
	post(a.Proxy, chatPath, "", chat(system, question))
	return a.reports.wait(a.t)
}

// live is the number of prompts that the pilot takes for cached.
func (a *asked) live() int64 { return a.pilot.Stats().LiveRequests }

// predicted is what another prompt would find that has the document and one of its own.
func (a *asked) predicted(name string) int {
	a.t.Helper()
	a.probes++
	return a.send(passagesOf(name, fmt.Sprint("probe", a.probes)), "probe").Predicted
}

// What fails is taken back; what is sent again and answered then is in the engine's cache, and so in the index.
func TestRetryIsToldToThePilot(t *testing.T) {
	a := ask(t, nil)
	good := a.engine.answer
	text := passagesOf("a", "b")
	a.engine.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if a.send(text, "q"); a.live() != 0 {
		t.Fatalf("after a failure %d prompts are live", a.live())
	}
	a.engine.says(good)
	if a.send(text, "q"); a.live() != 1 {
		t.Errorf("after the second attempt %d prompts are live", a.live())
	}
	a.engine.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if a.send(text, "another question"); a.live() != 1 {
		t.Errorf("a later turn that failed took away what an earlier one has cached: %d prompts are live", a.live())
	}
	a.engine.says(good)
	if n := a.predicted("a"); n < 100 {
		t.Errorf("predicted %d", n)
	}
}

// All texts with documents are looked at again, not the first of an item only.
func TestRetryOfManyTexts(t *testing.T) {
	a := ask(t, nil)
	good := a.engine.answer
	a.engine.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	post(a.Proxy, chatPath, "", manySystemTexts(10))
	a.engine.says(good)
	for range 2 {
		post(a.Proxy, chatPath, "", manySystemTexts(10))
		if a.live() != 10 {
			t.Errorf("%d texts of 10 are live", a.live())
		}
	}
}

// An engine that has begun to answer has computed the prompt, whatever becomes of the answer; an error page says nothing.
func TestBrokenOffAnswer(t *testing.T) {
	for code, want := range map[int]int64{http.StatusOK: 1, http.StatusBadGateway: 0} {
		a := ask(t, nil)
		a.engine.says(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "data: {\"choices\":[]}\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		if r := a.send(passagesOf("a", "b"), "q"); !r.Failed {
			t.Errorf("%d: the answer did not fail: the test shows nothing", code)
		}
		if a.live() != want {
			t.Errorf("%d: %d prompts are live, want %d", code, a.live(), want)
		}
	}
}

// The same is true of an answer that a gateway forwards.
func TestBrokenOffAnswerBehindAGateway(t *testing.T) {
	broken := errors.New("broken off")
	for name, c := range map[string]struct {
		status int
		head   string
		want   int64
	}{
		"begun": {http.StatusOK, "data: ", 1}, "headers only": {http.StatusOK, "", 0}, "an error": {http.StatusBadGateway, "Bad", 0},
		"none": {0, "", 0},
	} {
		a := ask(t, nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, http.NoBody)
		made := a.Rewrite(r, []byte(chat(passagesOf("a", "b"), "q")))
		if c.status > 0 {
			made.Answer(c.status)
		}
		if made.Ended([]byte(c.head), nil, broken); a.live() != c.want {
			t.Errorf("%s: %d prompts are live, want %d", name, a.live(), c.want)
		}
	}
}

// A prompt that the engine has dropped is there again when its conversation goes on, and leaves under the ID of the request
// that brought it back.
func TestEvictedPromptComesBack(t *testing.T) {
	x := &index{}
	a := ask(t, func(o *proxy.Options) { o.Index = x })
	text := passagesOf("a", "b")
	for turn := range 3 {
		if a.send(text, fmt.Sprint("question ", turn)); a.live() != 1 {
			t.Fatalf("turn %d: %d prompts are live", turn, a.live())
		}
		x.mu.Lock()
		id := x.tracked[len(x.tracked)-1]
		x.mu.Unlock()
		if a.Evicted("", []string{id}); a.live() != 0 {
			t.Fatalf("turn %d: %d prompts are live after the eviction of %s", turn, a.live(), id)
		}
	}
}

// Many send the same prompt at a time, while the engine drops it again and again.
func TestEvictedWhileManySend(t *testing.T) {
	x := &index{}
	a := ask(t, func(o *proxy.Options) { o.Index, o.Recorder = x, nil })
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			post(a.Proxy, chatPath, "", chat(passagesOf("a", "b"), fmt.Sprint("question ", i%5)))
			x.mu.Lock()
			id := x.tracked[i%len(x.tracked)]
			x.mu.Unlock()
			a.Evicted("", []string{id})
		})
	}
	all.Wait()
	a.Evicted("", x.tracked)
	if a.live() != 0 {
		t.Errorf("%d prompts are live after the eviction of all requests", a.live())
	}
	if post(a.Proxy, chatPath, "", chat(passagesOf("a", "b"), "another question")); a.live() != 1 {
		t.Errorf("%d prompts are live", a.live())
	}
}

// What many send is not what is forgotten first.
func TestHotPromptStays(t *testing.T) {
	a := ask(t, func(o *proxy.Options) {
		pilot, err := contextpilot.New(
			contextpilot.Config{MaxRequests: 3, Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}},
		)
		if err != nil {
			t.Fatal(err)
		}
		o.Pilot = pilot
	})
	for i := range 10 {
		a.send(passagesOf("hot", "too"), fmt.Sprint("question ", i))
		a.send(passagesOf(fmt.Sprint("once ", i), fmt.Sprint("and again ", i)), "q")
	}
	if s := a.pilot.Stats(); s.Plans != 11 {
		t.Errorf("%d plans of 11 texts", s.Plans)
	}
	if n := a.predicted("hot"); n < 100 {
		t.Errorf("predicted %d", n)
	}
}

// decided is a store in which another replica was always first.
type decided struct {
	orders.Store
	order []int
	known bool // when it is asked
}

func (d decided) Get(context.Context, string, orders.Key) ([]int, bool) {
	return slices.Clone(d.order), d.known
}

func (d decided) Put(context.Context, string, orders.Key, []int) []int { return slices.Clone(d.order) }

// journalled keeps what it is given, a named fake.
type journalled struct {
	mu   sync.Mutex
	sent [][]contextpilot.Block // as it was sent
}

func (j *journalled) Planned(r contextpilot.Request, order []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	sent := slices.Clone(r.Blocks)
	for i, from := range order {
		sent[i] = r.Blocks[from]
	}
	j.sent = append(j.sent, sent)
}

func (*journalled) Gone(contextpilot.Scope, string) {}
func (*journalled) Cleared([]string)                {}

// The pilot and the journal learn of the order that was sent, also if this replica did not choose it.
func TestOrdersOfOthersAreToldToThePilot(t *testing.T) {
	for name, known := range map[string]bool{"known before": true, "another was first": false} {
		t.Run(name, func(t *testing.T) {
			j := &journalled{}
			a := ask(t, func(o *proxy.Options) {
				o.Orders, o.Journal = decided{orders.NewMemory(0, 0), []int{2, 0, 1}, known}, j
			})
			short, middle, long := passage("a"), passage("b")+passage("b"), strings.Repeat(passage("c"), 3)
			a.send(docs(short, middle, long), "q")
			if got := contents(t, a.engine.last())[0]; got != docs(long, short, middle) {
				t.Fatalf("sent %.200s…", got)
			}
			if a.live() != 1 {
				t.Errorf("%d prompts are live", a.live())
			}
			if len(j.sent) != 1 || len(j.sent[0]) != 3 {
				t.Fatalf("noted %v", j.sent)
			}
			if n := j.sent[0]; n[0].Tokens < n[2].Tokens || n[2].Tokens < n[1].Tokens {
				t.Errorf("noted %v", n)
			}
			scope := a.pilot.Scopes()[0]
			if got := a.pilot.Plan(contextpilot.Request{Scope: scope, Blocks: j.sent[0], Fixed: true}).Prefix.Blocks; got != 3 {
				t.Errorf("%d blocks are expected in the cache as they were sent, want 3", got)
			}
		})
	}
}

// A document that stands in a text twice is sent twice, and the index knows what was sent.
func TestRepeatedDocumentAtTheFront(t *testing.T) {
	a := ask(t, nil)
	a.send(passagesOf("b", "c"), "q")
	r := a.send(passagesOf("a", "b", "a"), "q")
	sent := contents(t, a.engine.last())[0]
	if !sameDocs(sent, passagesOf("a", "b", "a")) {
		t.Fatalf("other documents: %.300s…", sent)
	}
	if front := strings.HasPrefix(sent, docs(passage("b"))[:50]); r.Predicted < 100 || !front {
		t.Errorf("predicted %d, b at the front: %v", r.Predicted, front)
	}
	if n := a.predicted("a"); n != 0 {
		t.Errorf("a is not at the front of any prompt; predicted %d", n)
	}
}

// Documents that are moved and documents that stay have one layout, the client's: what they share is a prefix.
func TestMovedDocumentsKeepTheLayout(t *testing.T) {
	for name, layout := range map[string][3]string{ // in front of a document, behind it, between two
		"lines":         {"<document>", "</document>", "\n"},
		"one line":      {"<document>", "</document>", ""},
		"blank lines":   {"<document>", "</document>", "\n\n"},
		"text on lines": {"<document>\n", "\n</document>", "\n"},
		"indented":      {"  <doc> ", " </doc>", "\r\n"},
		"attributes":    {`<passage lang="en">`, "</passage>", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			list := func(names ...string) string {
				var items []string
				for _, n := range names {
					items = append(items, layout[0]+passage(n)+layout[1])
				}
				return "Answer from these.\n\n" + strings.Join(items, layout[2]) + "\n\nBe brief."
			}
			a := ask(t, func(o *proxy.Options) {
				o.Pilot = testkit.Must(contextpilot.New(contextpilot.Config{Top: contextpilot.TopAnywhere, Dedup: contextpilot.DedupOff}))(t)
			})
			for _, names := range [][]string{{"x", "y", "z"}, {"z", "y", "x"}, {"v", "y", "x"}, {"y", "w", "x", "z"}} {
				want := names
				switch names[0] {
				case "z":
					want = []string{"x", "y", "z"}
				case "v":
					want = []string{"x", "y", "v"}
				case "y":
					want = []string{"x", "y", "z", "w"}
				}
				a.send(list(names...), "q")
				if got := contents(t, a.engine.last())[0]; got != list(want...) {
					t.Errorf("%v became %q", names, strings.ReplaceAll(got, passage(""), ""))
				}
			}
		})
	}
}

// A number in front of a document is what the model cites it by: in a system text it goes with its document, and what the
// index takes for cached has the same number.
func TestNumbersGoWithTheirDocuments(t *testing.T) {
	numbered := func(names ...string) string {
		var lines []string
		for i, n := range names {
			lines = append(lines, fmt.Sprintf("[%d] %s", i+1, passage(n)))
		}
		return "Cite as [n] what you use.\n" + strings.Join(lines, "\n")
	}
	indexed := func(names ...string) string {
		var items []string
		for i, n := range names {
			items = append(items, fmt.Sprintf(`<document index="%d">%s</document>`, i+1, passage(n)))
		}
		return "<documents>\n" + strings.Join(items, "\n") + "\n</documents>"
	}
	for name, list := range map[string]func(...string) string{"numbered": numbered, "attributes": indexed} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, nil)
			a.send(list("y", "z"), "q")
			r := a.send(list("x", "y", "z"), "q")
			if got := contents(t, a.engine.last())[0]; got != list("x", "y", "z") || r.Predicted != 0 {
				t.Errorf("predicted %d, sent %.400s…", r.Predicted, got)
			}
			if r := a.send(list("y", "a", "b"), "q"); r.Predicted < 100 {
				t.Errorf("a document with the same number: predicted %d", r.Predicted)
			}
		})
	}
	a := ask(t, func(o *proxy.Options) { o.Orders = decided{orders.NewMemory(0, 0), []int{2, 0, 1}, true} })
	a.send("[1] x\n[2] y\n[3] z", "q")
	if got := contents(t, a.engine.last())[0]; got != "[3] z\n[1] x\n[2] y" {
		t.Errorf("moved, a system text became %q", got)
	}
	post(a.Proxy, chatPath, "", chat("s", "q", "[1] x\n[2] y\n[3] z"))
	if got := contents(t, a.engine.last())[3]; got != "[1] z\n[2] x\n[3] y" {
		t.Errorf("moved, a tool result became %q, which was recorded otherwise", got)
	}
}
