package httpload_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/lab/httpload"
	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

const ms = 1000.0 // in microseconds

// near reports whether a reported time is what it should be, as exactly as histograms are.
func near(got, want float64) bool { return got >= want-0.001 && got <= want*1.001+0.001 }

// answersAfter takes a time for each request, however many there are.
func answersAfter(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d)
		_, _ = io.WriteString(w, "{}")
	}
}

// hang never answers, and ends when the client has gone, which a server only notices behind the body.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// oneAtATime answers requests one after the other.
func oneAtATime(d time.Duration) http.HandlerFunc {
	turn := make(chan struct{}, 1) // a mutex would not be durably blocking
	return func(w http.ResponseWriter, r *http.Request) {
		turn <- struct{}{}
		answersAfter(d)(w, r)
		<-turn
	}
}

// TestOpenLoopCountsFromSchedule: ten requests a second on a server that does one a second. However few may be under
// way, request i is due at i/10 s, answered at i+1 s, and charged with all of the difference.
func TestOpenLoopCountsFromSchedule(t *testing.T) {
	for name, inFlight := range map[string]int{"all under way": 0, "one under way": 1, "three under way": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target, stop := serve(t, oneAtATime(time.Second))
				defer stop()
				report, err := httpload.Run(t.Context(), httpload.Config{
					Target: target, Bodies: fixed, Duration: 2 * time.Second, Timeout: time.Hour,
					Load: httpload.Load{Rate: 10, MaxInFlight: inFlight},
				})
				if err != nil {
					t.Fatal(err)
				}
				// Of 20 requests the last is due at 1.9 s and answered at 20 s; the eleventh smallest of i+1-i/10 is 10.0 s.
				l := report.Latency
				if l.Count != 20 || !near(l.Max, 18100*ms) || !near(l.P50, 9100*ms) || !near(l.Mean, 9550*ms) {
					t.Errorf("%+v", l)
				}
				late := 0.0
				if inFlight > 0 {
					late = float64(20-inFlight)*1000*ms - 1900*ms
				}
				if inFlight == 1 && !near(report.Service.Max, 1000*ms) {
					t.Errorf("from sending %+v", report.Service)
				}
				if !near(report.Late.Max, late) {
					t.Errorf("late by %v, want %v", report.Late.Max, late)
				}
			})
		})
	}
}

// TestTTFTCountsFromSchedule: so does the time to the first text.
func TestTTFTCountsFromSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"text":"a"}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		})
		defer stop()
		report, err := httpload.Run(t.Context(), httpload.Config{
			Target: target, Bodies: fixed, Duration: 3 * time.Second, Load: httpload.Load{Rate: 1, MaxInFlight: 1},
		})
		// Two seconds each, due at 0, 1 and 2 s: sent at 0, 2 and 4 s.
		if err != nil || report.OK != 3 || !near(report.TTFT.Max, 3000*ms) || !near(report.TTFT.P50, 2000*ms) ||
			!near(report.Latency.Max, 4000*ms) {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestStallIsCharged: a server that stalls once for a second. The open loop charges each request due meanwhile; the
// closed loop of one client sees one slow request, so it does not show how a sidecar does.
func TestStallIsCharged(t *testing.T) {
	for _, tt := range []struct {
		name     string
		load     httpload.Load
		requests int
		p90      float64
	}{
		{"open", httpload.Load{Rate: 100}, 500, 510 * ms},     // of 500 requests 100 wait, from 1 s down to 10 ms
		{"closed", httpload.Load{Clients: 1}, 400, 10.0 * ms}, // 399 of 10 ms, one of 1010 ms
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				target, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if at := time.Since(begun); at >= time.Second && at < 2*time.Second {
						time.Sleep(2*time.Second - at)
					}
					answersAfter(10*time.Millisecond)(w, r)
				})
				defer stop()
				report, err := httpload.Run(t.Context(), httpload.Config{Target: target, Bodies: fixed, Load: tt.load, Duration: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if report.OK != tt.requests || !near(report.Latency.P90, tt.p90) || !near(report.Latency.Max, 1010*ms) {
					t.Errorf("%+v", report)
				}
			})
		})
	}
}

