package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// IDPlace is a set of the places in which a request's ID is sent.
type IDPlace uint8

const (
	// IDHeader sends the header X-Request-Id, which vLLM prefers to the body.
	IDHeader IDPlace = 1 << iota
	// IDRequest sends the body member request_id, for vLLM behind a proxy that drops headers.
	IDRequest
	// IDRid sends the body member rid, the only place that SGLang reads.
	IDRid
	// IDNowhere sends no ID. llama.cpp takes none (and ignores one).
	IDNowhere

	// IDEverywhere is the default. Self-hosted engines ignore what they do not know; hosted services may
	// refuse unknown members of the body and want IDHeader alone.
	IDEverywhere = IDHeader | IDRequest | IDRid
)

// Defaults of [Config].
const (
	DefaultConnect        = 10 * time.Second
	DefaultHeader         = 5 * time.Minute
	DefaultIdle           = 2 * time.Minute
	DefaultRetries        = 2
	DefaultRetryWait      = 250 * time.Millisecond
	DefaultMaxRetryWait   = 15 * time.Second
	DefaultMaxEventBytes  = 4 << 20
	DefaultMaxAnswerBytes = 32 << 20
)

// Timeouts bound the waits of one attempt. 0 means the default, a negative duration no limit. There is no
// limit on the whole answer: give Generate a context with a deadline.
type Timeouts struct {
	// Connect bounds dialling and the TLS handshake. It has no effect with a Config.HTTPClient.
	Connect time.Duration
	// Header bounds the time from sending the request to the answer's status line. Some engines send it at
	// once, others only after queueing and prefill, so it must cover both.
	Header time.Duration
	// Idle bounds a single wait for more bytes of the answer. Time spent in the caller's onText does not count.
	Idle time.Duration
}

// Config describes one engine. Only BaseURL is needed.
type Config struct {
	// BaseURL is the server's API root, for example http://127.0.0.1:8000/v1. Without a path, /v1 is added.
	BaseURL string
	// Model is used for requests that name none. Empty: the member is left out, and the server decides.
	Model string
	// APIKey is sent as a bearer token. Empty: no Authorization header.
	APIKey string
	// Label is what Name returns; empty: "openai:" and the BaseURL.
	Label string
	// Scope is copied into the events of Subscribe.
	Scope contextpilot.Scope

	// HTTPClient replaces the engine's own client, which keeps up to 64 idle connections. Its Timeout field cuts
	// long answers, so leave that 0.
	HTTPClient *http.Client
	// Timeouts bound each attempt.
	Timeouts Timeouts
	// Retries is how often a request is sent again if it could not be delivered. 0: DefaultRetries; negative: never.
	Retries int
	// RetryWait is the wait before the first retry; it doubles for each further one. The real wait is drawn
	// between half of that and all of it, so that clients refused together do not come back together.
	RetryWait time.Duration
	// MaxRetryWait caps a wait. A server whose Retry-After asks for more is not asked again.
	MaxRetryWait time.Duration

	// IDs says where the request's ID is sent. 0: IDEverywhere.
	IDs IDPlace
	// Extra holds further members of every request body. They win over those that the engine sets, and those of
	// a Request win over these. An empty value (not null) removes the member of that name.
	Extra map[string]json.RawMessage
	// Header holds further headers of every request; the same order of precedence.
	Header http.Header

	// MaxEventBytes bounds one line, and one event, of the stream.
	MaxEventBytes int
	// MaxAnswerBytes bounds the text of one answer, so that a server that never stops cannot fill the memory.
	MaxAnswerBytes int

	// Now is the clock of TTFT and Total; nil: time.Now. Waits always use real time.
	Now func() time.Time
	// Jitter returns numbers in [0,1) for the retry waits; nil: random. It is called concurrently.
	Jitter func() float64
}

