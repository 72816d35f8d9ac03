package serve_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/serve"
)

func TestPrices(t *testing.T) {
	got, err := serve.Decode([]byte("currency: USD\nprices:\n- {model: big-*, input: 3, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6, output: 15}\n- model: \"*\"\n  input: 0.25\n"), serve.Default())
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	want := serve.Default()
	want.Currency = "USD"
	want.Prices = []serve.Price{{Model: "big-*", Input: 3, CacheRead: .3, CacheWrite: 3.75, CacheWrite1h: 6, Output: 15}, {Model: "*", Input: .25}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadPrices(t *testing.T) {
	good := serve.Price{Model: "m", Input: 1}
	for name, c := range map[string]struct {
		prices   []serve.Price
		currency string
		want     []string
	}{
		"no model":      {[]serve.Price{{Input: 1}}, "USD", []string{`prices[0].model ""`}},
		"spaces":        {[]serve.Price{{Model: " m", Input: 1}}, "USD", []string{`prices[0].model " m"`}},
		"twice":         {[]serve.Price{good, good}, "USD", []string{`prices[1].model "m"`, "prices[0]"}},
		"no input":      {[]serve.Price{{Model: "m"}}, "USD", []string{"prices[0].input 0", "missing"}},
		"negative":      {[]serve.Price{good, {Model: "n", Input: 1, CacheRead: -1}}, "USD", []string{"prices[1].cache_read -1"}},
		"no number":     {[]serve.Price{{Model: "m", Input: math.NaN(), Output: math.Inf(1)}}, "USD", []string{"prices[0].input NaN", "prices[0].output +Inf"}},
		"no currency":   {[]serve.Price{good}, "", []string{`currency ""`, "USD"}},
		"odd currency":  {[]serve.Price{good}, "U S D", []string{`currency "U S D"`}},
		"long currency": {nil, "a currency that nobody knows", []string{"currency"}},
	} {
		cfg := serve.Default()
		cfg.Prices, cfg.Currency = c.prices, c.currency
		err := cfg.Validate()
		if !errors.Is(err, serve.ErrBadConfig) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		contains(t, name, err.Error(), c.want...)
	}
	cfg := serve.Default()
	cfg.Currency = "USD"
	if w := cfg.Warnings(); len(w) == 0 || w[0] != "currency has no effect without prices" {
		t.Errorf("warnings %q", w)
	}
}
