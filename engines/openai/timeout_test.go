package openai_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// hangs never answers; it leaves when the client does.
func hangs(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }

// hangsAfter sends the events and then nothing more.
func hangsAfter(events ...string) script {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		send(w, events...)
		<-r.Context().Done()
	}
}

func TestTimeouts(t *testing.T) {
	cases := []struct {
		name   string
		script script
		limits openai.Timeouts
		want   error
		says   string
		text   string
		after  time.Duration
	}{
		{"no headers", hangs, openai.Timeouts{Header: time.Minute}, engines.ErrUnreachable, "no answer for 1m0s", "", time.Minute},
		{"no headers, default", hangs, openai.Timeouts{}, engines.ErrUnreachable, "no answer for 5m0s", "", openai.DefaultHeader},
		{"no first piece", hangsAfter(), openai.Timeouts{Idle: time.Second}, engines.ErrInterrupted, "no data for 1s", "", time.Second},
		{
			"no more pieces", hangsAfter(piece("a")),
			openai.Timeouts{Idle: time.Second},
			engines.ErrInterrupted, "no data for 1s", "a",
			time.Second,
		},
		{"an error that does not end", func(w http.ResponseWriter, r *http.Request, _ int) {
			w.WriteHeader(http.StatusInternalServerError)
			hangsAfter("half")(w, r, 0)
		}, openai.Timeouts{Idle: time.Second}, engines.ErrRefused, "half", "", time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, engine, stop := inMemory(t, c.script, func(config *openai.Config) { config.Timeouts = c.limits })
				defer stop()
				start := time.Now()
				response, err := engine.Generate(t.Context(), question("a"), nil)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v", err)
				}
				if !errors.Is(c.want, engines.ErrRefused) && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("error %v is no timeout", err)
				}
				if got := time.Since(start); got != c.after {
					t.Errorf("after %v, want %v", got, c.after)
				}
				if errors.Is(err, engines.ErrNotTaken) {
					t.Errorf("error %v is %v", err, engines.ErrNotTaken)
				}
				if response.Text != c.text {
					t.Errorf("text %q, want %q", response.Text, c.text)
				}
				if n := len(f.requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// TestSlowButAlive: no timeout as long as something comes, however long the answer and its reader take.
func TestSlowButAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, engine, end := inMemory(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			for range 100 {
				time.Sleep(9 * time.Second) // of the bubble's clock: takes no time
				send(w, piece("a"))
			}
			send(w, stop, usage, "[DONE]")
		}, func(c *openai.Config) { c.Timeouts = openai.Timeouts{Idle: 10 * time.Second} })
		defer end()
		response, err := engine.Generate(t.Context(), question("a"), func(string) error {
			time.Sleep(time.Minute)
			return nil
		})
		if err != nil || len(response.Text) != 100 {
			t.Errorf("%+v, %v", response, err)
		}
		if response.TTFT != 9*time.Second || response.Total < 100*time.Minute {
			t.Errorf("TTFT %v, Total %v", response.TTFT, response.Total)
		}
	})
}

// TestOpenAfterDone: a server that keeps the stream open after its end does not hold the answer back for long.
func TestOpenAfterDone(t *testing.T) {
	for name, c := range map[string]struct {
		script script
		within time.Duration
	}{
		"after [DONE]":            {hangsAfter(piece("a"), stop, "[DONE]"), time.Second},
		"after the finish reason": {hangsAfter(piece("a"), stop), openai.DefaultIdle + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, engine, end := inMemory(t, c.script, nil)
				defer end()
				start := time.Now()
				response, err := engine.Generate(t.Context(), question("a"), nil)
				if err != nil || response.Text != "a" || response.Finish != "stop" {
					t.Errorf("%+v, %v", response, err)
				}
				if took := time.Since(start); took > c.within {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestContextEnds(t *testing.T) {
	cases := []struct {
		name   string
		script script
		want   []error
		not    error
	}{
		{"before the headers", hangs, []error{context.DeadlineExceeded}, engines.ErrInterrupted},
		{"before the first piece", hangsAfter(), []error{context.DeadlineExceeded}, engines.ErrInterrupted},
		{"mid-stream", hangsAfter(piece("a")), []error{context.DeadlineExceeded, engines.ErrInterrupted}, engines.ErrUnreachable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, engine, end := inMemory(t, c.script, nil)
				defer end()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := engine.Generate(ctx, question("a"), nil)
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("error %v does not wrap %v", err, want)
					}
				}
				if errors.Is(err, c.not) {
					t.Errorf("error %v wraps %v", err, c.not)
				}
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v", took)
				}
				if n := len(f.requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestRetryWaits(t *testing.T) {
	busy := func(retryAfter string) script {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			answers(http.StatusTooManyRequests, "text/plain", "busy")(w, r, n)
		}
	}
	cases := []struct {
		name     string
		script   script
		change   func(*openai.Config)
		deadline time.Duration
		requests int
		took     time.Duration
	}{
		{"doubling", busy(""), nil, 0, 4, (500 + 1000 + 2000) * time.Millisecond},
		{"jittered", busy(""), func(c *openai.Config) { c.Jitter = func() float64 { return 0.5 } }, 0, 4, (750 + 1500 + 3000) * time.Millisecond},
		{"capped", busy(""), func(c *openai.Config) { c.MaxRetryWait = 2 * time.Second }, 0, 4, (500 + 1000 + 1000) * time.Millisecond},
		{"Retry-After in seconds", busy("7"), nil, 0, 4, 21 * time.Second},
		{"Retry-After unreadable", busy("soon"), nil, 0, 4, 3500 * time.Millisecond},
		{"Retry-After in the past", busy("Fri, 31 Dec 1999 23:59:00 GMT"), nil, 0, 4, 3500 * time.Millisecond},
		// The bubble's clock starts with the year 2000, and the later waits are past this date.
		{"Retry-After as a date", busy("Sat, 01 Jan 2000 00:00:08 GMT"), nil, 0, 4, (8 + 1 + 2) * time.Second},
		{"Retry-After beyond the cap", busy("3600"), nil, 0, 1, 0},
		{"no time left for it", busy("7"), nil, 5 * time.Second, 1, 0},
		{"time for one", busy("7"), nil, 10 * time.Second, 2, 7 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, engine, end := inMemory(t, c.script, func(config *openai.Config) {
					config.Retries, config.RetryWait = 3, time.Second
					config.Jitter = func() float64 { return 0 }
					if c.change != nil {
						c.change(config)
					}
				})
				defer end()
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				_, err := engine.Generate(ctx, question("a"), nil)
				if !errors.Is(err, engines.ErrRefused) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if n := len(f.requests()); n != c.requests {
					t.Errorf("%d requests, want %d", n, c.requests)
				}
			})
		})
	}
}

// TestCancelledWhileWaiting: a wait for a retry ends with the context and names both causes.
func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, engine, end := inMemory(t, answers(503, "text/plain", "busy"),
			func(c *openai.Config) { c.RetryWait = time.Minute; c.MaxRetryWait = time.Minute })
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := engine.Generate(ctx, question("a"), nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, engines.ErrRefused) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != time.Second || len(f.requests()) != 1 {
			t.Errorf("took %v, %d requests", took, len(f.requests()))
		}
	})
}
