package doctor

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Defaults of [Config].
const (
	DefaultProbeTokens = 512
	DefaultWait        = 5 * time.Second
	DefaultTimeout     = 2 * time.Minute
)

// Bounds of [Config].ProbeTokens: below, some blocks are longer than the prompt; above, an engine works for long.
const (
	MinProbeTokens = 64
	MaxProbeTokens = 16384
)

// ErrConfig is wrapped by all errors of [Run]: they are about its configuration. What is wrong with the server is no error.
var ErrConfig = errors.New("cannot examine")

// Counter is a way of counting tokens that is compared with the engine's.
type Counter struct {
	Name      string
	Tokenizer contextpilot.Tokenizer
}

// Config says what to examine. Only Engine is needed.
type Config struct {
	// Engine is the server's root, with or without /v1.
	Engine string
	// Model is the model that requests will name; empty: the first that is served.
	Model  string
	APIKey string
	// Budget is how many tokens prompts are planned to have; 0: not known.
	Budget int

	// Prefix is what all requests share: a text, or the body of a chat, of which the last message is left out if it is the
	// user's. Its tokens are compared with a cache block. Only the server's tokenizer sees it; it is not sent as a prompt. Empty:
	// not compared.
	Prefix string

	// Events and Replay are the ZeroMQ endpoints of the engine's publisher as a subscriber reaches them; empty: the
	// server is asked. Topic is a prefix of the messages' topic.
	Events, Replay, Topic string

	// Serve is the root of a `ragpilot serve` in front of the engine, at its main or its admin address; empty: none.
	// ServeAPIKey is the key that it asks for; empty: APIKey.
	Serve, ServeAPIKey string

	// SlotDir is the folder of a llama.cpp server's slot files, its --slot-save-path; empty: not examined.
	SlotDir string

	// NoProbe sends no prompts.
	NoProbe bool
	// ProbeTokens is about how long a prompt is. It grows to four cache blocks if the server reports their size, and
	// shrinks to half of the model's window. 0: DefaultProbeTokens.
	ProbeTokens int
	// Counters are compared with the engine's count; nil: [contextpilot.Estimate].
	Counters []Counter

	// Wait bounds the wait for a connection to the events, for an answer to replay, and for the events of a probe. 0:
	// DefaultWait. Timeout bounds each prompt; 0: DefaultTimeout.
	Wait, Timeout time.Duration

	// Transport carries HTTP; nil: one of its own, which uses the proxy of the environment.
	Transport http.RoundTripper
	// Nonce makes what prompts begin with, another text each time; nil: random.
	Nonce func() string
	// Now is the clock; nil: time.Now.
	Now func() time.Time

	prefix *prefix // Prefix, read
}

// withDefaults checks a configuration and fills it in.
func (c Config) withDefaults() (Config, error) {
	if err := checkURL("Engine", c.Engine); err != nil {
		return c, err
	}
	if c.Serve != "" {
		if err := checkURL("Serve", c.Serve); err != nil {
			return c, err
		}
	}
	if c.Budget < 0 {
		return c, fmt.Errorf("%w: Budget %d is negative", ErrConfig, c.Budget)
	}
	if c.Replay != "" && c.Events == "" {
		return c, fmt.Errorf("%w: Replay %q without Events", ErrConfig, c.Replay)
	}
	if c.Wait < 0 || c.Timeout < 0 {
		return c, fmt.Errorf("%w: Wait %v or Timeout %v is negative", ErrConfig, c.Wait, c.Timeout)
	}
	if c.Prefix != "" {
		var err error
		if c.prefix, err = parsePrefix(c.Prefix); err != nil {
			return c, fmt.Errorf("%w: Prefix: %w", ErrConfig, err)
		}
	}
	c.ProbeTokens = cmp.Or(c.ProbeTokens, DefaultProbeTokens)
	if c.ProbeTokens < MinProbeTokens || c.ProbeTokens > MaxProbeTokens {
		return c, fmt.Errorf("%w: ProbeTokens %d: want %d to %d", ErrConfig, c.ProbeTokens, MinProbeTokens, MaxProbeTokens)
	}
	c.Wait, c.Timeout = cmp.Or(c.Wait, DefaultWait), cmp.Or(c.Timeout, DefaultTimeout)
	c.ServeAPIKey = cmp.Or(c.ServeAPIKey, c.APIKey)
	if c.Counters == nil {
		c.Counters = []Counter{{"estimate", contextpilot.Estimate{}}}
	}
	if c.Nonce == nil {
		c.Nonce = rand.Text
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

func checkURL(field, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %s %q: want http://HOST:PORT", ErrConfig, field, redacted(text))
	}
	return nil
}

// redacted is a URL without its password.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
