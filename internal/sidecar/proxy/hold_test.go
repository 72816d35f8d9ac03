package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/holdback"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// held is a proxy that holds requests back, in front of a scripted engine that answers each request when it may.
type held struct {
	*proxy.Proxy
	gate   *holdback.Gate
	came   chan string       // bodies, as the engine gets them
	gone   chan struct{}     // the engine's client has left before the answer
	answer chan func(answer) // how the engine answers the next request
}

// answer is what a script answers with.
type answer struct {
	http.ResponseWriter
	r *http.Request
}

func (a answer) piece(text string) {
	a.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(a, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
	a.ResponseWriter.(http.Flusher).Flush()
}

func newHeld(t *testing.T, o holdback.Options, more ...func(*proxy.Options)) *held {
	gate, err := holdback.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{gate: gate, came: make(chan string, 10), gone: make(chan struct{}, 10), answer: make(chan func(answer), 10)}
	e := newEngine(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		h.came <- e.last()
		select {
		case script := <-h.answer:
			script(answer{w, r})
		case <-r.Context().Done():
			h.gone <- struct{}{}
		}
	}
	h.Proxy = newProxy(t, e, func(o *proxy.Options) {
		o.Hold = gate
		for _, f := range more {
			f(o)
		}
	})
	return h
}

// send sends a body, and returns where the status of the answer will come.
func (h *held) send(ctx context.Context, path, who, body string) <-chan int {
	code := make(chan int, 1)
	go func() {
		r := httptest.NewRequestWithContext(tenant.With(ctx, who), http.MethodPost, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		code <- w.Code
	}()
	return code
}

// waits waits until a request is held.
func (h *held) waits(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); h.gate.Stats().Waiting != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("none is held: %+v", h.gate.Stats())
		}
	}
}

