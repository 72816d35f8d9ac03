package cloudcache

import (
	"net/url"
	"time"
)

// DefaultMaxEntries is how many cache entries are remembered if [Options] says nothing, in all tenants together. One
// takes some 170 bytes.
const DefaultMaxEntries = 16384

// Options configures a [Provider]. Package settings checks what users give.
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
