package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// faults are what a server does in place of an answer, or to it. Each ends the attempt.
var faults = map[string]func(w http.ResponseWriter, r *http.Request, site http.Handler){
	"429": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "too many", http.StatusTooManyRequests)
	},
	"503": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, "loading", http.StatusServiceUnavailable)
	},
	"500": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, "oops", http.StatusInternalServerError)
	},
	"closed": func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
	"silent": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // else it is not seen that the client goes
		<-r.Context().Done()
	},
	"cut": func(w http.ResponseWriter, r *http.Request, site http.Handler) {
		site.ServeHTTP(&breaking{w, r, 8, 0}, r)
	},
	"stalled": func(w http.ResponseWriter, r *http.Request, site http.Handler) {
		site.ServeHTTP(&breaking{w, r, 8, time.Hour}, r)
	},
	"too slow": func(w http.ResponseWriter, r *http.Request, site http.Handler) {
		site.ServeHTTP(&breaking{w, r, 0, 9 * time.Second}, r)
	},
	"cut at once": func(w http.ResponseWriter, r *http.Request, site http.Handler) {
		site.ServeHTTP(&breaking{w, r, 0, 0}, r)
	},
	"not an answer": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fmt.Fprint(w, "<html>Welcome") },
}

// breaking is a connection that waits before each write after the first ones, or closes if it has no wait.
type breaking struct {
	http.ResponseWriter
	r     *http.Request
	after int
	wait  time.Duration
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *breaking) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		if b.wait == 0 {
			panic(http.ErrAbortHandler)
		}
		if err := wait(b.r.Context(), b.wait); err != nil {
			return 0, err
		}
	}
	return b.ResponseWriter.Write(p)
}

// behindHTTP returns the OpenAI client, and behind a network in memory a server with the simulator's answers. fault names what becomes of
// the n-th request, from 0; empty: it is answered. The returned function ends all that was started.
func behindHTTP(t *testing.T, fault func(n int) string) (*openai.Engine, func() []time.Duration, func()) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var came []time.Duration
	site := upstream.New(upstream.Options{Reply: upstream.Echo, Tokens: 16, Delay: time.Second, TokenDelay: 50 * time.Millisecond})
	n := testkit.NewNetwork()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		name := fault(len(came))
		came = append(came, time.Since(began))
		mu.Unlock()
		if name == "" {
			site.ServeHTTP(w, r)
			return
		}
		faults[name](w, r, site)
	})}
	go func() { _ = server.Serve(n) }()
	transport := &http.Transport{DialContext: n.Dial}
	engine, err := openai.New(openai.Config{
		BaseURL: "http://fake", HTTPClient: &http.Client{Transport: transport}, Retries: -1,
		Timeouts: openai.Timeouts{Header: 10 * time.Second, Idle: 10 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	times := func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return came
	}
	return engine, times, func() {
		_ = engine.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
	}
}

// TestFaultsOverHTTP: what each fault counts as, and that the request is answered by the next attempt.
func TestFaultsOverHTTP(t *testing.T) {
	for name, kind := range map[string]string{
		"429": dispatch.KindBusy, "503": dispatch.KindBusy, "500": dispatch.KindServer, "not an answer": dispatch.KindServer,
		"closed": dispatch.KindUnreachable, "silent": dispatch.KindTimeout, "stalled": dispatch.KindTimeout, "too slow": dispatch.KindTimeout,
		"cut": dispatch.KindInterrupted, "cut at once": dispatch.KindInterrupted,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, times, end := behindHTTP(t, func(n int) string { return map[bool]string{true: name}[n == 0] })
				defer end()
				s := newStore(t)
				d := newDispatcher(t, dispatch.Config{Timeout: time.Minute}, engine)
				all := calls(words(1))
				if err := d.Run(t.Context(), all, s.add); err != nil {
					t.Fatal(err)
				}
				a := s.answers[0]
				if a.Failure.Code != "" || a.Attempts != 2 || a.Text == "" || !strings.HasPrefix(words(1), a.Text) {
					t.Errorf("%+v", a)
				}
				if got := d.Stats().Replicas[0].Errors; len(got) != 1 || got[kind] != 1 {
					t.Errorf("%v, want %s", got, kind)
				}
				if at := times(); len(at) != 2 || name == "429" && (at[1] < 7*time.Second || at[1] > 8*time.Second) {
					t.Errorf("requests came at %v", at)
				}
			})
		})
	}
}

// TestUnreliableServer: a server at which a third of all requests fail in one way or another answers each request in the end, once.
func TestUnreliableServer(t *testing.T) {
	names := []string{"429", "503", "500", "closed", "silent", "cut", "stalled", "too slow", "cut at once"}
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			engine, times, end := behindHTTP(t, func(int) string {
				if random.IntN(3) > 0 {
					return ""
				}
				return names[random.IntN(len(names))]
			})
			defer end()
			texts := make([]string, 120)
			for i := range texts {
				texts[i] = words(i/60, i/10, i)
			}
			s := newStore(t)
			d := newDispatcher(t, dispatch.Config{Timeout: time.Minute, Attempts: 40, RetryShare: 1}, engine)
			var group sync.WaitGroup
			all := calls(texts...)
			for i := range 3 {
				group.Go(func() {
					if err := d.Run(t.Context(), all[40*i:40*i+40], s.add); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if s.len() != len(texts) || len(s.failed()) > 0 || len(times()) < len(texts)*5/4 {
				t.Errorf("%d answers, %d requests, failures %v", s.len(), len(times()), s.failed())
			}
			for i, a := range s.answers {
				if a.Text == "" || !strings.HasPrefix(texts[i], a.Text) || a.Finish == "" || a.Usage.OutputTokens < 16 {
					t.Errorf("%d: %+v", i, a)
				}
			}
		})
	}
}

// TestWrongAddressOverHTTP: a path that the server does not have is one error, and no request is marked.
func TestWrongAddressOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testkit.NewNetwork()
		server := &http.Server{Handler: upstream.New(upstream.Options{})}
		go func() { _ = server.Serve(n) }()
		transport := &http.Transport{DialContext: n.Dial}
		engine, err := openai.New(openai.Config{BaseURL: "http://fake/api/v2", HTTPClient: &http.Client{Transport: transport}, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		s := newStore(t)
		err = newDispatcher(t, dispatch.Config{}, engine).Run(context.Background(), numbered(100), s.add)
		if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), dispatch.ErrDenied.Error()) || s.len() > 0 {
			t.Errorf("%v, %d answers", err, s.len())
		}
		_ = engine.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
	})
}