// want reads a status.
func want(t *testing.T, code <-chan int, status int) {
	t.Helper()
	select {
	case got := <-code:
		if got != status {
			t.Errorf("status %d, want %d", got, status)
		}
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
}

func ends(a answer) { a.piece("all") }

var longSystem = strings.Repeat("The same system text for all. ", 200)

// A prompt is held while another one computes its beginning on a slot, and sent when that one has ended, however it has.
func TestHeldUntilTheOtherEnds(t *testing.T) {
	slots := holdback.Options{Slots: func() int { return 4 }, Longest: time.Minute}
	paths := map[string][2]string{
		chatPath:          {chat(longSystem, "one"), chat(longSystem, "two")},
		"/v1/completions": {`{"prompt":"` + longSystem + `one"}`, `{"prompt":"` + longSystem + `two"}`},
		"/v1/messages":    {`{"system":"` + longSystem + `","messages":[]}`, `{"max_tokens":5,"system":"` + longSystem + `","messages":[]}`},
	}
	for name, c := range map[string]struct {
		script func(answer)
		status int  // of the first one
		begins bool // its answer begins before it ends, which bounds the wait: by milliseconds here
	}{
		"answered":   {func(a answer) { fmt.Fprint(a, "{}") }, 200, false},
		"streamed":   {ends, 200, true},
		"refused":    {func(a answer) { a.WriteHeader(http.StatusInternalServerError) }, http.StatusInternalServerError, false},
		"breaks off": {func(a answer) { a.piece("a"); panic(http.ErrAbortHandler) }, 200, true},
		"lost":       {func(answer) { panic(http.ErrAbortHandler) }, 502, false},
	} {
		for path, bodies := range paths {
			t.Run(name+" "+path, func(t *testing.T) {
				h := newHeld(t, slots)
				first := h.send(t.Context(), path, "", bodies[0])
				<-h.came
				second := h.send(t.Context(), path, "", bodies[1])
				h.waits(t)
				h.answer <- c.script
				<-h.came
				h.answer <- ends
				want(t, second, 200)
				if name != "breaks off" { // the recorder's server panics there
					want(t, first, c.status)
				}
				s := h.gate.Stats()
				if ended := s.Served == 1 || c.begins && s.Late == 1; s.Held != 1 || !ended || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// In front of a paged cache the first piece of a stream is enough.
func TestHeldUntilTheFirstPiece(t *testing.T) {
	h := newHeld(t, holdback.Options{Longest: time.Minute})
	first := h.send(t.Context(), chatPath, "", chat(longSystem, "one"))
	<-h.came
	second := h.send(t.Context(), chatPath, "", chat(longSystem, "two"))
	h.waits(t)
	end := make(chan struct{})
	h.answer <- func(a answer) {
		a.piece("first")
		<-end
	}
	<-h.came // although the first one goes on
	h.answer <- ends
	want(t, second, 200)
	close(end)
	want(t, first, 200)
}

// The clients of both may leave, and the bound may be reached.
func TestHeldAndLeft(t *testing.T) {
	slots := func() int { return 4 }
	t.Run("the first leaves", func(t *testing.T) {
		h := newHeld(t, holdback.Options{Slots: slots, Longest: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		first := h.send(ctx, chatPath, "", chat(longSystem, "one"))
		<-h.came
		second := h.send(t.Context(), chatPath, "", chat(longSystem, "two"))
		h.waits(t)
		cancel()
		<-h.gone // it would take the second one's answer
		<-h.came
		h.answer <- ends
		want(t, second, 200)
		want(t, first, 499)
	})
	t.Run("the second leaves", func(t *testing.T) {
		h := newHeld(t, holdback.Options{Slots: slots, Longest: time.Minute})
		first := h.send(t.Context(), chatPath, "", chat(longSystem, "one"))
		<-h.came
		ctx, cancel := context.WithCancel(t.Context())
		second := h.send(ctx, chatPath, "", chat(longSystem, "two"))
		h.waits(t)
		cancel()
		want(t, second, 499)
		h.answer <- ends
		want(t, first, 200)
		if len(h.came) > 0 {
			t.Error("the engine was sent a request whose client had left")
		}
	})
	t.Run("the bound", func(t *testing.T) {
		h := newHeld(t, holdback.Options{Slots: slots, Longest: 20 * time.Millisecond})
		first := h.send(t.Context(), chatPath, "", chat(longSystem, "one"))
		<-h.came
		second := h.send(t.Context(), chatPath, "", chat(longSystem, "two"))
		<-h.came // the first one has no answer
		h.answer <- ends
		h.answer <- ends
		want(t, first, 200)
		want(t, second, 200)
		if s := h.gate.Stats(); s.Late != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// What has no long beginning in common is not held: other texts, other models or tools, other tenants.
func TestNotHeld(t *testing.T) {
	body := chat(longSystem, "one")
	for name, other := range map[string][2]string{
		"text":     {"", chat("Another text. "+longSystem, "one")},
		"model":    {"", strings.Replace(body, `"model":"m"`, `"model":"n"`, 1)},
		"tools":    {"", strings.Replace(body, `"model":"m"`, `"model":"m","tools":[]`, 1)},
		"tenant":   {"blue", body},
		"short":    {"", chat("Short.", "one")},
		"no cache": {"", strings.Replace(body, `"model":"m"`, `"model":"m","cache_prompt":false`, 1)},
	} {
		h := newHeld(t, holdback.Options{Longest: time.Minute})
		first := h.send(t.Context(), chatPath, "", body)
		<-h.came
		second := h.send(t.Context(), chatPath, other[0], other[1])
		select {
		case <-h.came:
		case <-time.After(time.Minute):
			t.Errorf("%s: held: %+v", name, h.gate.Stats())
		}
		h.answer <- ends
		h.answer <- ends
		want(t, first, 200)
		want(t, second, 200)
	}
}

// In shadow mode, and of sessions that are held out, nothing is held: they are to be as without the sidecar.
func TestNotHeldInShadow(t *testing.T) {
	for name, live := range map[string]func() (bool, float64){
		"shadow":   func() (bool, float64) { return true, 0 },
		"held out": func() (bool, float64) { return false, 1 },
	} {
		for path, bodies := range map[string][2]string{
			chatPath:          {chat(longSystem, "one"), chat(longSystem, "two")},
			"/v1/completions": {`{"prompt":"` + longSystem + `one"}`, `{"prompt":"` + longSystem + `two"}`},
		} {
			if name == "held out" && path != chatPath {
				continue // it has no session
			}
			h := newHeld(t, holdback.Options{Longest: time.Minute}, func(o *proxy.Options) { o.Live = live })
			first := h.send(t.Context(), path, "", bodies[0])
			<-h.came
			second := h.send(t.Context(), path, "", bodies[1])
			select {
			case <-h.came:
			case <-time.After(time.Minute):
				t.Errorf("%s, %s: held: %+v", name, path, h.gate.Stats())
			}
			h.answer <- ends
			h.answer <- ends
			want(t, first, 200)
			want(t, second, 200)
		}
	}
}
