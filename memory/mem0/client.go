package mem0

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// Options configure a Client.
type Options struct {
	Dialect Dialect
	// Key is sent as the server's dialect wants it; empty: none.
	Key string
	// HTTP makes the requests; nil: a client of its own that gives up after a minute, as an extraction asks a model.
	HTTP *http.Client
	// MaxBody bounds an answer, in bytes; 0: 64 MiB.
	MaxBody int64
}

// Client is a store behind a REST API. Safe for concurrent use. It retries nothing: whether an addition that failed was
// stored is not known.
type Client struct {
	base   string
	routes routes
	opt    Options
	own    bool // the HTTP client is
}

var _ memory.Store = (*Client)(nil)

// Errors that servers cause, beside those of package memory.
var (
	// ErrUnavailable is [memory.ErrUnavailable]: the server cannot be reached, or fails.
	ErrUnavailable = memory.ErrUnavailable
	// ErrAuth is [memory.ErrUnauthorized]: the server does not take the key.
	ErrAuth = memory.ErrUnauthorized
	// ErrUnsupported: the API has no such thing.
	ErrUnsupported = errors.New("not offered by this API")
)

// New returns a client of the server at base, an http or https URL without a query.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("mem0: address %q: want a URL like http://host:8888", base)
	}
	c := &Client{base: strings.TrimSuffix(base, "/"), opt: o}
	var ok bool
	if c.routes, ok = o.Dialect.routes(); !ok {
		return nil, fmt.Errorf("mem0: Options.Dialect %s is unknown", o.Dialect)
	}
	if o.HTTP == nil {
		c.own, c.opt.HTTP = true, &http.Client{Timeout: time.Minute, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	c.opt.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	return c, nil
}

// Close ends idle connections of a client that New made.
func (c *Client) Close() error {
	if c.own {
		c.opt.HTTP.CloseIdleConnections()
	}
	return nil
}

// call sends in, if not nil, and reads the answer into out, if not nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opt.Key != "" {
		req.Header.Set("Authorization", c.routes.scheme+" "+c.opt.Key)
		if c.opt.Dialect == SelfHosted {
			req.Header.Set("X-API-Key", c.opt.Key) // what Mem0's own server reads
		}
	}
	resp, err := c.opt.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, c.opt.MaxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case int64(len(raw)) > c.opt.MaxBody:
		return fmt.Errorf("%w: an answer of more than %d bytes", memory.ErrInvalid, c.opt.MaxBody)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return failure(resp.StatusCode, raw)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%w: the answer cannot be read: %w", ErrUnavailable, err)
	}
	return nil
}

// failure makes an error of a status and what the server says of it.
func failure(status int, raw []byte) error {
	const most = 300
	detail := string(raw[:min(len(raw), most)])
	var said struct {
		Detail any    `json:"detail"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(raw, &said) == nil && (said.Detail != nil || said.Error != "") {
		if detail = said.Error; said.Detail != nil {
			detail = fmt.Sprint(said.Detail)
		}
	}
	var cause error
	switch status {
	case http.StatusNotFound:
		cause = memory.ErrNotFound
	case http.StatusConflict:
		cause = memory.ErrExists
	case http.StatusUnauthorized, http.StatusForbidden:
		cause = ErrAuth
	case http.StatusNotImplemented:
		cause = ErrUnsupported
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		cause = memory.ErrInvalid
	default:
		cause = ErrUnavailable
	}
	return fmt.Errorf("%w: status %d: %s", cause, status, detail)
}
