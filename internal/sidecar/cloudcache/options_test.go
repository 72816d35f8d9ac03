package cloudcache_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
)

func TestOptionsErrors(t *testing.T) {
	for want, o := range map[string]cloudcache.Options{
		`provider ""`:             {},
		`provider "bedrock"`:      {Provider: "bedrock"},
		`base "http://u:xxxxx@h"`: {Provider: "openai", Base: must(url.Parse("http://u:secret@h"))},
	} {
		if _, err := cloudcache.New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
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
	base := must(url.Parse("http://localhost:1/api"))
	p := provider(t, cloudcache.Options{Provider: "anthropic", Base: base})
	base.Path = "/changed"
	if got := p.Base().String(); got != "http://localhost:1/api" {
		t.Errorf("base %s", got)
	}
}
