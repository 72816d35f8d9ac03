package settings_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestPrices(t *testing.T) {
	got, err := settings.Decode(
		[]byte(
			"currency: USD\nprices:\n- {model: big-*, input: 3, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6, output: 15}\n- "+
				"model: \"*\"\n  input: 0.25\n",
		),
		settings.Default(),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	want := settings.Default()
	want.Currency = "USD"
	want.Prices = []settings.Price{
		{Model: "big-*", Input: 3, CacheRead: .3, CacheWrite: 3.75, CacheWrite1h: 6, Output: 15},
		{Model: "*", Input: .25},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadPrices(t *testing.T) {
	good := settings.Price{Model: "m", Input: 1}
	for name, c := range map[string]struct {
		prices   []settings.Price
		currency string
		want     []string
	}{
		"no model": {[]settings.Price{{Input: 1}}, "USD", []string{`prices[0].model ""`}},
		"spaces":   {[]settings.Price{{Model: " m", Input: 1}}, "USD", []string{`prices[0].model " m"`}},
		"twice":    {[]settings.Price{good, good}, "USD", []string{`prices[1].model "m"`, "prices[0]"}},
		"no input": {[]settings.Price{{Model: "m"}}, "USD", []string{"prices[0].input 0", "missing"}},
		"negative": {[]settings.Price{good, {Model: "n", Input: 1, CacheRead: -1}}, "USD", []string{"prices[1].cache_read -1"}},
		"no number": {
			[]settings.Price{{Model: "m", Input: math.NaN(), Output: math.Inf(1)}},
			"USD",
			[]string{"prices[0].input NaN", "prices[0].output +Inf"},
		},
		"no currency":   {[]settings.Price{good}, "", []string{`currency ""`, "USD"}},
		"odd currency":  {[]settings.Price{good}, "U S D", []string{`currency "U S D"`}},
		"long currency": {nil, "a currency that nobody knows", []string{"currency"}},
	} {
		cfg := settings.Default()
		cfg.Prices, cfg.Currency = c.prices, c.currency
		err := cfg.Validate()
		if !errors.Is(err, settings.ErrBadConfig) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		testkit.Contains(t, name, err.Error(), c.want...)
	}
	cfg := settings.Default()
	cfg.Currency = "USD"
	if w := cfg.Warnings(); len(w) == 0 || w[0] != "currency has no effect without prices" {
		t.Errorf("warnings %q", w)
	}
}
