package pause_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Hour) || !pause.Until(t.Context(), began.Add(3*time.Hour)) || time.Since(began) != 3*time.Hour {
			t.Errorf("waited for %v", time.Since(began))
		}
		if !pause.Until(t.Context(), began) || time.Since(began) != 3*time.Hour {
			t.Error("waited for what is past")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if pause.For(ctx, time.Hour) || time.Since(began) != 3*time.Hour+time.Minute {
			t.Errorf("the context did not end it: %v", time.Since(began))
		}
		if pause.For(ctx, 0) {
			t.Error("a context that has ended does not count where there is no wait")
		}
	})
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pause.Retries
		for i, most := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
			most *= time.Millisecond
			began := time.Now()
			if !r.Wait(t.Context()) || time.Since(began) < most/2 || time.Since(began) >= most {
				t.Errorf("wait %d: %v, want %v to %v", i, time.Since(began), most/2, most)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "7": 7 * time.Second, "-99999999999": 0, "99999999999": math.MaxInt32 * time.Second,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := pause.RetryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
