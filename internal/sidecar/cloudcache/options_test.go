package cloudcache_test

import (
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

func TestOptionsErrors(t *testing.T) {
	price := func(p cloudcache.Price) map[string]cloudcache.Price { return map[string]cloudcache.Price{"m*": p} }
	for want, o := range map[string]cloudcache.Options{
		`provider ""`:                     {},
		`provider "bedrock"`:              {Provider: "bedrock"},
		`base "ftp://h": want http`:       {Provider: "openai", Base: address(t, "ftp://h")},
		`base "/v1"`:                      {Provider: "openai", Base: address(t, "/v1")},
		`base "http:///v1": has no host`:  {Provider: "openai", Base: address(t, "http:///v1")},
		`base "http://h?a=b"`:             {Provider: "openai", Base: address(t, "http://h?a=b")},
		`base "http://u:xxxxx@h"`:         {Provider: "openai", Base: address(t, "http://u:secret@h")},
		`key: byte 6 of 9`:                {Provider: "openai", Key: "secret\r\nX"},
		`max entries -1`:                  {Provider: "openai", MaxEntries: -1},
		`price of "m*": input 0`:          {Provider: "openai", Prices: price(cloudcache.Price{Output: 1})},
		`price of "m*": output -1`:        {Provider: "openai", Prices: price(cloudcache.Price{Input: 1, Output: -1})},
		`price of "m*": cache read NaN`:   {Provider: "openai", Prices: price(cloudcache.Price{Input: 1, CacheRead: math.NaN()})},
		`price of "m*": cache write +Inf`: {Provider: "openai", Prices: price(cloudcache.Price{Input: 1, CacheWrite: math.Inf(1)})},
		`price of "": no name`:            {Provider: "openai", Prices: map[string]cloudcache.Price{"": {Input: 1}}},
	} {
		_, err := cloudcache.New(o)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}

func address(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestProvider(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com", "minimax": "https://api.minimax.io/anthropic",
	} {
		p := provider(t, cloudcache.Options{Provider: name})
		if got := p.Base().String(); got != want || p.Name() != name {
			t.Errorf("%s at %s, want %s", p.Name(), got, want)
		}
		if h := p.Headers(); len(h) > 0 {
			t.Errorf("%s: headers %v without a key", name, h)
		}
	}
}

// A provider may be asked at another address, which the caller may change meanwhile.
func TestBase(t *testing.T) {
	base := address(t, "http://localhost:1/api")
	p := provider(t, cloudcache.Options{Provider: "anthropic", Base: base})
	base.Path = "/changed"
	if got := p.Base().String(); got != "http://localhost:1/api" {
		t.Errorf("base %s", got)
	}
}
