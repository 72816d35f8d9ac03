package cloudcache_test

import (
	"math"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

// prices of the tests; they are made up.
var prices = map[string]cloudcache.Price{"m": {Input: 10, Output: 50}}

// What answers report is added up for each tenant and for all, with the money that it is.
func TestAccounts(t *testing.T) {
	b := newBench(t, cloudcache.Options{Provider: "anthropic", Prices: prices, Currency: "XTS"})
	answered := func(tenant, model string, u cloudcache.Usage) {
		body := conversation("a")
		if model != "m" {
			body = []byte(`{"model":"` + model + `","messages":[{"role":"user","content":"q"}]}`)
		}
		b.p.Answered(b.p.Sent(tenant, path, b.p.Mark(path, body)), u)
	}
	answered("one", "m", cloudcache.Usage{Prompt: 100, Written: 100_000, Written1h: 40_000, Output: 1000})
	answered("one", "m", cloudcache.Usage{Prompt: 200, Read: 100_000, Output: 2000})
	answered("one", "other", cloudcache.Usage{Prompt: 300, Read: 1, Output: 3})
	answered("one", "m", cloudcache.Usage{Prompt: 5, Read: -1, Written: -1, Output: 5})
	answered("two", "m", cloudcache.Usage{Prompt: 7, Read: 8, Output: -1})

	// 10 a million: 100 + 60,000 × 1.25 + 40,000 × 2 + 1,000 × 5 tokens' worth; then 200 + 100,000 × 0.1 + 2,000 × 5.
	first, second := (100+75_000+80_000+5000)*10e-6, (200+10_000+10_000)*10e-6
	saved := (-60_000*.25 - 40_000 + 100_000*.9) * 10e-6
	one := cloudcache.Account{
		Requests: 3, Silent: 1, Plain: 600, Read: 100_001, Written: 60_000, Long: 40_000, Output: 3003,
		Cost: new(first + second), CostRequests: 2, Saved: &saved, SavedRequests: 2, Currency: "XTS",
	}
	two := cloudcache.Account{Requests: 1, Plain: 7, Read: 8, Cost: new(0.0), Saved: new(8 * 9e-6), SavedRequests: 1, Currency: "XTS"}
	all := cloudcache.Account{
		Requests: 4, Silent: 1, Plain: 607, Read: 100_009, Written: 60_000, Long: 40_000, Output: 3003,
		Cost: one.Cost, CostRequests: 2, Saved: new(saved + 8*9e-6), SavedRequests: 3, Currency: "XTS",
	}
	near := cmpopts.EquateApprox(0, 1e-9)
	for name, c := range map[string]struct{ want, got cloudcache.Account }{
		"one": {one, b.p.Stats("one").Account}, "two": {two, b.p.Stats("two").Account}, "all": {all, b.p.Total().Account},
		"an unknown one": {cloudcache.Account{Cost: new(0.0), Saved: new(0.0), Currency: "XTS"}, b.p.Stats("three").Account},
	} {
		if diff := cmp.Diff(c.want, c.got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	want := []cloudcache.Tenant{{Name: "two", Account: two}, {Name: "one", Account: one}}
	if diff := cmp.Diff(want, b.p.Tenants(), near); diff != "" {
		t.Errorf("tenants, the last one first (-want +got):\n%s", diff)
	}
}

// OpenAI's prompt contains what was read and written; what it does not say it wrote was plain input.
func TestOpenAIAccount(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "openai"})
	h := p.Sent("", chat, []byte(`{"model":"m","messages":[{"role":"user","content":"q"}]}`))
	p.Answered(h, cloudcache.Usage{Prompt: 2000, Read: 1024, Written: -1, Output: 1})
	p.Answered(h, cloudcache.Usage{Prompt: 2000, Read: 1024, Written: 76, Output: 1})
	want := cloudcache.Account{Requests: 2, Plain: 976 + 900, Read: 2048, Written: 76, Output: 2}
	if diff := cmp.Diff(want, p.Total().Account); diff != "" {
		t.Error(diff)
	}
}

// The sums are right if several add to them at the same time.
func TestConcurrentAccounts(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "anthropic", Prices: prices})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				p.Answered(p.Sent("t", path, conversation("a")), cloudcache.Usage{Prompt: 1, Read: 1_000_000, Output: 1})
				p.Tenants()
				p.Stats("t")
			}
		})
	}
	wg.Wait()
	if a := p.Total().Account; a.Requests != 800 || math.Abs(*a.Saved-800*9) > 1e-6 {
		t.Errorf("%+v, saved %v", a, *a.Saved)
	}
}

func TestRates(t *testing.T) {
	r := cloudcache.NewRates(map[string]cloudcache.Price{"*": {Input: 2}, "big-*": {Input: 8, CacheRead: 1}})
	for model, want := range map[string]float64{"": 2, "small": 2, "big-1": 8 + 3} {
		p, ok := r.Of(model)
		if got := p.Prompt(1_000_000, 3_000_000); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", model, got, ok, want)
		}
	}
	if _, ok := (cloudcache.Rates{}).Of("m"); ok {
		t.Error("a price from nowhere")
	}
}

// A prompt costs what the request does without its answer, and needs no price of answers.
func TestPromptCost(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "anthropic", Prices: map[string]cloudcache.Price{"m": {Input: 10}}})
	u := cloudcache.Usage{Prompt: 100_000, Read: 1_000_000, Output: 7}
	if _, ok := p.Cost("m", u); ok {
		t.Error("the answer has no price")
	}
	u.Output = 0
	if got, ok := p.Cost("m", u); !ok || math.Abs(got-2) > 1e-9 {
		t.Errorf("%v %v, want 2", got, ok)
	}
	for name, c := range map[string]struct {
		model string
		u     cloudcache.Usage
	}{
		"no price": {"other", u}, "no prompt": {"m", usage{Prompt: -1, Read: 1}},
		"nothing of the cache": {"m", usage{Prompt: 1, Read: -1, Written: -1}},
	} {
		if got, ok := p.Cost(c.model, c.u); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