// withDefaults returns a copy of c that shares nothing with it and has every optional field set, or an error
// that names the first bad field.
func (c Config) withDefaults() (Config, *url.URL, error) {
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return c, nil, err
	}
	if c.IDs == 0 {
		c.IDs = IDEverywhere
	}
	if c.IDs&^(IDEverywhere|IDNowhere) != 0 || c.IDs&IDNowhere != 0 && c.IDs != IDNowhere {
		return c, nil, fmt.Errorf("openai: Config.IDs %#x is not a combination of places", uint8(c.IDs))
	}
	for name, value := range c.Extra {
		if len(value) > 0 && !json.Valid(value) {
			return c, nil, fmt.Errorf("openai: Config.Extra[%q]: not JSON: %s", name, excerpt(string(value), 80))
		}
	}
	c.Extra = maps.Clone(c.Extra)
	c.Header = c.Header.Clone()

	c.Timeouts.Connect = cmp.Or(c.Timeouts.Connect, DefaultConnect)
	c.Timeouts.Header = cmp.Or(c.Timeouts.Header, DefaultHeader)
	c.Timeouts.Idle = cmp.Or(c.Timeouts.Idle, DefaultIdle)
	c.RetryWait = cmp.Or(c.RetryWait, DefaultRetryWait)
	c.MaxRetryWait = cmp.Or(c.MaxRetryWait, DefaultMaxRetryWait)
	if c.RetryWait < 0 || c.MaxRetryWait < 0 {
		return c, nil, fmt.Errorf("openai: Config.RetryWait %v and MaxRetryWait %v must not be negative", c.RetryWait, c.MaxRetryWait)
	}
	if c.Retries == 0 {
		c.Retries = DefaultRetries
	}
	if err := sizeDefault(&c.MaxEventBytes, DefaultMaxEventBytes, "MaxEventBytes"); err != nil {
		return c, nil, err
	}
	if err := sizeDefault(&c.MaxAnswerBytes, DefaultMaxAnswerBytes, "MaxAnswerBytes"); err != nil {
		return c, nil, err
	}
	if c.Label == "" {
		c.Label = "openai:" + base.Redacted()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	return c, base, nil
}

func sizeDefault(n *int, value int, field string) error {
	if *n == 0 {
		*n = value
	}
	// Below this not even an empty chunk of a real server fits.
	if *n < 1024 {
		return fmt.Errorf("openai: Config.%s %d is below 1024 bytes", field, *n)
	}
	return nil
}

// parseBase checks a base URL and gives it the path that OpenAI-compatible servers use if it has none.
func parseBase(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("openai: Config.BaseURL is empty")
	}
	u, err := url.Parse(raw)
	if err != nil {
		if strings.Contains(raw, "@") { // may hold a password
			raw = "(not shown)"
		}
		return nil, fmt.Errorf("openai: Config.BaseURL %q: %w", raw, errors.Unwrap(err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("openai: Config.BaseURL %q: the scheme must be http or https", u.Redacted())
	case u.Host == "":
		return nil, fmt.Errorf("openai: Config.BaseURL %q has no host", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("openai: Config.BaseURL %q must have neither query nor fragment", u.Redacted())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u, nil
}

// newClient returns a client with a transport of its own, so that closing its idle connections disturbs no other client.
func newClient(connect time.Duration) *http.Client {
	connect = max(connect, 0) // no limit is 0 here
	dialer := net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	return &http.Client{CheckRedirect: keepKey, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 64,
		// uvicorn, which serves vLLM and SGLang, closes idle connections after 5 s; leave first.
		IdleConnTimeout: 4 * time.Second,
		// A compressing proxy would hold pieces back until a block is full.
		DisableCompression: true,
	}}
}

// keepKey follows redirects that leave a request as it is, and keeps the API key from any address but that of the engine: net/http would
// send it to another port of the same host, and from https to http.
func keepKey(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if req.Method != via[0].Method { // net/http makes a GET of a POST, which asks for another thing
		return fmt.Errorf("it redirects to %s in a way that loses the request; give that address", req.URL.Redacted())
	}
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme && req.URL.Scheme != "https" {
		req.Header.Del("Authorization")
	}
	return nil
}
