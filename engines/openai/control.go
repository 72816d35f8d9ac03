package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
)

// maxControlBody bounds the answers that Do reads.
const maxControlBody = 32 << 20

// Do sends one request beside the chats, with the engine's client, key and headers, and returns the body of an answer
// whose status is 2xx. A path under /v1/ is taken from Config.BaseURL, any other from above it, where engines have the
// endpoints that are not OpenAI's; it may have a query. It is sent once, and bounded by ctx alone.
//
// Errors are named as those of [Engine.Generate]: [engines.ErrUnreachable], or [engines.ErrRefused] and a
// [*StatusError]. An answer of more than 32 MiB is one too.
func (e *Engine) Do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	target := root(e.base) + path
	if inside, ok := strings.CutPrefix(path, "/v1/"); ok {
		target = e.endpoint("/" + inside)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, e.name(err)
	}
	request.Header = e.baseHeader()
	request.Header.Set("Accept", "*/*")
	if len(body) == 0 {
		request.Header.Del("Content-Type")
	}
	answer, err := e.control(request)
	if err != nil {
		return nil, e.name(fmt.Errorf("%s %s: %w", method, path, err))
	}
	return answer, nil
}

func (e *Engine) control(request *http.Request) ([]byte, error) {
	response, err := e.client.Do(request)
	if err != nil {
		if request.Context().Err() != nil {
			return nil, endedErr(request.Context())
		}
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return nil, fmt.Errorf("%w: %w", engines.ErrUnreachable, err)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, readStatusError(response, e.config.Now())
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxControlBody+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engines.ErrInterrupted, err)
	}
	if len(answer) > maxControlBody {
		return nil, fmt.Errorf("answer of more than %d bytes", maxControlBody)
	}
	return answer, nil
}

// Model returns Config.Model.
func (e *Engine) Model() string { return e.config.Model }

// Host returns the host of Config.BaseURL, without its port.
func (e *Engine) Host() string {
	u, err := url.Parse(e.base)
	if err != nil {
		return "" // cannot be: the base came from a parsed URL
	}
	return u.Hostname()
}
