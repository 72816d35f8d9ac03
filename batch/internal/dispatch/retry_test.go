package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/batch/internal/dispatch"
	"github.com/ragpilot/ragpilot/engines"
)

// TestRetryBudget: when requests fail, the retries never pass the share of the answers, ten, and one for each RetryWait. All of that is
// used, and a request is marked only after all its attempts.
func TestRetryBudget(t *testing.T) {
	const (
		n, bad = 2500, 40 // every fifth request of the first 200 always fails
		wait   = 2 * time.Second
		share  = 0.02
		free   = 10 // the bucket is full at first
	)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		attempts := map[string]int{}
		var answers, retries, early int
		var done time.Duration // when the last retry began
		var by int             // answers by then
		f := &fake{script: func(_ context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
			if attempts[last(req)]++; attempts[last(req)] > 1 {
				retries++
				done, by = time.Since(began), answers
				if most := free + share*float64(answers) + float64(done/wait) + 1; float64(retries) > most {
					early++
				}
			}
			time.Sleep(100 * time.Millisecond)
			if strings.HasSuffix(last(req), "evil") {
				return engines.Response{}, status(500, "oops")
			}
			answers++
			return answer(req), nil
		}}
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("%04d good", i)
			if i%5 == 0 && i < 5*bad {
				texts[i] = fmt.Sprintf("%04d evil", i)
			}
		}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1, RetryWait: wait, MaxRetryWait: wait, RetryShare: share}, f)
		if err := d.Run(t.Context(), calls(texts...), s.add); err != nil {
			t.Fatal(err)
		}
		if early > 0 {
			t.Errorf("%d retries passed the budget", early)
		}
		if s.len() != n || len(s.failed()) != bad || retries != bad*(dispatch.DefaultAttempts-1) {
			t.Errorf("%d answers, %d failures, %d retries", s.len(), len(s.failed()), retries)
		}
		for i, failure := range s.failed() {
			if i%5 != 0 || failure.Code != dispatch.CodeAttempts || s.answers[i].Attempts != dispatch.DefaultAttempts {
				t.Errorf("%d: %+v", i, s.answers[i])
			}
		}
		// What is neither free nor paid by answers is paid by time.
		if paid := float64(retries) - free - share*float64(by); done.Seconds() > (paid+5)*wait.Seconds() {
			t.Errorf("the last retry began after %v, but only %.0f retries had to wait for the next %v", done, paid, wait)
		}
	})
}

// TestRest: an engine that fails requests, whichever they are, gets a rest, longer each time, and then one call at a time until it
// answers. No request is marked because of it.
func TestRest(t *testing.T) {
	const wait = 8 * time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			time.Sleep(time.Millisecond)
			if n < 12 {
				return engines.Response{}, status(500, "oops")
			}
			return answer(req), nil
		}}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 5, RetryWait: wait, MaxRetryWait: 4 * wait, Attempts: 6}, f)
		if err := d.Run(t.Context(), numbered(100), s.add); err != nil {
			t.Fatal(err)
		}
		if s.len() != 100 || len(s.failed()) > 0 {
			t.Errorf("%d answers, %d failures", s.len(), len(s.failed()))
		}
		// Five calls fail together, and as four of them were over others began. Then three fail one by one, and the next is answered.
		at := f.since(began)
		if at[4] != 0 || at[8] != time.Millisecond {
			t.Errorf("calls began at %v", at[:9])
		}
		for i, least := range []time.Duration{wait / 2, wait, 2 * wait, 2 * wait} {
			if rest := at[9+i] - at[8+i]; rest < least || rest > 2*least+2*time.Millisecond {
				t.Errorf("rest %d took %v, want %v to %v", i, rest, least, 2*least)
			}
		}
		if at[13] != at[12]+time.Millisecond || at[17] != at[13] {
			t.Errorf("after the first answer calls began at %v", at[12:18])
		}
	})
}

// TestRestAfterAnswers: what failed before an answer does not count any more: the next rest is short again.
func TestRestAfterAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			if n%3 == 2 {
				return answer(req), nil
			}
			return engines.Response{}, engines.ErrUnreachable
		}}
		s := newStore(t)
		c := dispatch.Config{Concurrency: 1, Attempts: 3, RetryWait: time.Second, MaxRetryWait: time.Hour}
		if err := newDispatcher(t, c, f).Run(t.Context(), numbered(10), s.add); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); s.len() != 10 || took < 10*1500*time.Millisecond || took > 10*3*time.Second {
			t.Errorf("%d answers after %v, want two rests of one and two seconds for each at most", s.len(), took)
		}
	})
}

// TestTimeoutsLowerTheLimit: an engine whose answers do not come in time gets fewer calls at a time.
func TestTimeoutsLowerTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flying atomic.Int64
		f := &fake{script: func(ctx context.Context, req engines.Request, _ int, _ func()) (engines.Response, error) {
			defer flying.Add(-1)
			if flying.Add(1) > 4 {
				<-ctx.Done()
				return engines.Response{}, ctx.Err()
			}
			if err := wait(ctx, 40*time.Second); err != nil {
				return engines.Response{}, err
			}
			return answer(req), nil
		}}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Timeout: time.Minute, MaxConcurrency: 8}, f)
		if err := d.Run(t.Context(), numbered(50), s.add); err != nil {
			t.Fatal(err)
		}
		if got := d.Stats().Replicas[0]; got.Errors[dispatch.KindTimeout] > 10 || len(s.failed()) > 0 || s.len() != 50 {
			t.Errorf("%+v, failures %v", got, s.failed())
		}
	})
}

// TestNoRestForSingleFailures: requests that fail between others that are answered are no reason for a rest.
func TestNoRestForSingleFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			time.Sleep(time.Millisecond)
			if n%5 < 4 && n < 500 { // four in a row
				return engines.Response{}, status(500, "oops")
			}
			return answer(req), nil
		}}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1, RetryWait: time.Hour, MaxRetryWait: time.Hour}, f)
		if err := d.Run(t.Context(), numbered(500), s.add); err != nil {
			t.Fatal(err)
		}
		if at := f.since(began); at[499] != 499*time.Millisecond || s.len() != 500 {
			t.Errorf("call 500 began after %v, %d answers", at[499], s.len())
		}
	})
}

// TestRequestsToBlame: requests that fail again, though the engine has answered others in between, are no reason for a rest either, even
// when they follow each other.
func TestRequestsToBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var work time.Duration
		f := &fake{script: func(_ context.Context, req engines.Request, n int, _ func()) (engines.Response, error) {
			took := time.Second
			if n == 16 {
				took = time.Hour // all that failed is due afterwards
			}
			work += took
			time.Sleep(took)
			if strings.HasSuffix(last(req), "evil") {
				return engines.Response{}, status(500, "oops")
			}
			return answer(req), nil
		}}
		texts := make([]string, 200)
		for i := range texts {
			texts[i] = fmt.Sprintf("%04d good", i)
			if i%2 == 0 && i < 16 {
				texts[i] = fmt.Sprintf("%04d evil", i)
			}
		}
		s := newStore(t)
		d := newDispatcher(t, dispatch.Config{Concurrency: 1, Attempts: 2, RetryWait: time.Minute, RetryShare: 1}, f)
		if err := d.Run(t.Context(), calls(texts...), s.add); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != work || s.len() != 200 || len(s.failed()) != 8 {
			t.Errorf("%v for %v of work, %d answers, failures %v", took, work, s.len(), s.failed())
		}
	})
}
