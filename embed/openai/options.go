package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Encoding is how the server writes the numbers of a vector.
type Encoding string

// Encodings. Answers are understood in either, whatever was asked for.
const (
	// Base64 is about a third of the bytes of Float, and much faster to read. Most servers know it.
	Base64 Encoding = "base64"
	// Float is a list of decimal numbers.
	Float Encoding = "float"
)

// Defaults of [Options].
const (
	DefaultBatch      = 64
	DefaultBatchBytes = 256 << 10
	DefaultTimeout    = time.Minute
	DefaultAttempts   = 3
	DefaultMaxWait    = 20 * time.Second
)

// Options configure an [Embedder]. URL is needed; the zero value of the rest is the recommended setup.
type Options struct {
	// URL is the server's address up to and including the version, such as https://api.openai.com/v1. Without a path it is
	// given /v1, as engines/openai does.
	URL string
	// Key is sent as a bearer token. Empty: none is sent.
	Key string
	// Model is the model's name as the server knows it. Servers with one model do not need it.
	Model string
	// Dimensions asks for vectors of that length, for models that can give shorter ones, and makes any other length an
	// error. 0: the model's own, whatever it is.
	Dimensions int
	// Encoding asks for a form of the numbers. Empty: Base64.
	Encoding Encoding
	// QueryPrefix and DocumentPrefix are put in front of each question and document, for models that were trained so, such as
	// "query: " and "passage: ".
	QueryPrefix, DocumentPrefix string

	// Batch and BatchBytes bound a request, in texts and in bytes of text. A longer text is sent alone. 0: [DefaultBatch]
	// and [DefaultBatchBytes].
	Batch, BatchBytes int
	// Timeout bounds each attempt. 0: [DefaultTimeout]; below 0: only the context counts.
	Timeout time.Duration
	// Attempts bounds how often a request is sent: again after the statuses 429 and 5xx, and if the connection is refused. 0:
	// [DefaultAttempts]; 1: no retries.
	Attempts int
	// MaxWait bounds the wait in front of an attempt. A server that asks for more (Retry-After) is not asked again. 0:
	// [DefaultMaxWait].
	MaxWait time.Duration
	// Client sends the requests. Nil: one like http.DefaultClient, for this embedder alone.
	Client *http.Client
}

// withDefaults returns a checked copy with all fields set, and the address to send to.
func (o Options) withDefaults() (Options, string, error) {
	o.Encoding = cmp.Or(o.Encoding, Base64)
	o.Batch = cmp.Or(o.Batch, DefaultBatch)
	o.BatchBytes = cmp.Or(o.BatchBytes, DefaultBatchBytes)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	address, err := o.address()
	return o, address, errors.Join(err, o.check())
}

// address is where requests go. Errors do not show the URL: it may have a password in it.
func (o Options) address() (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("Options.URL is not an http or https address")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.Path += "/embeddings"
	u.RawPath = ""
	return u.String(), nil
}

func (o Options) check() error {
	if o.Encoding != Base64 && o.Encoding != Float {
		return fmt.Errorf("Options.Encoding = %q, want %q or %q", o.Encoding, Base64, Float)
	}
	if strings.ContainsAny(o.Key, "\r\n") {
		return errors.New("Options.Key has a line break")
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Options.Dimensions", int64(o.Dimensions)},
		{"Options.Batch", int64(o.Batch)},
		{"Options.BatchBytes", int64(o.BatchBytes)},
		{"Options.Attempts", int64(o.Attempts)},
		{"Options.MaxWait", int64(o.MaxWait)},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s = %d, want at least 0", n.name, n.value)
		}
	}
	return nil
}
