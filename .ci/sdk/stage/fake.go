package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is what the fake got.
type Request struct {
	Method, Host, Proto string
	Path                string // with the query
	Header              http.Header
	Body                string
	At                  time.Time
}

// Fake is a scripted upstream, see the package's comment. Safe for concurrent use.
type Fake struct {
	mu   sync.Mutex
	sent map[string][]Request
	came map[string]*signal // a request has come
	gone map[string]*signal // a client has gone
	gate map[string]*signal // an answer may go on
}

// signal is given once, and stays.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) give() { s.once.Do(func() { close(s.c) }) }

// NewFake returns a fake that has got nothing.
func NewFake() *Fake {
	return &Fake{sent: map[string][]Request{}, came: map[string]*signal{}, gone: map[string]*signal{}, gate: map[string]*signal{}}
}

// Sent returns the requests of a scenario.
func (f *Fake) Sent(scenario string) []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent[scenario])
}

// Open lets the answer of a scenario go on that waits at the gate, now or later.
func (f *Fake) Open(scenario string) { f.signal(f.gate, scenario).give() }

// Came waits until the first request of a scenario has come.
func (f *Fake) Came(ctx context.Context, scenario string) error {
	select {
	case <-f.signal(f.came, scenario).c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no request of %q has come", scenario)
	}
}

// Gone waits until the fake has noticed that the client of a scenario has gone.
func (f *Fake) Gone(ctx context.Context, scenario string) error {
	select {
	case <-f.signal(f.gone, scenario).c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the upstream has not noticed that the client of %q is gone", scenario)
	}
}

func (f *Fake) signal(of map[string]*signal, scenario string) *signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of[scenario] == nil {
		of[scenario] = &signal{c: make(chan struct{})}
	}
	return of[scenario]
}

// Control serves Sent, Open and Gone to programs in other languages: GET /sent, POST /open and GET /gone, each with the
// query member scenario.
func (f *Fake) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sent", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(f.Sent(r.FormValue("scenario")))
	})
	mux.HandleFunc("POST /open", func(_ http.ResponseWriter, r *http.Request) { f.Open(r.FormValue("scenario")) })
	mux.HandleFunc("GET /gone", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), Patience)
		defer cancel()
		if err := f.Gone(ctx, r.FormValue("scenario")); err != nil {
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
		}
	})
	return mux
}

// Patience is how long anything here may take that ought to happen at once.
const Patience = 10 * time.Second

// ServeHTTP keeps the request and answers it.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	scenario := r.Header.Get("X-Scenario")
	f.mu.Lock()
	f.sent[scenario] = append(f.sent[scenario], Request{
		Method: r.Method, Host: r.Host, Proto: r.Proto, Path: r.URL.RequestURI(), Header: maps.Clone(r.Header), Body: string(body), At: time.Now(),
	})
	nth := len(f.sent[scenario])
	f.mu.Unlock()
	f.signal(f.came, scenario).give()

	w.Header().Set("X-Request-Id", "req_fake")
	w.Header().Set("Request-Id", "req_fake")
	w.Header().Set("X-Ratelimit-Remaining-Requests", "41")
	path := strings.TrimPrefix(r.URL.Path, "/anthropic") // MiniMax's address has it
	switch {
	case r.Method == http.MethodPost && path == "/v1/chat/completions":
		f.play(w, r, chatAPI, body, scenario, nth)
	case r.Method == http.MethodPost && path == "/v1/responses":
		f.play(w, r, responsesAPI, body, scenario, nth)
	case r.Method == http.MethodPost && path == "/v1/messages":
		f.play(w, r, messagesAPI, body, scenario, nth)
	default:
		other(w, r, path, body)
	}
}

// request is what the fake reads of a body.
type request struct {
	Model    string
	Stream   bool
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Input json.RawMessage
}

// step counts the tool results in a conversation, and so the agent's steps.
func (q *request) step() (n int) {
	type item struct{ Type string }
	count := func(raw json.RawMessage, kind string) {
		var items []item
		if json.Unmarshal(raw, &items) == nil { // else it is a string
			for _, it := range items {
				if it.Type == kind {
					n++
				}
			}
		}
	}
	for _, m := range q.Messages {
		if m.Role == "tool" {
			n++
		}
		count(m.Content, "tool_result")
	}
	count(q.Input, "function_call_output")
	return n
}

// steps is how many tool calls the agent makes.
const steps = 3

// play answers a request by its script.
func (f *Fake) play(w http.ResponseWriter, r *http.Request, a *api, body []byte, scenario string, nth int) {
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		send(w, http.StatusBadRequest, a.failure(http.StatusBadRequest))
		return
	}
	way, script, ok := strings.Cut(q.Model, "/")
	if !ok {
		way, script = "", q.Model
	}
	step := q.step()
	switch {
	case script == "agent" && step < steps:
		script = "call"
	case script == "agent":
		script = "text"
	}
	if a.sections[script+".json"] == "" {
		send(w, http.StatusNotFound, a.failure(http.StatusNotFound))
		return
	}
	p := performance{
		w: w, r: r, api: a, way: way, stream: q.Stream, whole: a.whole(script, fmt.Sprint(step)), events: a.events(script, fmt.Sprint(step)),
		gate: f.signal(f.gate, scenario), gone: f.signal(f.gone, scenario),
	}
	if status, ok := strings.CutPrefix(way, "once-"); ok {
		if p.way = ""; nth == 1 {
			p.way = status
		}
	}
	p.give()
}

func send(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
