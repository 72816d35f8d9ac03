package redisorders_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/ragpilot/ragpilot/internal/sidecar/redisorders"
)

func TestOptions(t *testing.T) {
	for _, o := range []redisorders.Options{
		{},
		{URL: "http://localhost"},
		{URL: "localhost:6379"},
		{URL: "redis://localhost", TTL: -1},
		{URL: "redis://localhost", TTL: time.Microsecond},
		{URL: "redis://localhost", Budget: -1},
		{URL: "redis://localhost", Failures: -1},
		{URL: "redis://localhost", Pause: -1},
		{URL: "redis://localhost/one"},
		{URL: "redis://localhost/?unheard_of=1"},
		{URL: "redis://localhost/?budget=20"},
		{URL: "redis://localhost/?budget=0s"},
		{URL: "redis://localhost/?budget=20ms&unheard_of=1"},
	} {
		if s, err := redisorders.Open(o); err == nil {
			_ = s.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestBudgetOfURL: the URL's budget counts where the options have none, and the rest of the URL stays what it was.
func TestBudgetOfURL(t *testing.T) {
	fake := miniredis.RunT(t)
	fake.RequireAuth("a p@ss/w?rd")
	const password = ":a%20p%40ss%2Fw%3Frd@"
	if err := open(t, redisorders.Options{URL: "redis://" + password + fake.Addr() + "/1?budget=1m"}).Ping(t.Context()); err != nil {
		t.Errorf("the URL was changed: %v", err)
	}
	g := newGate(t, fake.Addr(), answers)
	took := func(o redisorders.Options) time.Duration {
		begun := time.Now()
		if _, ok := open(t, o).Get(t.Context(), "", key(1)); ok {
			t.Error("an answer, though none was let through")
		}
		return time.Since(begun)
	}
	const budget = 200 * time.Millisecond
	if d := took(redisorders.Options{URL: "redis://" + password + g.addr + "?budget=" + budget.String()}); d < budget {
		t.Errorf("waited for %v", d)
	}
	if d := took(redisorders.Options{URL: "redis://" + password + g.addr + "?budget=1h", Budget: time.Millisecond}); d > time.Minute {
		t.Errorf("waited for %v, though the options say another budget", d)
	}
}

// FuzzURL: wherever a password stands in whatever is given as a URL, the error does not show it.
func FuzzURL(f *testing.F) {
	const word = "pa55w0rd"
	for _, u := range []string{
		"redis://:%s@localhost", "redis://user:%s@localhost:port", "redis://:12/%s@host", "redis://:%%zz%s@host",
		"rediss://:x?%s@host", "redis://:x#%s@host:1", "unix://:%s@/tmp/redis.sock?db=x", "%s", "redis://a:b/%s", ":%s",
		"redis://host/0?db=%s", "redis://host/0?%s=1", "redis://host?budget=%s", "%s://host", "redis://[%s", "redis://:\x7f%s@host",
	} {
		before, after, _ := strings.Cut(fmt.Sprintf(u, word), word)
		f.Add(before, after)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		given := before + word + after
		s, err := redisorders.Open(redisorders.Options{URL: given})
		if err != nil {
			if strings.Contains(strings.ToLower(err.Error()), word) {
				t.Fatalf("%q: %v", given, err)
			}
			return
		}
		_ = s.Close()
		if _, err := url.Parse(given); err != nil {
			t.Fatalf("%q was accepted: %v", given, err)
		}
	})
}