// TestWarmUp: what is due in the warm-up is sent and not counted.
func TestWarmUp(t *testing.T) {
	for _, load := range []httpload.Load{{Rate: 100}, {Clients: 1}} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int32
			target, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if sent.Add(1) <= 100 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				answersAfter(10*time.Millisecond)(w, r)
			})
			defer stop()
			report, err := httpload.Run(t.Context(),
				httpload.Config{Target: target, Bodies: fixed, Load: load, WarmUp: time.Second, Duration: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if load.Clients > 0 { // pauses after each failure only if it came sooner than that
				if report.OK != report.Requests || report.OK < 90 {
					t.Errorf("%v: %+v", load, report)
				}
			} else if report.Requests != 100 || report.OK != 100 || sent.Load() != 200 {
				t.Errorf("%v: %+v, %d sent", load, report, sent.Load())
			}
		})
	}
}

// TestErrors: what goes wrong is counted by kind and not measured.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		stream := func(w http.ResponseWriter, events ...string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range events {
				_, _ = io.WriteString(w, "data: "+e+"\n\n")
			}
		}
		target, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch n.Add(1) - 1 {
			case 0:
				http.Error(w, "busy", http.StatusTooManyRequests)
			case 1:
				http.Error(w, "still busy", http.StatusTooManyRequests)
			case 2:
				stream(w, `{"choices":[{"delta":{"content":"a"}}]}`)
			case 3:
				stream(w, `{"choices":[{"delta":{"content":"a"}}]}`, `{"error":{"message":"no"}}`, `[DONE]`)
			case 4:
				stream(w, `{"choices":[`)
			case 5:
				stream(w, `[DONE]`, `[DONE]`)
			case 6:
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "cut")
				panic(http.ErrAbortHandler)
			case 7:
				hang(w, r)
			case 8:
				time.Sleep(time.Second)
				stream(w, `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"text":"a"}]}`, `[DONE]`)
			default:
				_, _ = io.WriteString(w, "{}")
			}
		})
		defer stop()
		report, err := httpload.Run(t.Context(), httpload.Config{
			Target: target, Bodies: fixed, Load: httpload.Load{Rate: 1}, Duration: 10 * time.Second, Timeout: 2 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{
			"status 429": 2, "incomplete stream": 2, "error in stream": 1, "malformed chunk": 1, "broken connection": 1, "timeout": 1,
		}
		got := map[string]int{}
		for _, e := range report.Errors {
			got[e.What] = e.Count
			if e.First == "" {
				t.Errorf("nothing said of %q", e.What)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		if report.Requests != 10 || report.OK != 2 || report.Latency.Count != 2 || report.Errors[0].First != "busy" {
			t.Errorf("%+v", report)
		}
		if report.TTFT.Count != 1 || !near(report.TTFT.Max, 1000*ms) {
			t.Errorf("TTFT %+v", report.TTFT)
		}
	})
}

// TestNothingListens: all fail, and clients do not ask as fast as they are refused.
func TestNothingListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, stop := serve(t, nil)
		stop()
		report, err := httpload.Run(t.Context(),
			httpload.Config{Target: target, Bodies: fixed, Load: httpload.Load{Clients: 2}, Duration: time.Second})
		if err != nil || report.OK != 0 || report.Requests != 200 || report.Errors[0].What != "no connection" {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestNotSent: a server that answers nothing does not hold up the end for longer than the timeout twice, and what it
// held up is counted.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, stop := serve(t, hang)
		defer stop()
		begun := time.Now()
		report, err := httpload.Run(t.Context(), httpload.Config{
			Target: target, Bodies: fixed, Load: httpload.Load{Rate: 100, MaxInFlight: 1}, Duration: time.Second, Timeout: 300 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 1600*time.Millisecond {
			t.Errorf("took %v", took)
		}
		got := map[string]int{}
		for _, e := range report.Errors {
			got[e.What] = e.Count
		}
		if report.Requests != 100 || got["timeout"] != 5 || got["not sent"] != 95 {
			t.Errorf("%d requests: %v", report.Requests, got)
		}
	})
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		for _, load := range []httpload.Load{{Rate: 100}, {Clients: 3}, {Rate: 100, MaxInFlight: 1}} {
			target, stop := serve(t, hang)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			c := httpload.Config{Target: target, Bodies: fixed, Load: load, Duration: time.Hour}
			if _, err := httpload.Run(ctx, c); !errors.Is(err, why) {
				t.Errorf("%v: %v", load, err)
			}
			stop()
		}
	})
}

