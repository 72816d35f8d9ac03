package llamacpp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// client asks llama-server's own endpoints.
type client struct {
	chat  *openai.Engine
	again int  // how often a question is repeated on another connection
	blind bool // the HTTP client does not show its connections
	dials atomic.Uint64
}

// watch returns a context under which new connections are counted, before anything is sent over them.
func (c *client) watch(ctx context.Context) context.Context {
	// Not GotConn: a connection that was made for one request may be given to another one as a used one.
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, _ string, err error) {
		if err == nil {
			c.dials.Add(1)
		}
	}})
}

// call returns the body of an endpoint's answer; errors are those of [openai.Engine.Do]. All that is asked this way only
// computes something, so it is asked again if a connection breaks. After a restart of the server all pooled ones do.
func (c *client) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx = c.watch(ctx)
	data, err := c.chat.Do(ctx, method, path, body)
	for range c.again {
		lost := errors.Is(err, engines.ErrUnreachable) || errors.Is(err, engines.ErrInterrupted)
		if !lost || ctx.Err() != nil {
			break
		}
		data, err = c.chat.Do(ctx, method, path, body)
	}
	return data, err
}

// get reads an endpoint's answer into v, and post one to a JSON body.
func (c *client) get(ctx context.Context, path string, v any) error {
	return c.read(ctx, http.MethodGet, path, nil, v)
}

func (c *client) post(ctx context.Context, path string, body []byte, v any) error {
	return c.read(ctx, http.MethodPost, path, body, v)
}

func (c *client) read(ctx context.Context, method, path string, body []byte, v any) error {
	data, err := c.call(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("engine %s: answer of %s: %w", c.chat.Name(), path, err)
	}
	return nil
}
