package cloudcache

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultMaxEntries is how many cache entries are remembered if [Options] says nothing, in all tenants together. One
// takes some 170 bytes.
const DefaultMaxEntries = 16384

// Options configures a [Provider].
type Options struct {
	// Provider is anthropic, openai or minimax.
	Provider string
	// Key is sent in place of the clients' own keys; empty: theirs pass.
	Key string
	// Base is the provider's address, to which request paths are appended; nil: its usual address.
	Base *url.URL

	// Extended asks for entries that stay longer: an hour (anthropic, and a write costs 2 times the input instead of
	// 1.25) or 24 hours (openai; not all of its models accept that). minimax has no such thing, and it is ignored.
	Extended bool

	// MaxEntries bounds what is remembered; 0: [DefaultMaxEntries].
	MaxEntries int
	// Prices by model; * in a name stands for any text. The name with the most other characters counts.
	Prices map[string]Price
	// Currency is what amounts are labelled with, such as USD; nothing is converted.
	Currency string
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// vendor is what is known of a provider.
type vendor struct {
	base      string
	protocol  protocol
	ttl, long time.Duration // long: with Extended; 0: there is none
	ratio     Price         // to the price of plain input; 0: differs by model
}

// protocol is the form of requests and of the reported usage.
type protocol uint8

const (
	messages protocol = iota + 1 // Anthropic's /v1/messages
	openAI                       // /v1/chat/completions and /v1/responses
)

var vendors = map[string]vendor{
	"anthropic": {
		base: "https://api.anthropic.com", protocol: messages, ttl: 5 * time.Minute, long: time.Hour,
		ratio: Price{CacheWrite: 1.25, CacheWrite1h: 2, CacheRead: 0.1},
	},
	"minimax": {
		base: "https://api.minimax.io/anthropic", protocol: messages, ttl: 5 * time.Minute,
		ratio: Price{CacheWrite: 1.25, CacheRead: 0.1},
	},
	"openai": {
		base: "https://api.openai.com", protocol: openAI, ttl: time.Hour, long: 24 * time.Hour,
		ratio: Price{CacheWrite: 1.25}, // of the models that charge for it and therefore report it
	},
}

// Validate names the first field that makes no sense, and its value unless that is secret. [New] calls it.
func (o Options) Validate() error {
	if _, ok := vendors[o.Provider]; !ok {
		return fmt.Errorf("provider %q: want anthropic, openai or minimax", o.Provider)
	}
	if o.MaxEntries < 0 {
		return fmt.Errorf("max entries %d: must not be negative", o.MaxEntries)
	}
	for i := range len(o.Key) {
		if c := o.Key[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("key: byte %d of %d cannot stand in a header", i, len(o.Key))
		}
	}
	if o.Base != nil {
		if err := checkBase(o.Base); err != nil {
			return fmt.Errorf("base %q: %w", o.Base.Redacted(), err)
		}
	}
	return validate(o.Prices)
}

// validate names the first price that makes no sense.
func validate(prices map[string]Price) error {
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if err := prices[name].validate(); err != nil {
			return fmt.Errorf("price of %q: %w", name, err)
		}
		if strings.TrimSpace(name) != name || name == "" {
			return fmt.Errorf("price of %q: no name of a model", name)
		}
	}
	return nil
}

func checkBase(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want http or https")
	case u.Host == "":
		return errors.New("has no host")
	case u.User != nil:
		return errors.New("must not carry a password")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("ends with its path")
	}
	return nil
}

func (p Price) validate() error {
	for _, part := range []struct {
		name  string
		money float64
	}{
		{"input", p.Input},
		{"cache write", p.CacheWrite},
		{"cache write 1h", p.CacheWrite1h},
		{"cache read", p.CacheRead},
		{"output", p.Output},
	} {
		if !(part.money >= 0) || math.IsInf(part.money, 1) { // also not a number
			return fmt.Errorf("%s %v: want an amount of money", part.name, part.money)
		}
	}
	if p.Input == 0 {
		return fmt.Errorf("input %v: is missing", p.Input)
	}
	return nil
}
