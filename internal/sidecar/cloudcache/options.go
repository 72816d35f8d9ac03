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
	// Provider is anthropic, openai or minimax, or any other name together with Like and Base.
	Provider string
	// Like is the built-in provider whose protocol, times and ratios another one follows; empty for a built-in one.
	Like string
	// Key is sent in place of the clients' own keys; empty: theirs pass.
	Key string
	// Base is the provider's address, to which request paths are appended; nil: the address of a built-in provider.
	Base *url.URL

	// Extended asks for entries that stay longer: an hour (anthropic, and a write costs 2 times the input instead of
	// 1.25) or 24 hours (openai; not all of its models accept that). minimax has no such thing, and it is ignored.
	Extended bool
	// TTL is how long an unread entry stays if nothing longer was asked for; 0: as the built-in provider has it.
	TTL time.Duration
	// CacheKey gives OpenAI requests a prompt_cache_key, the same for a tenant's requests with the same system text, so
	// that they meet in one cache. OpenAI spreads keys with more than about 15 requests a minute again.
	CacheKey bool

	// MaxEntries bounds what is remembered; 0: [DefaultMaxEntries].
	MaxEntries int
	// Prices by model; * in a name stands for any text. The name with the most other characters counts.
	Prices map[string]Price
	// Currency is what amounts are labelled with, such as USD; nothing is converted.
	Currency string
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}

// vendor is a built-in provider.
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

func vendorOf(name string) (v vendor, ok bool) {
	switch name {
	case "anthropic":
		return vendor{
			base: "https://api.anthropic.com", protocol: messages, ttl: 5 * time.Minute, long: time.Hour,
			ratio: Price{CacheWrite: 1.25, CacheWrite1h: 2, CacheRead: 0.1},
		}, true
	case "minimax":
		return vendor{
			base: "https://api.minimax.io/anthropic", protocol: messages, ttl: 5 * time.Minute,
			ratio: Price{CacheWrite: 1.25, CacheRead: 0.1},
		}, true
	case "openai":
		return vendor{
			base: "https://api.openai.com", protocol: openAI, ttl: time.Hour, long: 24 * time.Hour,
			ratio: Price{CacheWrite: 1.25}, // of the models that charge for it and therefore report it
		}, true
	}
	return vendor{}, false
}

// Validate names the first field that makes no sense, and its value unless that is secret. [New] calls it.
func (o Options) Validate() error {
	like := o.Provider
	if o.Like != "" {
		like = o.Like
	}
	_, builtIn := vendorOf(o.Provider)
	if _, ok := vendorOf(like); !ok {
		if o.Like != "" {
			return fmt.Errorf("like %q: want anthropic, openai or minimax", o.Like)
		}
		return fmt.Errorf("provider %q: want anthropic, openai or minimax, or say which of them it is like", o.Provider)
	}
	switch {
	case o.Provider == "":
		return fmt.Errorf("provider %q: has no name", o.Provider)
	case builtIn && o.Like != "" && o.Like != o.Provider:
		return fmt.Errorf("like %q: %s is built in", o.Like, o.Provider)
	case !builtIn && o.Base == nil:
		return fmt.Errorf("base: %s has no address", o.Provider)
	case o.TTL < 0:
		return fmt.Errorf("ttl %v: must not be negative", o.TTL)
	case o.MaxEntries < 0:
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
