package cloudcache_test

import (
	"math"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

type (
	price = cloudcache.Price
	usage = cloudcache.Usage
)

func TestMoney(t *testing.T) {
	given := price{Input: 2, CacheWrite: 3, CacheWrite1h: 5, CacheRead: 1, Output: 10}
	const million = 1_000_000
	unknown := math.NaN()
	for _, c := range []struct {
		name        string
		provider    string
		extended    bool
		price       price
		usage       usage
		saved, cost float64
	}{
		{
			"as given", "anthropic", false, given,
			usage{Prompt: million, Read: million, Written: million, Output: million},
			0, 2 + 1 + 3 + 10,
		},
		{
			"ratios", "anthropic", false,
			price{Input: 4, Output: 1},
			usage{Prompt: million, Read: million, Written: million},
			3.6 - 1, 4 + 0.4 + 5,
		},
		{"written and never read", "anthropic", false, price{Input: 4}, usage{Written: million}, -1, 5},
		{"for an hour", "anthropic", true, price{Input: 4}, usage{Written: million}, -4, 8},
		{
			"the client's own hour", "anthropic", false,
			price{Input: 4},
			usage{Written: million, Written1h: million / 4},
			-0.75 - 1, 3.75 + 2,
		},
		{"minimax has no hour", "minimax", true, price{Input: 4}, usage{Read: million, Written: million}, 3.6 - 1, 0.4 + 5},
		{
			"openai writes free of charge unless it says so", "openai", false, given,
			usage{Prompt: 3 * million, Read: million, Written: -1},
			1, 2*2 + 1,
		},
		{"openai says so", "openai", true, given, usage{Prompt: 3 * million, Read: million, Written: million}, 0, 2 + 1 + 3},
		{
			"openai's price of reading differs by model", "openai", false,
			price{Input: 4},
			usage{Prompt: 3, Read: 1, Written: -1},
			unknown, unknown,
		},
		{"but is not needed if nothing was read", "openai", false, price{Input: 4}, usage{Prompt: million, Written: -1}, 0, 4},
		{"nothing is known of the cache", "anthropic", false, given, usage{Prompt: 3, Read: -1, Written: -1}, unknown, unknown},
		{"reads are known, writes are not", "anthropic", false, given, usage{Prompt: 3, Written: -1}, unknown, unknown},
		{"the answer has no price", "anthropic", false, price{Input: 4}, usage{Output: 1}, 0, unknown},
		{"the prompt is unknown", "anthropic", false, given, usage{Prompt: -1, Read: million}, 1, unknown},
		{"the answer is unknown", "anthropic", false, given, usage{Read: million, Output: -1}, 1, unknown},
		{"no price", "anthropic", false, price{}, usage{}, unknown, unknown},
	} {
		o := cloudcache.Options{Provider: c.provider, Extended: c.extended}
		if c.price != (price{}) {
			o.Prices = map[string]price{"m": c.price}
		}
		p := provider(t, o)
		for _, x := range []struct {
			what string
			want float64
			of   func(string, usage) (float64, bool)
		}{{"saved", c.saved, p.Saved}, {"cost", c.cost, p.Cost}} {
			got, ok := x.of("m", c.usage)
			if math.IsNaN(x.want) {
				if ok {
					t.Errorf("%s: %s %v, want it unknown", c.name, x.what, got)
				}
				continue
			}
			if !ok || math.Abs(got-x.want) > 1e-9 {
				t.Errorf("%s: %s %v %v, want %v", c.name, x.what, got, ok, x.want)
			}
		}
	}
}

// The pattern that says most of a model's name counts.
func TestPrices(t *testing.T) {
	p := provider(t, cloudcache.Options{Provider: "openai", Prices: map[string]price{
		"*": {Input: 1, CacheRead: 1}, "gpt-*": {Input: 2, CacheRead: 1}, "gpt-5*": {Input: 3, CacheRead: 1},
		"gpt-5":  {Input: 4, CacheRead: 1},
		"*-mini": {Input: 5, CacheRead: 1}, "gpt-*-mini-*-x": {Input: 6, CacheRead: 1},
	}})
	for model, want := range map[string]float64{
		"": 0, "other": 0, "gpt-4": 1, "gpt-5.2": 2, "gpt-5": 3, "o-mini": 4, "gpt-4-mini": 4, "gpt-5-mini": 4, "-mini": 4,
		"a/gpt-5": 0, "gpt-4-mini-2-x": 5, "gpt-4-mini-x": 1,
	} {
		got, ok := p.Saved(model, usage{Read: 1_000_000})
		if !ok || got != want {
			t.Errorf("%q: %v %v, want %v", model, got, ok, want)
		}
	}
	p = provider(t, cloudcache.Options{Provider: "openai", Prices: map[string]price{"a*a": {Input: 1}}})
	for model, want := range map[string]bool{"a": false, "aa": true, "aba": true, "ab": false, "A": false} {
		if _, ok := p.Saved(model, usage{}); ok != want {
			t.Errorf("%q is matched: %v", model, ok)
		}
	}
}
