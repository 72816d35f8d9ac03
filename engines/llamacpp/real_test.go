package llamacpp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// server is a real llama-server, as its own process. Tests that need one skip unless the environment says where the
// program and a model are; .ci/llamacpp.sh builds both.
type server struct {
	t       testing.TB
	address string
	args    []string
	process *exec.Cmd
	exited  chan struct{} // closed when the process has ended
	log     *bytes.Buffer
}

// startServer starts a server with further arguments. It ends with the test.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	program, model := testkit.Llama(t)
	s := &server{t: t, address: testkit.FreeAddress(t)}
	host, port, _ := net.SplitHostPort(s.address)
	s.args = append([]string{program, "-m", model, "--host", host, "--port", port, "-t", "1", "-c", "8192", "--metrics", "--jinja"}, args...)
	s.start()
	t.Cleanup(s.stop)
	return s
}

// start starts the process and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	s.log = new(bytes.Buffer)
	s.process = exec.CommandContext(context.Background(), s.args[0], s.args[1:]...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.WaitDelay = time.Second
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(p *exec.Cmd) {
		_ = p.Wait()
		close(exited)
	}(s.process)
	probe := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for limit := time.Now().Add(30 * time.Second); ; {
		request := testkit.Request(s.t, http.MethodGet, "http://"+s.address+"/health", http.NoBody)
		response, err := probe.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-s.exited:
			s.t.Fatalf("llama-server ended: %s", s.log)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(limit) {
			s.stop()
			s.t.Fatalf("llama-server is not ready: %s", s.log)
		}
	}
}

// stop kills the process, as a crash would.
func (s *server) stop() {
	_ = s.process.Process.Kill()
	<-s.exited
	if s.t.Failed() {
		tail := s.log.String()
		s.t.Logf("llama-server: …%s", tail[max(0, len(tail)-2000):])
	}
}

func (s *server) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// engine returns an engine for the server; change may adapt its configuration. The engine's predictions go to the ledger.
func (s *server) engine(change func(*llamacpp.Config)) (*llamacpp.Engine, *ledger) {
	s.t.Helper()
	l := &ledger{predicted: map[string]llamacpp.Prediction{}, resident: map[string]int{}}
	config := llamacpp.Config{Server: openai.Config{BaseURL: "http://" + s.address}, OnPredict: l.predict}
	if change != nil {
		change(&config)
	}
	engine, err := llamacpp.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = engine.Close() })
	engine.Subscribe(l.observe)
	return engine, l
}

// post sends something past the engine, as another client would.
func (s *server) post(path, body string) {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request := testkit.Request(s.t, http.MethodPost, "http://"+s.address+path, strings.NewReader(body))
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	reply, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s: %s", path, response.Status, reply)
	}
}

// ledger notes what an engine predicts and reports, by request.
type ledger struct {
	mu        sync.Mutex
	predicted map[string]llamacpp.Prediction // guarded by mu, like all below
	resident  map[string]int                 // what is left of each served request, by the events
	kinds     map[contextpilot.EventKind]int
	lost      []string       // requests that lost something, in order
	last      map[string]int // what their last event said
}

func (l *ledger) predict(p llamacpp.Prediction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.predicted[p.Request] = p
}

func (l *ledger) observe(events ...contextpilot.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds == nil {
		l.kinds, l.last = map[contextpilot.EventKind]int{}, map[string]int{}
	}
	for _, e := range events {
		l.kinds[e.Kind]++
		switch e.Kind {
		case contextpilot.Served:
			l.resident[e.Request] = l.predicted[e.Request].Prompt
		case contextpilot.Shrunk, contextpilot.Gone:
			l.resident[e.Request] = min(l.resident[e.Request], e.Tokens)
			l.lost = append(l.lost, e.Request)
			l.last[e.Request] = e.Tokens
		case contextpilot.Moved:
			l.resident[e.Request] = min(l.resident[e.Request], e.Tokens)
		case contextpilot.Cleared:
			clear(l.resident)
		}
	}
}

func (l *ledger) of(id string) llamacpp.Prediction {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.predicted[id]
}

func (l *ledger) count(kind contextpilot.EventKind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kinds[kind]
}

// ask runs a request that must be answered.
func ask(ctx context.Context, t testing.TB, engine engines.Engine, req engines.Request) engines.Response {
	t.Helper()
	response, err := engine.Generate(ctx, req, nil)
	if err != nil {
		t.Fatalf("Generate(%q) = %v", req.ID, err)
	}
	if !response.Usage.CachedKnown {
		t.Fatalf("%s: usage %+v without cached tokens", req.ID, response.Usage)
	}
	return response
}

// passage returns a text of its own for each number. Its words are tokens of the tiny model's vocabulary.
func passage(n int) string {
	words := strings.Fields("baba bacer dice dife foba fogu guha hake jeba kilo loki mumo nape peri riso tuve wixo yuza")
	var b strings.Builder
	fmt.Fprintf(&b, "Passage %d:", n)
	for i := range 12 {
		b.WriteString(" " + words[(n*7+i*(n%5+1))%len(words)])
	}
	return b.String() + "\n"
}