// TestAgainstUpstream: over real connections, streams have times to the first text, and every request an ID of its own.
func TestAgainstUpstream(t *testing.T) {
	bodies, err := httpload.Generate(httpload.BodyOptions{Documents: 50, K: 3, BlockTokens: 40, Stream: true, MaxTokens: 4})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ids := map[string]bool{}
	engine := upstream.New(upstream.Options{})
	target, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ids[r.Header.Get("X-Request-Id")] = true
		mu.Unlock()
		engine.ServeHTTP(w, r)
	})
	defer stop()
	report, err := httpload.Run(t.Context(),
		httpload.Config{Target: target, Bodies: bodies, Load: httpload.Load{Clients: 2}, Duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK == 0 || report.OK != report.Requests || report.TTFT.Count != report.OK || report.TTFT.P50 > report.Latency.P50 {
		t.Errorf("%+v", report)
	}
	if len(ids) != report.OK || report.Sent < int64(500*report.OK) || report.Received < int64(500*report.OK) {
		t.Errorf("%d IDs, %+v", len(ids), report)
	}
	if stats := engine.Stats(); stats.Requests != report.OK || stats.HitTokens == 0 || stats.OutputTokens != 4*report.OK {
		t.Errorf("%+v", stats)
	}
}

// TestPrecise: in real time, no request is sent before it is due, and none is lost.
func TestPrecise(t *testing.T) {
	target, stop := serve(t, answersAfter(0))
	defer stop()
	report, err := httpload.Run(t.Context(), httpload.Config{
		Target: target, Bodies: fixed, Load: httpload.Load{Rate: 500}, Duration: 100 * time.Millisecond, Precise: true,
	})
	if err != nil || report.OK != 50 || report.Late.Count != 50 || report.Service.P50 > report.Latency.P50 {
		t.Errorf("%+v, %v", report, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := httpload.Config{Target: target, Bodies: fixed, Load: httpload.Load{Rate: 500}, Duration: time.Hour, Precise: true}
	if _, err := httpload.Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestBadConfig(t *testing.T) {
	target, stop := serve(t, nil)
	defer stop()
	good := httpload.Config{Target: target, Bodies: fixed, Load: httpload.Load{Rate: 1}, Duration: time.Second}
	for want, change := range map[string]func(*httpload.Config){
		"no target":       func(c *httpload.Config) { c.Target = nil },
		"duration 0s":     func(c *httpload.Config) { c.Duration = 0 },
		"warm-up -1s":     func(c *httpload.Config) { c.WarmUp = -time.Second },
		"either a rate":   func(c *httpload.Config) { c.Load = httpload.Load{} },
		"number of clie":  func(c *httpload.Config) { c.Load.Clients = 1 },
		"below 0":         func(c *httpload.Config) { c.Load.MaxInFlight = -1 },
		"hundred million": func(c *httpload.Config) { c.Load.Rate = 1e9 },
	} {
		c := good
		change(&c)
		if _, err := httpload.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, base := range []string{"", "localhost:9", "ftp://x", "http://", "http://a?b", "http://user:secret@ h"} {
		if _, err := httpload.NewTarget(base, "x", "", nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestTargets: where requests go, and with which key.
func TestTargets(t *testing.T) {
	for base, want := range map[string]string{
		"http://a": "http://a/v1/chat/completions", "http://a/": "http://a/v1/chat/completions", "http://a/x/": "http://a/x/chat/completions",
	} {
		var got, key string
		target, err := httpload.NewTarget(base, "/chat/completions", "sk",
			&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				got, key = r.URL.String(), r.Header.Get("Authorization")
				return nil, io.EOF
			})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = httpload.Run(t.Context(),
			httpload.Config{Target: target, Bodies: fixed, Load: httpload.Load{Rate: 100}, Duration: time.Millisecond})
		if err != nil || got != want || key != "Bearer sk" {
			t.Errorf("%s: %s %s %v", base, got, key, err)
		}
	}
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDues: at a constant rate exactly as many as fit, evenly; at random as many in the mean.
func TestDues(t *testing.T) {
	dues := httpload.Dues(httpload.Load{Rate: 4}, time.Second)
	want := []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}
	if diff := cmp.Diff(want, dues); diff != "" {
		t.Errorf("constant (-want +got):\n%s", diff)
	}
	dues = httpload.Dues(httpload.Load{Rate: 1000, Poisson: true, Seed: 3}, 10*time.Second)
	if n := len(dues); n < 9600 || n > 10400 || dues[n-1] >= 10*time.Second {
		t.Errorf("%d in 10 s at 1000/s", n)
	}
}
