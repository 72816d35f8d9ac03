package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
)

// TestBudget: what is spent never passes the bound by more than the calls in flight can add, and what was spent before counts.
func TestBudget(t *testing.T) {
	prices := dispatch.Prices{Input: 1, Cached: 0.1, Output: 10} // an answer costs 200 millionths
	rapid.Check(t, func(rt *rapid.T) {
		concurrency := rapid.IntRange(1, 20).Draw(rt, "concurrency")
		spent := float64(rapid.IntRange(0, 5).Draw(rt, "spent answers")) * 200e-6
		most := float64(rapid.IntRange(1, 40).Draw(rt, "answers")) * 200e-6
		all := numbered(50)
		for i := range all {
			all[i].Request.MaxTokens = 10
		}
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			d := newDispatcher(t, dispatch.Config{Concurrency: concurrency, Prices: prices, MaxCost: most, Spent: spent}, takes(time.Second))
			err := d.Run(t.Context(), all, s.add)
			now := spent + float64(s.len())*200e-6
			switch {
			case !errors.Is(err, dispatch.ErrBudget):
				rt.Errorf("%v", err)
			case now > max(most, spent)+float64(concurrency)*200e-6, spent > most && s.len() > 0, len(s.failed()) > 0:
				rt.Errorf("%g spent of %g, %d failures", now, most, len(s.failed()))
			case now < most-300e-6 && spent < most:
				rt.Errorf("stopped with %g of %g", now, most)
			}
			if got := d.Stats().Spent; got < now-1e-9 || got > now+1e-9 {
				rt.Errorf("stats say %g, want %g", got, now)
			}
		})
	})
}

func TestCost(t *testing.T) {
	p := dispatch.Prices{Input: 1, Cached: 0.1, Output: 10}
	u := engines.Usage{PromptTokens: 3e6, CachedTokens: 2e6, OutputTokens: 1e6, CachedKnown: true}
	if got := p.Cost(u); got != 1+0.2+10 {
		t.Errorf("%g", got)
	}
	u.CachedKnown = false
	if got := p.Cost(u); got != 3+10 {
		t.Errorf("%g where the cached part is not known", got)
	}
}

// TestDeadline: no call begins that would end too late, and all answers are there in time.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newStore(t)
		c := dispatch.Config{Concurrency: 2, Deadline: began.Add(10*time.Second + 500*time.Millisecond)}
		err := newDispatcher(t, c, takes(2*time.Second)).Run(t.Context(), numbered(50), s.add)
		if !errors.Is(err, dispatch.ErrDeadline) || s.len() != 10 || len(s.failed()) > 0 || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v, %d answers", err, time.Since(began), s.len())
		}
	})
	synctest.Test(t, func(t *testing.T) { // answers that take much longer than the mean are cut after the grace
		began := time.Now()
		s := newStore(t)
		c := dispatch.Config{Deadline: began.Add(10 * time.Second), Grace: 5 * time.Second}
		err := newDispatcher(t, c, takes(time.Hour)).Run(t.Context(), numbered(3), s.add)
		if !errors.Is(err, dispatch.ErrDeadline) || s.len() != 0 || time.Since(began) != 15*time.Second {
			t.Errorf("%v after %v, %d answers", err, time.Since(began), s.len())
		}
	})
}

// TestTimeout: an attempt that takes too long is cut and tried again.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: func(ctx context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			if n == 0 {
				<-ctx.Done()
				return engines.Response{}, ctx.Err()
			}
			return answer(req), nil
		}}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Timeout: time.Minute}, f)
		if err := d.Run(t.Context(), numbered(1), s.add); err != nil || s.answers[0].Attempts != 2 || s.answers[0].Failure.Code != "" {
			t.Errorf("%v, %+v", err, s.answers[0])
		}
		if got := d.Stats().Replicas[0]; got.Errors[dispatch.KindTimeout] != 1 || got.Calls != 2 || got.Answers != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestPause: no call begins during a pause, and all go on after it.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := takes(time.Second)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1}, f)
		time.AfterFunc(2500*time.Millisecond, d.Pause)
		time.AfterFunc(time.Minute, d.Resume)
		s := newStore(t)
		if err := d.Run(t.Context(), numbered(5), s.add); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, time.Minute, time.Minute + time.Second}
		if got := f.since(began); !slices.Equal(got, want) || s.len() != 5 {
			t.Errorf("calls began at %v, want %v", got, want)
		}
	})
}

// TestSchema: an answer that does not match is asked for again; if none does, its text is kept with the reason.
func TestSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"year":{"type":"integer"}},"required":["year"]}`)
	for name, c := range map[string]struct {
		texts    []string
		finish   string
		attempts int
		reason   string
	}{
		"at once":       {[]string{` {"year": 1999} `}, "stop", 1, ""},
		"the third":     {[]string{`{"year":"1999"}`, `none`, `{"year":1}`}, "stop", 3, ""},
		"never":         {[]string{`{}`, `{}`, `{"year":"1999"}`, `{"year":1}`}, "stop", 3, "/year"},
		"no JSON":       {[]string{`a`, `b`, `{"year":1} {}`}, "stop", 3, "not JSON"},
		"cut off":       {[]string{`{"year":1`}, "length", 1, "cut off"},
		"large numbers": {[]string{`{"year":123456789012345678901234567890}`}, "stop", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent string
				f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
					sent = string(req.Extra["response_format"])
					r := answer(req)
					r.Text, r.Finish = c.texts[n], c.finish
					return r, nil
				}}
				s := newStore(t)
				if err := newDispatcher(t, dispatch.Config{Schema: schema}, f).Run(t.Context(), numbered(1), s.add); err != nil {
					t.Fatal(err)
				}
				got := s.answers[0]
				if got.Attempts != c.attempts || got.Text != c.texts[c.attempts-1] || got.Usage.PromptTokens != 100*c.attempts {
					t.Errorf("%+v", got)
				}
				if (got.Failure.Code == dispatch.CodeSchema) != (c.reason != "") || !strings.Contains(got.Failure.Message, c.reason) {
					t.Errorf("failure %+v, want %q", got.Failure, c.reason)
				}
				if want := `{"json_schema":{"name":"answer","schema":` + string(schema) + `},"type":"json_schema"}`; sent != want {
					t.Errorf("sent %s, want %s", sent, want)
				}
			})
		})
	}
}

// TestConfig: what is wrong is refused with the field's name.
func TestConfig(t *testing.T) {
	good := []dispatch.Replica{{Name: "a", Engine: takes(0)}}
	for want, c := range map[string]dispatch.Config{
		"Replicas is empty":              {},
		`Replicas[0] "a" has no`:         {Replicas: []dispatch.Replica{{Name: "a"}}},
		`Replicas[1]: the name "a"`:      {Replicas: append(slices.Clone(good), good...)},
		"Concurrency -1":                 {Replicas: good, Concurrency: -1},
		"Attempts -1":                    {Replicas: good, Attempts: -1},
		"MaxCost 3 needs Prices":         {Replicas: good, MaxCost: 3},
		"Prices.Output -1":               {Replicas: good, Prices: dispatch.Prices{Output: -1}},
		"MaxRetryWait 1":                 {Replicas: good, RetryWait: time.Minute, MaxRetryWait: time.Second},
		"Schema: not JSON":               {Replicas: good, Schema: json.RawMessage(`{`)},
		"Schema: \"urn:schema#\" is not": {Replicas: good, Schema: json.RawMessage(`{"type":"text"}`)},
		"only references within":         {Replicas: good, Schema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)},
	} {
		if _, err := dispatch.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := newDispatcher(t, dispatch.Config{}, takes(0)).Run(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}
